import { readFile } from "node:fs/promises";
import { EvregError } from "../../domain/error.ts";
import { systemReason } from "../io/files.ts";
import { unreadable } from "../io/input.ts";
import { replaceFile } from "../../runtime/files.ts";
import { usageError } from "../usage-errors.ts";
import type { BulkSource, Line } from "./bulk-input.ts";
import type { RejectFile } from "./bulk-report.ts";
import { type BulkState, NOTHING_SETTLED } from "./bulk-run.ts";

const FORMAT_VERSION = 3;
const SAVE_EVERY_MS = 500;
/** Digits of a line's number in its key. With leading zeros keys grow as lines do, which suits an index. */
const LINE_DIGITS = 9;

export interface CheckpointOptions {
  /** The path of the checkpoint. */
  readonly path: string;
  /** The file that is published. */
  readonly source: BulkSource;
  /** The id of the data that it is published to. */
  readonly dataId: string;
  /** The address or the data folder, for a person. */
  readonly target: string;
  readonly nowMs: () => number;
}

/** The checkpoint as it is written. */
interface CheckpointFile {
  readonly evreg_checkpoint: number;
  /** What the keys of its lines are made of. It stays when the file changes. */
  readonly seed: string;
  readonly data_id: string;
  readonly line: number;
  readonly byte: number;
  /** The digest of what is before that in the file. */
  readonly digest: string;
}

/**
 * How far a bulk is, in a file: after a crash it resumes there. Lines that were under way then are sent again with the
 * same keys, so nothing is stored twice.
 */
export class Checkpoint {
  readonly #options: CheckpointOptions;
  #stored: CheckpointFile;
  #savedAtMs = 0;

  private constructor(options: CheckpointOptions, stored: CheckpointFile) {
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
    const { source, dataId } = options;
    const checkpoint = await readCheckpoint(options.path);
    if (checkpoint !== undefined) {
      assertContinues(checkpoint, options);
      return new Checkpoint(options, checkpoint);
    }
    const created = { evreg_checkpoint: FORMAT_VERSION, seed: source.seed(), data_id: dataId };
    return new Checkpoint(options, { ...created, line: 0, byte: 0, digest: "" });
  }

  /** Where the bulk begins. */
  get state(): BulkState {
    const { line, byte } = this.#stored;
    return { ...NOTHING_SETTLED, settledLine: line, settledBytes: byte };
  }

  /** The idempotency key of a line without one: the same for the same line of the same file, and for no other. */
  readonly keyOf = ({ number }: Line): string =>
    `bulk:${this.#stored.seed}:${String(number).padStart(LINE_DIGITS, "0")}`;

  /** Takes over the state, and saves it twice a second. @throws EvregError `unavailable` */
  note({ settledLine: line, settledBytes: byte }: BulkState, rejects?: RejectFile): void {
    this.#stored = { ...this.#stored, line, byte };
    if (this.#options.nowMs() - this.#savedAtMs >= SAVE_EVERY_MS) this.save(rejects);
  }

  /** @throws EvregError `unavailable` */
  save(rejects?: RejectFile): void {
    const { path, source, nowMs } = this.#options;
    // Nothing is counted that a power cut could still take away.
    rejects?.sync();
    const digest = source.digestBefore(this.#stored.byte) ?? "";
    this.#stored = { ...this.#stored, digest };
    try {
      replaceFile(path, `${JSON.stringify(this.#stored, null, 2)}\n`, { durable: true });
    } catch (error) {
      const message = `The checkpoint ${path} could not be written (${systemReason(error)}). Name another path with --checkpoint, or free some space; what is published stays published.`;
      throw new EvregError("unavailable", message, {}, { cause: error });
    }
    this.#savedAtMs = nowMs();
  }
}

/** The checkpoint in a file; `undefined` where there is no such file. */
async function readCheckpoint(path: string): Promise<CheckpointFile | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unreadable(path, error);
  }
  const stored = parsed(text);
  if (stored !== undefined) return stored;
  throw usageError(
    `${path} is no checkpoint of publish --batch, and is left as it is. Name another file with --checkpoint.`,
  );
}

function parsed(text: string): CheckpointFile | undefined {
  try {
    const stored = JSON.parse(text) as CheckpointFile;
    const { line, byte, seed, data_id, digest } = stored;
    const isWhole =
      [line, byte].every((count) => Number.isSafeInteger(count) && count >= 0) &&
      [seed, data_id, digest].every((one) => typeof one === "string");
    return stored.evreg_checkpoint === FORMAT_VERSION && isWhole ? stored : undefined;
  } catch {
    return undefined;
  }
}

/** @throws EvregError `usage` for a checkpoint of other data, or of a file whose published part is not as it was */
function assertContinues(stored: CheckpointFile, { path, source, dataId, target }: CheckpointOptions): void {
  if (source.digestBefore(stored.byte) !== stored.digest) {
    throw usageError(
      `The checkpoint ${path} is of another file than ${source.path}, or that was changed shortly before line ${(stored.line + 1).toLocaleString("en")}, up to which it is published. Give the file as it was; what comes after may have changed. To publish this file from its first line, name another file with --checkpoint. Lines that were published from another version of it are then stored again, unless they have an idempotency_key of their own.`,
    );
  }
  if (stored.data_id !== dataId) {
    throw usageError(
      `The checkpoint ${path} is of other data than there is at ${target}: of another server or data folder, or of the data from before a restore. Nothing was published. To go on with the data that it is of, name where that is (--url, --context or --data). To publish to this data, name another file with --checkpoint: ${source.path} is then published from its first line on. What of it is there already is not stored twice, unless the file has changed since; what a restore has lost is stored again.`,
    );
  }
}
