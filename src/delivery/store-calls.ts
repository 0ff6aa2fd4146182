import { type Clock, systemClock } from "../runtime/clock.ts";

/** Under load the store is asked this often. */
const BEAT_MS = 5;
/** So many claims and results a millisecond are load; looked at over so long. */
const BUSY_PER_MS = 4;
const LOOKED_AT_MS = 10;

/**
 * When the engine asks the store for something. Each time costs the store's thread a commit, however little there is to
 * do: with little it is asked at once, and under load at a steady beat, at which all that gathered goes together.
 *
 * Its time is the machine's and not the clock's: it is about work, and not about when anything is due.
 */
export class Tempo {
  readonly #time: Clock;
  #lastMs = -Infinity;
  #lookedMs = -Infinity;
  #moved = 0;
  #isBusy = false;
  #beat: Promise<void> | undefined;

  constructor(time: Clock = { ...systemClock, now: () => performance.now() }) {
    this.#time = time;
  }

  /** Tells of claims that came, or results that were stored. */
  note(count: number): void {
    this.#moved += count;
  }

  /** Resolves when it is time. */
  async turn(): Promise<void> {
    if (this.#beat !== undefined) return this.#beat;
    const nowMs = this.#time.now();
    if (nowMs - this.#lookedMs >= LOOKED_AT_MS) {
      this.#isBusy = this.#moved >= BUSY_PER_MS * (nowMs - this.#lookedMs);
      this.#lookedMs = nowMs;
      this.#moved = 0;
    }
    const leftMs = this.#lastMs + BEAT_MS - nowMs;
    if (leftMs <= 0 || !this.#isBusy) {
      this.#lastMs = nowMs;
      return;
    }
    this.#beat = new Promise((resolve) => {
      this.#time.setTimer(() => {
        this.#beat = undefined;
        this.#lastMs = this.#time.now();
        resolve();
      }, leftMs);
    });
    return this.#beat;
  }
}
