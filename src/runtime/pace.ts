import { setImmediate as nextTurn } from "node:timers/promises";

const LONGEST_RUN_MS = 4;

/** Lets other work in during a long run of small steps, so that one caller's batch does not make all others wait. */
export class Pace {
  #sinceMs = performance.now();

  /** To be awaited after each step; goes to the back of the event loop's queue when it is time to. */
  async breathe(): Promise<void> {
    if (performance.now() - this.#sinceMs < LONGEST_RUN_MS) return;
    await nextTurn();
    this.#sinceMs = performance.now();
  }
}
