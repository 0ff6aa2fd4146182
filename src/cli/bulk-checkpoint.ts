import { EvregError } from "../domain/error.ts";
import { replaceFile } from "../runtime/replace-file.ts";
import type { BulkState } from "./bulk-publisher.ts";
import type { Rejects } from "./bulk-rejects.ts";
import { type BulkSource, NO_PART } from "./bulk-source.ts";
import { FORM, type Kept, keysOf, mustGoOn, type Publishing, readCheckpoint } from "./kept-checkpoint.ts";
import type { Line } from "./ndjson.ts";

const SAVED_EVERY_MS = 500;
/** Digits of a line's number in its key. With zeros before it, keys grow as lines do, which an index likes. */
const LINE_DIGITS = 9;
export interface CheckpointOptions extends Publishing {
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
  #kept: Kept;
  readonly #source: BulkSource;
  readonly #nowMs: () => number;
  #savedAtMs: number;

  private constructor({ path, source, nowMs }: CheckpointOptions, kept: Kept, hasGrown: boolean) {
    this.path = path;
    this.hasGrown = hasGrown;
    this.#kept = kept;
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
      counted: NO_PART,
      accepted: 0,
      replayed: 0,
      refused: 0,
      rejects_bytes: 0,
    };
    const kept =
      found === undefined
        ? { evreg_checkpoint: FORM, file, keys: keysOf(file), data_id: dataId, target, ...none }
        : { ...found, file, target, byte: mustGoOn(found, path, options) };
    const checkpoint = new Checkpoint(options, kept, found !== undefined && found.file.size !== file.size);
    // That it cannot be written is told before anything is published.
    checkpoint.save();
    return checkpoint;
  }

  /** Where the bulk begins. */
  get state(): BulkState {
    const { accepted, replayed, refused, line, byte } = this.#kept;
    return { accepted, replayed, refused, settledLine: line, settledBytes: byte };
  }

  get rejectsBytes(): number {
    return this.#kept.rejects_bytes;
  }

  /** The idempotency key of a line without one: the same for the same line of the same file, and for no other. */
  readonly keyOf = ({ number }: Line): string =>
    `bulk:${this.#kept.keys}:${String(number).padStart(LINE_DIGITS, "0")}`;

  /** Keeps what has come about, and writes it now and then. @throws EvregError `unavailable` */
  note({ accepted, replayed, refused, settledLine, settledBytes }: BulkState, rejects?: Rejects): void {
    const counts = { accepted, replayed, refused, line: settledLine, byte: settledBytes };
    const { rejects_bytes: before } = this.#kept;
    this.#kept = { ...this.#kept, ...counts, rejects_bytes: rejects?.bytes ?? before };
    if (this.#nowMs() - this.#savedAtMs >= SAVED_EVERY_MS) this.save(rejects);
  }

  /** @throws EvregError `unavailable` */
  save(rejects?: Rejects): void {
    // Nothing is counted that a power cut could still take away.
    rejects?.sync();
    const { byte, counted } = this.#kept;
    if (byte !== counted.bytes)
      this.#kept = { ...this.#kept, counted: this.#source.frontPart(byte, counted) };
    try {
      replaceFile(this.path, `${JSON.stringify(this.#kept, null, 2)}\n`, { durable: true });
    } catch (error) {
      const [why] = (error as Error).message.split(", ");
      const message = `The checkpoint ${this.path} could not be written (${why}). Name another place with --checkpoint, or make room; what is published stays so.`;
      throw new EvregError("unavailable", message, {}, { cause: error });
    }
    this.#savedAtMs = this.#nowMs();
  }
}
