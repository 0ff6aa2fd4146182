import { EvregError } from "../domain/error.ts";
import type { Clock } from "../runtime/clock.ts";

interface Waiting {
  readonly bytes: number;
  readonly grant: () => void;
}

/** So many bytes and no more, shared by all who take of them. What is larger than the whole takes the whole. */
export class ByteBudget {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #waiting = new Set<Waiting>();
  #takenBytes = 0;

  constructor(clock: Clock, maxBytes: number) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  /** Takes them if they are free, also past those who wait: a small share need not wait behind a large one. */
  tryTake(bytes: number): boolean {
    const share = this.#shareOf(bytes);
    if (this.#takenBytes + share > this.#maxBytes) return false;
    this.#takenBytes += share;
    return true;
  }

  /** Takes them in turn. `unavailable` when they do not come free in time. */
  take(bytes: number, waitMs: number): Promise<void> {
    if (this.#waiting.size === 0 && this.tryTake(bytes)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        bytes,
        grant: () => {
          cancelTimer();
          this.#waiting.delete(waiting);
          resolve();
        },
      };
      this.#waiting.add(waiting);
      const cancelTimer = this.#clock.setTimer(() => {
        this.#waiting.delete(waiting);
        reject(new EvregError("unavailable", TOO_MUCH));
        this.#grant();
      }, waitMs);
    });
  }

  giveBack(bytes: number): void {
    this.#takenBytes -= this.#shareOf(bytes);
    this.#grant();
  }

  #grant(): void {
    for (const waiting of this.#waiting) {
      if (!this.tryTake(waiting.bytes)) return;
      waiting.grant();
    }
  }

  #shareOf(bytes: number): number {
    return Math.min(bytes, this.#maxBytes);
  }
}

const TOO_MUCH =
  "Too many large answers are on their way at once, and this one would not fit into memory beside them. Ask again in a moment, or for less with a smaller limit.";
