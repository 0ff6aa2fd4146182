import type { Clock } from "./clock.ts";

/** Waits that can be ended before their time, all together. */
export class Sleep {
  readonly #clock: Pick<Clock, "setTimer">;
  readonly #ends = new Set<() => void>();

  constructor(clock: Pick<Clock, "setTimer">) {
    this.#clock = clock;
  }

  /** Resolves when the time is over, or at once when cut. Whoever must not sleep any more looks before it begins. */
  forMs(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#ends.delete(end);
        resolve();
      };
      const cancel = this.#clock.setTimer(end, delayMs);
      this.#ends.add(end);
    });
  }

  /** Ends what sleeps now. */
  cut(): void {
    for (const end of this.#ends) end();
  }
}
