import type { Pieces } from "./reply.ts";

/** Small pieces are put together up to this size, as each costs a call to the system. */
const BLOCK_BYTES = 512 * 1024;
/** What is larger goes out as it lies in memory. */
const COPIED_BYTES = 64 * 1024;

/** Puts a document of text and bytes together without making a string of it. */
export class PieceWriter {
  readonly #pieces: Uint8Array[] = [];
  #block: Buffer;
  #used = 0;

  /** @param likelyBytes what it may come to; one of up to a block's size is then one piece */
  constructor(likelyBytes: number) {
    this.#block = Buffer.allocUnsafeSlow(Math.min(likelyBytes, BLOCK_BYTES));
  }

  text(text: string): void {
    // A UTF-16 unit makes at most three bytes.
    this.#makeRoom(text.length * 3);
    this.#used += this.#block.write(text, this.#used);
  }

  bytes(bytes: Uint8Array): void {
    if (bytes.length > COPIED_BYTES) {
      this.#flush(0);
      this.#pieces.push(bytes);
      return;
    }
    this.#makeRoom(bytes.length);
    this.#block.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  end(): Pieces {
    this.#flush(0);
    return this.#pieces;
  }

  #makeRoom(bytes: number): void {
    if (this.#used + bytes > this.#block.length) this.#flush(Math.max(bytes, BLOCK_BYTES));
  }

  #flush(nextBytes: number): void {
    if (this.#used > 0) this.#pieces.push(this.#block.subarray(0, this.#used));
    // What is left of the block is still free to be written to.
    this.#block = nextBytes === 0 ? this.#block.subarray(this.#used) : Buffer.allocUnsafeSlow(nextBytes);
    this.#used = 0;
  }
}
