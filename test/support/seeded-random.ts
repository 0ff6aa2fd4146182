/** A random generator whose values depend on its seed alone. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = mixed(0x9e3779b9 ^ seed);
  }

  /** Answers a number in [0, 1), by Mulberry32. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    return mixed(this.#state) / 2 ** 32;
  }

  /** Both ends included. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  chance(share: number): boolean {
    return this.fraction() < share;
  }

  /** One of the list; `undefined` of an empty one. */
  pick<T>(list: readonly T[]): T {
    return list[this.whole(0, list.length - 1)]!;
  }
}

function mixed(state: number): number {
  let word = Math.imul(state ^ (state >>> 15), 1 | state);
  word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
  return (word ^ (word >>> 14)) >>> 0;
}
