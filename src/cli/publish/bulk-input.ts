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
 * The lines of an input of any length, in groups as they arrive: a group ends where the input has nothing more to give
 * at once, so that a caller who batches need not let a slow producer's lines wait for company. Blank lines are left
 * out, and keep their numbers. An overlong line is passed over without being held.
 * @param after where the chunks begin, when that is behind a line of the input
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
    if (heldBytes <= maxLineBytes) held.push(part);
    else held = [];
  };
  const finish = (): Line | undefined => {
    const bytes = heldBytes > maxLineBytes ? undefined : joined(held, number === 1);
    const line = { number, bytes, endsAt };
    held = [];
    heldBytes = 0;
    number += 1;
    return bytes !== undefined && isBlank(bytes) ? undefined : line;
  };

  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      hold(chunk.subarray(start, end));
      endsAt += end + 1 - start;
      const line = finish();
      if (line !== undefined) lines.push(line);
      start = end + 1;
    }
    hold(chunk.subarray(start));
    endsAt += chunk.length - start;
    if (lines.length > 0) yield lines;
  }
  if (heldBytes > 0) {
    const line = finish();
    if (line !== undefined) yield [line];
  }
}

function joined(parts: readonly Buffer[], first: boolean): Buffer {
  const bytes = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  const marked = first && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK);
  return marked ? bytes.subarray(3) : bytes;
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

/** How much of a file is read at either end to know it again, and how much is hashed at once. */
const BLOCK_BYTES = 1024 * 1024;
const RETURN = 0x0d;

/** What the same file has in common with itself from run to run, wherever it lies. */
export interface FileFingerprint {
  readonly size: number;
  /** SHA-256 of its size, its first and its last mebibyte, in base64url. */
  readonly digest: string;
}

/** The bytes before some place in a file, by SHA-256 in base64url. It can be extended to a later place. */
export interface PrefixDigest {
  readonly bytes: number;
  /** Of the whole blocks: each hashed with the digest of those before it. */
  readonly blocks: string;
  /** Of all the bytes. */
  readonly digest: string;
}

export const EMPTY_PREFIX: PrefixDigest = { bytes: 0, blocks: "", digest: digestOf("") };

/** A file that a bulk publishes, as something to be known again. */
export class BulkSource {
  readonly path: string;
  /** As it was when it was opened. */
  readonly file: FileFingerprint;
  readonly #descriptor: number;
  readonly #block = Buffer.alloc(BLOCK_BYTES);

  /** @throws EvregError `usage` for anything but a file with a size, as only that can be resumed */
  constructor(path: string) {
    if (path === "-") throw usageError("--checkpoint needs a file that can be read again, not stdin.");
    this.path = path;
    try {
      // Before it is opened, which waits for a writer where it is a pipe.
      if (!statSync(path).isFile()) {
        throw usageError(`--checkpoint needs a file that can be read again, and ${path} is none.`);
      }
      this.#descriptor = openSync(path, "r");
    } catch (error) {
      throw unreadable(path, error);
    }
    this.file = this.#fingerprintOf(fstatSync(this.#descriptor).size);
  }

  /** Whether all that this file was is there, at its beginning. */
  beginsWith({ size, digest }: FileFingerprint): boolean {
    return this.file.size >= size && this.#fingerprintOf(size).digest === digest;
  }

  /** @param from a shorter prefix of the same file, whose blocks are not read again */
  prefixDigest(bytes: number, from: PrefixDigest = EMPTY_PREFIX): PrefixDigest {
    let at = from.bytes - (from.bytes % BLOCK_BYTES);
    let { blocks } = from;
    for (; at + BLOCK_BYTES <= bytes; at += BLOCK_BYTES) {
      blocks = digestOf(blocks, this.#read(at, BLOCK_BYTES));
    }
    return { bytes, blocks, digest: digestOf(blocks, this.#read(at, bytes - at)) };
  }

  /**
   * The end of the line that ends at this place, with its line break where that came later; `undefined` where the line
   * itself goes on.
   */
  lineEnd(place: number): number | undefined {
    if (place === 0 || this.#read(place - 1, 1)[0] === NEWLINE) return place;
    const [first, second] = this.#read(place, 2);
    if (first === NEWLINE) return place + 1;
    if (first === RETURN && second === NEWLINE) return place + 2;
    return first === undefined ? place : undefined;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #fingerprintOf(size: number): FileFingerprint {
    const length = Math.min(size, BLOCK_BYTES);
    const hash = createHash("sha256").update(`${size}:`);
    for (const at of [0, Math.max(0, size - BLOCK_BYTES)]) hash.update(this.#read(at, length));
    return { size, digest: hash.digest("base64url") };
  }

  /** At most a block, and less at the end of the file; good until the next call. */
  #read(at: number, length: number): Buffer {
    let bytes = 0;
    try {
      for (let read = -1; bytes < length && read !== 0; bytes += read) {
        read = readSync(this.#descriptor, this.#block, bytes, length - bytes, at + bytes);
      }
    } catch (error) {
      throw unreadable(this.path, error);
    }
    return this.#block.subarray(0, bytes);
  }
}

function digestOf(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("base64url");
}
