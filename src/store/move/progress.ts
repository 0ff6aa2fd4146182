import { EvregError } from "../../domain/error.ts";

/**
 * How far a move is, and whether it is to end: memory that its thread shares with the one that started it, which can then show it
 * at any time.
 */
export class MoveProgress {
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  constructor(memory = new SharedArrayBuffer(3 * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new BigInt64Array(memory);
  }

  /** How many rows there are in all; 0 until that is known. */
  get rows(): number {
    return Number(Atomics.load(this.#cells, 0));
  }

  /** How many of them are the same in both places by now. */
  get same(): number {
    return Number(Atomics.load(this.#cells, 1));
  }

  begin(rows: number): void {
    Atomics.store(this.#cells, 0, BigInt(rows));
  }

  passed(rows: number): void {
    Atomics.add(this.#cells, 1, BigInt(rows));
  }

  /** Has the move end before its next chunk. */
  end(): void {
    Atomics.store(this.#cells, 2, 1n);
  }

  /** @throws EvregError `unavailable` once it is to end */
  mustGoOn(): void {
    if (Atomics.load(this.#cells, 2) === 0n) return;
    throw new EvregError("unavailable", "The move was interrupted.");
  }
}
