import { createHash } from "node:crypto";
import { open, readFile } from "node:fs/promises";
import { EvregError } from "../domain/error.ts";
import { replaceFile } from "../runtime/replace-file.ts";
import type { BulkState } from "./bulk-publisher.ts";
import type { Rejects } from "./bulk-rejects.ts";
import { unreadable } from "./input.ts";
import type { Line } from "./ndjson.ts";
import { usage } from "./usage.ts";

/** How much of a file is read at either end to know it again. */
const DIGESTED_BYTES = 1024 * 1024;
const SAVED_EVERY_MS = 500;
/** Digits of a line's number in its key. With zeros before it, keys grow as lines do, which an index likes. */
const LINE_DIGITS = 9;

/** What the same file has in common with itself from run to run, wherever it lies. */
export interface FileIdentity {
  readonly size: number;
  /** SHA-256 of its size, its first and its last mebibyte, in base64url. */
  readonly digest: string;
}

/** The checkpoint as it is written. */
interface Kept {
  readonly evreg_checkpoint: 1;
  readonly file: FileIdentity;
  readonly target: string;
  readonly line: number;
  readonly byte: number;
  readonly accepted: number;
  readonly replayed: number;
  readonly refused: number;
  /** Length of the file of refused lines. */
  readonly rejects_bytes: number;
}

/** `usage` for what is no file with a size, as only that can be gone on with. */
export async function identify(path: string): Promise<FileIdentity> {
  if (path === "-") throw usage("--checkpoint needs a file that can be read again, not stdin.");
  try {
    await using file = await open(path);
    const stat = await file.stat();
    if (!stat.isFile()) throw usage(`--checkpoint needs a file that can be read again, and ${path} is none.`);
    const { size } = stat;
    const hash = createHash("sha256").update(`${size}:`);
    const part = Buffer.alloc(Math.min(size, DIGESTED_BYTES));
    for (const at of [0, Math.max(0, size - DIGESTED_BYTES)]) {
      const { bytesRead } = await file.read(part, 0, part.length, at);
      hash.update(part.subarray(0, bytesRead));
    }
    return { size, digest: hash.digest("base64url") };
  } catch (error) {
    throw unreadable(path, error);
  }
}

export interface CheckpointOptions {
  readonly path: string;
  /** Of the file that is published. */
  readonly source: string;
  readonly file: FileIdentity;
  /** The address or the data folder. */
  readonly target: string;
  readonly nowMs: () => number;
}

/**
 * How far a bulk has come, in a file: after a crash it goes on there. Lines that were under way then are sent again with
 * the same keys, so nothing is stored twice.
 */
export class Checkpoint {
  readonly path: string;
  #kept: Kept;
  readonly #nowMs: () => number;
  #savedAtMs: number;

  private constructor({ path, nowMs }: CheckpointOptions, kept: Kept) {
    this.path = path;
    this.#kept = kept;
    this.#nowMs = nowMs;
    this.#savedAtMs = nowMs();
  }

  /** The one in the file, or a new one; `usage` for another file's or target's, and for what is no checkpoint. */
  static async open(options: CheckpointOptions): Promise<Checkpoint> {
    const { path, file, target } = options;
    const found = await readCheckpoint(path);
    if (found !== undefined) mustBeFor(found, options);
    const counts = { line: 0, byte: 0, accepted: 0, replayed: 0, refused: 0, rejects_bytes: 0 };
    const checkpoint = new Checkpoint(options, found ?? { evreg_checkpoint: 1, file, target, ...counts });
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
    `bulk:${this.#kept.file.digest.slice(0, 16)}:${String(number).padStart(LINE_DIGITS, "0")}`;

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

async function readCheckpoint(path: string): Promise<Kept | undefined> {
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
  return kept;
}

function parsed(text: string): Kept | undefined {
  try {
    const kept = JSON.parse(text) as Kept;
    const counts = [kept.line, kept.byte, kept.accepted, kept.replayed, kept.refused, kept.rejects_bytes];
    const isWhole =
      kept.evreg_checkpoint === 1 && counts.every((count) => Number.isSafeInteger(count) && count >= 0);
    return isWhole && typeof kept.file.digest === "string" && kept.byte <= kept.file.size ? kept : undefined;
  } catch {
    return undefined;
  }
}

function mustBeFor(kept: Kept, { path, source, file, target }: CheckpointOptions): void {
  const anew = "Name another file with --checkpoint to begin anew.";
  if (kept.file.digest !== file.digest) {
    const difference =
      kept.file.size === file.size
        ? "its beginning or its end is another"
        : `it has ${inBytes(file.size)} now, and had ${inBytes(kept.file.size)}`;
    throw usage(
      `The checkpoint ${path} is of another file than ${source}, or that was changed: ${difference}. ${anew}`,
    );
  }
  if (kept.target !== target) {
    throw usage(`The checkpoint ${path} is of publishing to ${kept.target}, not to ${target}. ${anew}`);
  }
}

function inBytes(count: number): string {
  return `${count.toLocaleString("en")} bytes`;
}
