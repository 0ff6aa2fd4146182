import { readFile } from "node:fs/promises";
import { EvregError } from "../../domain/error.ts";
import { systemReason } from "../io/files.ts";
import { unreadable } from "../io/input.ts";
import { replaceFile } from "../../runtime/files.ts";
import { usageError } from "../usage-errors.ts";
import {
  type BulkSource,
  type FileFingerprint,
  type PrefixDigest,
  type Line,
  EMPTY_PREFIX,
} from "./bulk-input.ts";
import type { RejectFile } from "./bulk-report.ts";
import type { BulkState } from "./bulk-run.ts";

const SAVE_EVERY_MS = 500;
/** Digits of a line's number in its key. With zeros before it, keys grow as lines do, which an index likes. */
const LINE_DIGITS = 9;
export interface CheckpointOptions extends CheckpointTarget {
  readonly path: string;
  readonly nowMs: () => number;
}

/**
 * How far a bulk has come, in a file: after a crash it goes on there. Lines that were under way then are sent again with
 * the same keys, so nothing is stored twice.
 */
export class Checkpoint {
  readonly path: string;
  /** Whether the file has grown since it was noted. */
  readonly hasGrown: boolean;
  #stored: CheckpointFile;
  readonly #source: BulkSource;
  readonly #nowMs: () => number;
  #savedAtMs: number;

  private constructor({ path, source, nowMs }: CheckpointOptions, stored: CheckpointFile, hasGrown: boolean) {
    this.path = path;
    this.hasGrown = hasGrown;
    this.#stored = stored;
    this.#source = source;
    this.#nowMs = nowMs;
    this.#savedAtMs = nowMs();
  }

  /** The one in the file, or a new one; `usage` for another file's or other data's, and for what is no checkpoint. */
  static async open(options: CheckpointOptions): Promise<Checkpoint> {
    const { path, source, dataId, target } = options;
    const { file } = source;
    const found = await readCheckpoint(path, source);
    const none = {
      line: 0,
      byte: 0,
      counted: EMPTY_PREFIX,
      accepted: 0,
      replayed: 0,
      refused: 0,
      rejects_bytes: 0,
    };
    const stored =
      found === undefined
        ? { evreg_checkpoint: FORMAT_VERSION, file, keys: keysOf(file), data_id: dataId, target, ...none }
        : { ...found, file, target, byte: assertResumable(found, path, options) };
    const checkpoint = new Checkpoint(options, stored, found !== undefined && found.file.size !== file.size);
    // A checkpoint that cannot be written fails before anything is published.
    checkpoint.save();
    return checkpoint;
  }

  /** Where the bulk begins. */
  get state(): BulkState {
    const { accepted, replayed, refused, line, byte } = this.#stored;
    return { accepted, replayed, refused, settledLine: line, settledBytes: byte };
  }

  get rejectsBytes(): number {
    return this.#stored.rejects_bytes;
  }

  /** The idempotency key of a line without one: the same for the same line of the same file, and for no other. */
  readonly keyOf = ({ number }: Line): string =>
    `bulk:${this.#stored.keys}:${String(number).padStart(LINE_DIGITS, "0")}`;

  /** Keeps what has come about, and writes it now and then. @throws EvregError `unavailable` */
  note({ accepted, replayed, refused, settledLine, settledBytes }: BulkState, rejects?: RejectFile): void {
    const counts = { accepted, replayed, refused, line: settledLine, byte: settledBytes };
    const { rejects_bytes: before } = this.#stored;
    this.#stored = { ...this.#stored, ...counts, rejects_bytes: rejects?.bytes ?? before };
    if (this.#nowMs() - this.#savedAtMs >= SAVE_EVERY_MS) this.save(rejects);
  }

  /** @throws EvregError `unavailable` */
  save(rejects?: RejectFile): void {
    // Nothing is counted that a power cut could still take away.
    rejects?.sync();
    const { byte, counted } = this.#stored;
    if (byte !== counted.bytes)
      this.#stored = { ...this.#stored, counted: this.#source.prefixDigest(byte, counted) };
    try {
      replaceFile(this.path, `${JSON.stringify(this.#stored, null, 2)}\n`, { durable: true });
    } catch (error) {
      const message = `The checkpoint ${this.path} could not be written (${systemReason(error)}). Name another place with --checkpoint, or make room; what is published stays so.`;
      throw new EvregError("unavailable", message, {}, { cause: error });
    }
    this.#savedAtMs = this.#nowMs();
  }
}

/** The form before had no `data_id`. */
const FORMAT_VERSION = 2;

/** The checkpoint as it is written. */
interface CheckpointFile {
  readonly evreg_checkpoint: number;
  readonly file: FileFingerprint;
  /** What the keys of its lines are made of: they stay when the file grows. */
  readonly keys: string;
  /** Of the data that it is published to. */
  readonly data_id: string;
  /** Where that was last, for a person. */
  readonly target: string;
  readonly line: number;
  readonly byte: number;
  /** The bytes up to there. */
  readonly counted: PrefixDigest;
  readonly accepted: number;
  readonly replayed: number;
  readonly refused: number;
  /** Length of the file of refused lines. */
  readonly rejects_bytes: number;
}

/** What a checkpoint must fit. */
interface CheckpointTarget {
  /** The file that is published. */
  readonly source: BulkSource;
  /** Of the data that it is published to. */
  readonly dataId: string;
  /** The address or the data folder. */
  readonly target: string;
}

function keysOf({ digest }: FileFingerprint): string {
  return digest.slice(0, 16);
}

/**
 * The checkpoint in a file; `undefined` where there is no such file.
 * @throws EvregError `usage` for what is no checkpoint, or one of an older form
 */
async function readCheckpoint(path: string, source: BulkSource): Promise<CheckpointFile | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unreadable(path, error);
  }
  const stored = parsed(text);
  if (stored === undefined) {
    throw usageError(
      `${path} is no checkpoint of publish --batch, and is left as it is. Name another file with --checkpoint.`,
    );
  }
  if (stored.evreg_checkpoint < FORMAT_VERSION) {
    throw usageError(
      `The checkpoint ${path} is of an older evreg, and does not tell which data it is of. Name another file with --checkpoint: ${restartAdvice(stored, source)}`,
    );
  }
  return stored;
}

function parsed(text: string): CheckpointFile | undefined {
  try {
    const stored = JSON.parse(text) as CheckpointFile;
    const { evreg_checkpoint: form, file, counted } = stored;
    const counts = [
      stored.line,
      stored.byte,
      stored.accepted,
      stored.replayed,
      stored.refused,
      stored.rejects_bytes,
    ];
    const areCounts = counts.every((count) => Number.isSafeInteger(count) && count >= 0);
    if (!areCounts || typeof file.digest !== "string") return undefined;
    if (form === 1) return { ...stored, keys: keysOf(file) };
    const texts = [stored.keys, stored.data_id, stored.target, counted.blocks, counted.digest];
    const isWhole = texts.every((one) => typeof one === "string") && counted.bytes === stored.byte;
    return form === FORMAT_VERSION && isWhole ? stored : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Answers where in the file it goes on.
 * @param path of the checkpoint
 * @throws EvregError `usage` for one of another file or other data
 */
function assertResumable(
  stored: CheckpointFile,
  path: string,
  { source, dataId, target }: CheckpointTarget,
): number {
  const { file } = source;
  const place = resumeOffset(stored, source);
  if (place === undefined) {
    throw usageError(
      `The checkpoint ${path} is of another file than ${source.path}, or that was changed: ${difference(stored.file, file)}. Give the file as it was, which may have grown; or name another file with --checkpoint to begin anew. Lines that were published before are then stored twice, except those with an idempotency_key of their own.`,
    );
  }
  if (stored.data_id !== dataId) {
    const whose =
      stored.target === target
        ? `is of other data than there is now at ${target}: another data folder was there, or the one from before a restore`
        : `is of the data at ${stored.target}, and at ${target} there is other data`;
    throw usageError(
      `The checkpoint ${path} ${whose}. Nothing was published. To go on with the data that the checkpoint is of, name where that is now (--url, --context or --data). To publish to the data at ${target}, name another file with --checkpoint: ${restartAdvice(stored, source)}`,
    );
  }
  return place;
}

/** `undefined` for a file that was changed in any other way than by growing; everything counted so far is compared. */
function resumeOffset({ file, byte, counted }: CheckpointFile, source: BulkSource): number | undefined {
  const isSame = file.digest === source.file.digest;
  const hasGrown = source.file.size > file.size && source.beginsWith(file);
  if (!isSame && !hasGrown) return undefined;
  if (source.prefixDigest(byte).digest !== counted.digest) return undefined;
  return isSame ? byte : source.lineEnd(byte);
}

function difference(before: FileFingerprint, now: FileFingerprint): string {
  if (before.size === now.size) return "its length is the same, and what it says is not";
  const lengths = `it has ${inBytes(now.size)} now, and had ${inBytes(before.size)}`;
  return now.size < before.size ? lengths : `${lengths}, which are not as they were`;
}

function restartAdvice({ keys }: CheckpointFile, { path, file }: BulkSource): string {
  const published = `${path} is then published from its first line on.`;
  return keys === keysOf(file)
    ? `${published} What of it is there already is not stored twice; what a restore has lost is stored again.`
    : `${published} It has grown, so what of it is there already is stored twice, except lines with an idempotency_key of their own.`;
}

function inBytes(count: number): string {
  return `${count.toLocaleString("en")} bytes`;
}
