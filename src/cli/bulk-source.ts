import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { unreadable } from "./input.ts";
import { usage } from "./usage.ts";

/** How much of a file is read at either end to know it again, and how much is hashed at once. */
const BLOCK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** What the same file has in common with itself from run to run, wherever it lies. */
export interface FileIdentity {
  readonly size: number;
  /** SHA-256 of its size, its first and its last mebibyte, in base64url. */
  readonly digest: string;
}

/** The bytes before some place in a file, by SHA-256 in base64url; can be gone on with when the place moves on. */
export interface FrontPart {
  readonly bytes: number;
  /** Of the whole blocks: each hashed with the digest of those before it. */
  readonly blocks: string;
  /** Of all the bytes. */
  readonly digest: string;
}

export const NO_PART: FrontPart = { bytes: 0, blocks: "", digest: digestOf("") };

/** A file that a bulk publishes, as something to be known again. */
export class BulkSource {
  readonly path: string;
  /** As it was when it was opened. */
  readonly file: FileIdentity;
  readonly #descriptor: number;
  readonly #block = Buffer.alloc(BLOCK_BYTES);

  /** @throws EvregError `usage` for what is no file with a size, as only that can be gone on with */
  constructor(path: string) {
    if (path === "-") throw usage("--checkpoint needs a file that can be read again, not stdin.");
    this.path = path;
    try {
      // Before it is opened, which waits for a writer where it is a pipe.
      if (!statSync(path).isFile()) {
        throw usage(`--checkpoint needs a file that can be read again, and ${path} is none.`);
      }
      this.#descriptor = openSync(path, "r");
    } catch (error) {
      throw unreadable(path, error);
    }
    this.file = this.#identityOf(fstatSync(this.#descriptor).size);
  }

  /** Whether all that this file was is there, at its beginning. */
  beginsWith({ size, digest }: FileIdentity): boolean {
    return this.file.size >= size && this.#identityOf(size).digest === digest;
  }

  /** @param from an earlier part of the same file, whose blocks are not read again */
  frontPart(bytes: number, from: FrontPart = NO_PART): FrontPart {
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

  #identityOf(size: number): FileIdentity {
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
