import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { unreadable } from "../io/input.ts";
import { usageError } from "../usage-errors.ts";

/** A line with its number, from 1; `undefined` bytes for one longer than allowed. */
export interface Line {
  readonly number: number;
  readonly bytes: Uint8Array | undefined;
  /** Bytes of input up to its end. */
  readonly endsAt: number;
}

const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * The lines of an input of any length, in groups as they arrive, so that a slow producer's lines need not wait for others.
 * Blank lines are left out but counted. An overlong line is skipped without being held in memory.
 * @param after the line that the chunks begin after
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes: number,
  after: Pick<Line, "number" | "endsAt"> = { number: 0, endsAt: 0 },
): AsyncGenerator<Line[]> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let number = after.number + 1;
  let { endsAt } = after;

  const hold = (part: Buffer) => {
    heldBytes += part.length;
    endsAt += part.length;
    if (heldBytes <= maxLineBytes) held.push(part);
    else held = [];
  };
  const finish = (lines: Line[]): void => {
    const bytes = heldBytes > maxLineBytes ? undefined : joined(held, number === 1);
    if (bytes === undefined || !isBlank(bytes)) lines.push({ number, bytes, endsAt });
    held = [];
    heldBytes = 0;
    number += 1;
  };

  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      hold(chunk.subarray(start, end));
      endsAt += 1;
      finish(lines);
      start = end + 1;
    }
    hold(chunk.subarray(start));
    if (lines.length > 0) yield lines;
  }
  const last: Line[] = [];
  if (heldBytes > 0) finish(last);
  if (last.length > 0) yield last;
}

function joined(parts: readonly Buffer[], isFirst: boolean): Buffer {
  const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  return isFirst && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? bytes.subarray(3) : bytes;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

/** How much of a file is read to recognise it: at either end, and before the place where a bulk goes on. */
const BLOCK_BYTES = 1024 * 1024;
const SEED_LENGTH = 16;

/** A file that a bulk publishes, and that a later run must recognise. */
export class BulkSource {
  readonly path: string;
  readonly #descriptor: number;
  readonly #block = Buffer.alloc(BLOCK_BYTES);

  /** @throws EvregError `usage` for anything but a regular file, as only that can be resumed */
  constructor(path: string) {
    if (path === "-") throw usageError("--checkpoint needs a file that can be read again, not stdin.");
    this.path = path;
    try {
      // Opening a pipe would wait for a writer.
      if (!statSync(path).isFile()) {
        throw usageError(`--checkpoint needs a file that can be read again, and ${path} is none.`);
      }
      this.#descriptor = openSync(path, "r");
    } catch (error) {
      throw unreadable(path, error);
    }
  }

  /** What the keys of its lines begin with: made of its size, its first and its last mebibyte, wherever it lies. */
  seed(): string {
    const { size } = fstatSync(this.#descriptor);
    const hash = createHash("sha256").update(`${size}:`);
    for (const at of [0, Math.max(0, size - BLOCK_BYTES)]) hash.update(this.#read(at, BLOCK_BYTES));
    return hash.digest("base64url").slice(0, SEED_LENGTH);
  }

  /** SHA-256, in base64url, of the mebibyte that ends there; `undefined` where the file is shorter. */
  digestBefore(end: number): string | undefined {
    const length = Math.min(end, BLOCK_BYTES);
    const block = this.#read(end - length, length);
    return block.length < length ? undefined : createHash("sha256").update(block).digest("base64url");
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** At most a block, and less at the end of the file; valid until the next call. */
  #read(at: number, length: number): Buffer {
    const wanted = Math.min(length, BLOCK_BYTES);
    let bytes = 0;
    try {
      for (let read = -1; bytes < wanted && read !== 0; bytes += read) {
        read = readSync(this.#descriptor, this.#block, bytes, wanted - bytes, at + bytes);
      }
    } catch (error) {
      throw unreadable(this.path, error);
    }
    return this.#block.subarray(0, bytes);
  }
}
