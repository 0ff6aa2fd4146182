import { loopPace } from "../runtime/pace.ts";

/** A check of so many steps may take the thread a millisecond, and one of the most there may be, some 40. */
const LONG_STEPS = 100_000;

/**
 * Lets no check of a payload follow a long one in the same turn of the event loop: one alone is bounded, and those of many
 * requests that come together are not. To ask costs next to nothing while all are short, as nearly all are.
 */
export class LongChecks {
  #isAfterLong = false;

  /** To be waited for before a check, where there is anything to wait for. */
  pause(): Promise<void> | undefined {
    return this.#isAfterLong ? loopPace.breathe() : undefined;
  }

  /** To be told of each check. */
  took(steps: number): void {
    if (steps < LONG_STEPS || this.#isAfterLong) return;
    this.#isAfterLong = true;
    setImmediate(() => {
      this.#isAfterLong = false;
    });
  }
}
