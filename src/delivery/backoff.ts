import type { Clock } from "../runtime/clock.ts";

const FIRST_MS = 250;
const LONGEST_MS = 5_000;

/** Waits between tries at a store that cannot commit: a quarter of a second, doubling up to five. */
export class Backoff {
  readonly #clock: Clock;
  #nextMs = FIRST_MS;
  #cut: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True from a failure until the next success. */
  get failing(): boolean {
    return this.#nextMs > FIRST_MS;
  }

  /** Resolves when it is time to try again, or at once when cut. */
  async wait(): Promise<void> {
    const waitMs = this.#nextMs;
    this.#nextMs = Math.min(LONGEST_MS, waitMs * 2);
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.setTimer(resolve, waitMs);
      this.#cut = () => {
        cancel();
        resolve();
      };
    });
    this.#cut = undefined;
  }

  cut(): void {
    this.#cut?.();
  }

  succeeded(): void {
    this.#nextMs = FIRST_MS;
  }
}
