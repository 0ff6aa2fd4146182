import { readFile } from "node:fs/promises";
import type { BulkSource, FileIdentity, FrontPart } from "./bulk-source.ts";
import { unreadable } from "./input.ts";
import { usage } from "./usage.ts";

/** The form before had no `data_id`. */
export const FORM = 2;

/** The checkpoint as it is written. */
export interface Kept {
  readonly evreg_checkpoint: number;
  readonly file: FileIdentity;
  /** What the keys of its lines are made of: they stay when the file grows. */
  readonly keys: string;
  /** Of the data that it is published to. */
  readonly data_id: string;
  /** Where that was last, for a person. */
  readonly target: string;
  readonly line: number;
  readonly byte: number;
  /** The bytes up to there. */
  readonly counted: FrontPart;
  readonly accepted: number;
  readonly replayed: number;
  readonly refused: number;
  /** Length of the file of refused lines. */
  readonly rejects_bytes: number;
}

/** What a checkpoint must fit. */
export interface Publishing {
  /** The file that is published. */
  readonly source: BulkSource;
  /** Of the data that it is published to. */
  readonly dataId: string;
  /** The address or the data folder. */
  readonly target: string;
}

export function keysOf({ digest }: FileIdentity): string {
  return digest.slice(0, 16);
}

/**
 * The checkpoint in a file; `undefined` where there is no such file.
 * @throws EvregError `usage` for what is no checkpoint, or one of an older form
 */
export async function readCheckpoint(path: string, source: BulkSource): Promise<Kept | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unreadable(path, error);
  }
  const kept = parsed(text);
  if (kept === undefined) {
    throw usage(
      `${path} is no checkpoint of publish --batch, and is left as it is. Name another file with --checkpoint.`,
    );
  }
  if (kept.evreg_checkpoint < FORM) {
    throw usage(
      `The checkpoint ${path} is of an older evreg, and does not tell which data it is of. Name another file with --checkpoint: ${fromItsBeginning(kept, source)}`,
    );
  }
  return kept;
}

function parsed(text: string): Kept | undefined {
  try {
    const kept = JSON.parse(text) as Kept;
    const { evreg_checkpoint: form, file, counted } = kept;
    const counts = [kept.line, kept.byte, kept.accepted, kept.replayed, kept.refused, kept.rejects_bytes];
    const areCounts = counts.every((count) => Number.isSafeInteger(count) && count >= 0);
    if (!areCounts || typeof file.digest !== "string") return undefined;
    if (form === 1) return { ...kept, keys: keysOf(file) };
    const texts = [kept.keys, kept.data_id, kept.target, counted.blocks, counted.digest];
    const isWhole = texts.every((one) => typeof one === "string") && counted.bytes === kept.byte;
    return form === FORM && isWhole ? kept : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Answers where in the file it goes on.
 * @param path of the checkpoint
 * @throws EvregError `usage` for one of another file or other data
 */
export function mustGoOn(kept: Kept, path: string, { source, dataId, target }: Publishing): number {
  const { file } = source;
  const place = placeIn(kept, source);
  if (place === undefined) {
    throw usage(
      `The checkpoint ${path} is of another file than ${source.path}, or that was changed: ${difference(kept.file, file)}. Give the file as it was, which may have grown; or name another file with --checkpoint to begin anew. Lines that were published before are then stored twice, except those with an idempotency_key of their own.`,
    );
  }
  if (kept.data_id !== dataId) {
    const whose =
      kept.target === target
        ? `is of other data than there is now at ${target}: another data folder was there, or the one from before a restore`
        : `is of the data at ${kept.target}, and at ${target} there is other data`;
    throw usage(
      `The checkpoint ${path} ${whose}. Nothing was published. To go on with the data that the checkpoint is of, name where that is now (--url, --context or --data). To publish to the data at ${target}, name another file with --checkpoint: ${fromItsBeginning(kept, source)}`,
    );
  }
  return place;
}

/** `undefined` for a file that was changed otherwise than by growing: all that was counted is looked at. */
function placeIn({ file, byte, counted }: Kept, source: BulkSource): number | undefined {
  const isSame = file.digest === source.file.digest;
  const hasGrown = source.file.size > file.size && source.beginsWith(file);
  if (!isSame && !hasGrown) return undefined;
  if (source.frontPart(byte).digest !== counted.digest) return undefined;
  return isSame ? byte : source.lineEnd(byte);
}

function difference(before: FileIdentity, now: FileIdentity): string {
  if (before.size === now.size) return "its length is the same, and what it says is not";
  const lengths = `it has ${inBytes(now.size)} now, and had ${inBytes(before.size)}`;
  return now.size < before.size ? lengths : `${lengths}, which are not as they were`;
}

function fromItsBeginning({ keys }: Kept, { path, file }: BulkSource): string {
  const published = `${path} is then published from its first line on.`;
  return keys === keysOf(file)
    ? `${published} What of it is there already is not stored twice; what a restore has lost is stored again.`
    : `${published} It has grown, so what of it is there already is stored twice, except lines with an idempotency_key of their own.`;
}

function inBytes(count: number): string {
  return `${count.toLocaleString("en")} bytes`;
}
