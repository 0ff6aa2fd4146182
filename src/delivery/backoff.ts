import type { Sleep } from "../runtime/sleep.ts";

const FIRST_MS = 250;
const LONGEST_MS = 5_000;

/** Waits between tries at a store that cannot commit: a quarter of a second, doubling up to five. */
export class Backoff {
  readonly #sleep: Sleep;
  #nextMs = FIRST_MS;

  /** @param sleep a cut of it ends the wait */
  constructor(sleep: Sleep) {
    this.#sleep = sleep;
  }

  /** True from a failure until the next success. */
  get failing(): boolean {
    return this.#nextMs > FIRST_MS;
  }

  /** Resolves when it is time to try again, or at once when cut. */
  wait(): Promise<void> {
    const waitMs = this.#nextMs;
    this.#nextMs = Math.min(LONGEST_MS, waitMs * 2);
    return this.#sleep.forMs(waitMs);
  }

  cut(): void {
    this.#sleep.cut();
  }

  succeeded(): void {
    this.#nextMs = FIRST_MS;
  }
}
