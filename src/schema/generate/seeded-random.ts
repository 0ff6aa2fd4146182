/** A random generator whose values depend on seed and stream alone; for samples, never for secrets. */
export class SeededRandom {
  #state: number;

  /** @param stream distinguishes the samples of one seed; both whole numbers from 0 */
  constructor(seed: number, stream: number) {
    this.#state = 0x9e3779b9;
    for (const part of [seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0, stream >>> 0]) {
      this.#state = mixed(this.#state ^ part);
    }
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

  shuffled<T>(list: readonly T[]): T[] {
    const out = [...list];
    for (let at = out.length - 1; at > 0; at--) {
      const other = this.whole(0, at);
      [out[at], out[other]] = [out[other]!, out[at]!];
    }
    return out;
  }
}

function mixed(state: number): number {
  let word = Math.imul(state ^ (state >>> 15), 1 | state);
  word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
  return (word ^ (word >>> 14)) >>> 0;
}
