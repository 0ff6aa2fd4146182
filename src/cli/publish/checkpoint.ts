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
import { type BulkState, NOTHING_SETTLED } from "./bulk-run.ts";

/** Format 1 had no `data_id`. */
const FORMAT_VERSION = 2;
const SAVE_EVERY_MS = 500;
/** Digits of a line's number in its key. With leading zeros keys grow as lines do, which suits an index. */
const LINE_DIGITS = 9;

export interface CheckpointOptions {
  /** Of the checkpoint. */
  readonly path: string;
  /** The file that is published. */
  readonly source: BulkSource;
  /** Of the data that it is published to. */
  readonly dataId: string;
  /** The address or the data folder, for a person. */
  readonly target: string;
  readonly nowMs: () => number;
}

/** The checkpoint as it is written. */
interface CheckpointFile {
  readonly evreg_checkpoint: number;
  readonly file: FileFingerprint;
  /** What the keys of its lines are made of: they stay when the file grows. */
  readonly keys: string;
  readonly data_id: string;
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

/**
 * How far a bulk is, in a file: after a crash it resumes there. Lines that were under way then are sent again with the
 * same keys, so nothing is stored twice.
 */
export class Checkpoint {
  /** Whether the file has grown since the last run. */
  readonly hasGrown: boolean;
  readonly #options: CheckpointOptions;
  #stored: CheckpointFile;
  #savedAtMs = 0;

  private constructor(options: CheckpointOptions, stored: CheckpointFile, hasGrown: boolean) {
    this.hasGrown = hasGrown;
    this.#options = options;
    this.#stored = stored;
    // A checkpoint that cannot be written fails before anything is published.
    this.save();
  }

  /**
   * The checkpoint in the file, or a new one.
   * @throws EvregError `usage` for one of another file or other data, and for what is no checkpoint; `unavailable`
   */
  static async open(options: CheckpointOptions): Promise<Checkpoint> {
    const { source, dataId, target } = options;
    const { file } = source;
    const found = await readCheckpoint(options);
    if (found !== undefined) {
      const stored = { ...found, file, target, byte: resumeOffset(found, options) };
      return new Checkpoint(options, stored, found.file.size !== file.size);
    }
    const created = { evreg_checkpoint: FORMAT_VERSION, file, keys: keysOf(file), data_id: dataId, target };
    const start = { ...columnsOf(NOTHING_SETTLED), counted: EMPTY_PREFIX, rejects_bytes: 0 };
    return new Checkpoint(options, { ...created, ...start }, false);
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

  /** Takes over the state, and saves it twice a second. @throws EvregError `unavailable` */
  note(state: BulkState, rejects?: RejectFile): void {
    const rejectsBytes = rejects?.bytes ?? this.rejectsBytes;
    this.#stored = { ...this.#stored, ...columnsOf(state), rejects_bytes: rejectsBytes };
    if (this.#options.nowMs() - this.#savedAtMs >= SAVE_EVERY_MS) this.save(rejects);
  }

  /** @throws EvregError `unavailable` */
  save(rejects?: RejectFile): void {
    const { path, source, nowMs } = this.#options;
    // Nothing is counted that a power cut could still take away.
    rejects?.sync();
    const { byte, counted } = this.#stored;
    if (byte !== counted.bytes)
      this.#stored = { ...this.#stored, counted: source.prefixDigest(byte, counted) };
    try {
      replaceFile(path, `${JSON.stringify(this.#stored, null, 2)}\n`, { durable: true });
    } catch (error) {
      const message = `The checkpoint ${path} could not be written (${systemReason(error)}). Name another path with --checkpoint, or free some space; what is published stays published.`;
      throw new EvregError("unavailable", message, {}, { cause: error });
    }
    this.#savedAtMs = nowMs();
  }
}

function columnsOf({ accepted, replayed, refused, settledLine, settledBytes }: BulkState) {
  return { accepted, replayed, refused, line: settledLine, byte: settledBytes };
}

function keysOf({ digest }: FileFingerprint): string {
  return digest.slice(0, 16);
}

/** The checkpoint in a file; `undefined` where there is no such file. */
async function readCheckpoint({ path, source }: CheckpointOptions): Promise<CheckpointFile | undefined> {
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
      `The checkpoint ${path} is of an older evreg, and does not say which data it is of. Name another file with --checkpoint: ${restartAdvice(stored, source)}`,
    );
  }
  return stored;
}

function parsed(text: string): CheckpointFile | undefined {
  try {
    const stored = JSON.parse(text) as CheckpointFile;
    const { evreg_checkpoint: version, file, counted } = stored;
    const { line, byte, accepted, replayed, refused, rejects_bytes: rejectsBytes } = stored;
    const counts = [line, byte, accepted, replayed, refused, rejectsBytes];
    const areCounts = counts.every((count) => Number.isSafeInteger(count) && count >= 0);
    if (!areCounts || typeof file.digest !== "string") return undefined;
    if (version === 1) return { ...stored, keys: keysOf(file) };
    const texts = [stored.keys, stored.data_id, stored.target, counted.blocks, counted.digest];
    const isWhole = texts.every((one) => typeof one === "string") && counted.bytes === byte;
    return version === FORMAT_VERSION && isWhole ? stored : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Where in the file to resume.
 * @throws EvregError `usage` for a checkpoint of other data, or of a file that was changed in any way but by growing
 */
function resumeOffset(stored: CheckpointFile, options: CheckpointOptions): number {
  const { path, source, dataId, target } = options;
  const { file, byte } = stored;
  const isSame = file.digest === source.file.digest;
  const hasGrown = source.file.size > file.size && source.beginsWith(file);
  const isKnown = (isSame || hasGrown) && source.prefixDigest(byte).digest === stored.counted.digest;
  const offset = isSame ? byte : source.lineEnd(byte);
  if (!isKnown || offset === undefined) {
    throw usageError(
      `The checkpoint ${path} is of another file than ${source.path}, or that was changed: ${difference(file, source.file)}. Give the file as it was, which may have grown. To publish this file from its first line, name another file with --checkpoint. Lines that were published from another version of it are then stored again, unless they have an idempotency_key of their own.`,
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
  return offset;
}

function difference(before: FileFingerprint, now: FileFingerprint): string {
  if (before.size === now.size) return "its length is the same, and what it says is not";
  const [had, has] = [before.size, now.size].map((size) => `${size.toLocaleString("en")} bytes`);
  const changed = now.size > before.size ? ", which are not as they were" : "";
  return `it has ${has} now, and had ${had}${changed}`;
}

function restartAdvice({ keys }: CheckpointFile, { path, file }: BulkSource): string {
  const published = `${path} is then published from its first line on.`;
  return keys === keysOf(file)
    ? `${published} What of it is there already is not stored twice; what a restore has lost is stored again.`
    : `${published} It has grown, so what of it is there already is stored twice, except lines with an idempotency_key of their own.`;
}
