import { setImmediate as nextTurn } from "node:timers/promises";

const LONGEST_RUN_MS = 4;

/** Lets other work in during a long run of small steps, so that one caller's batch does not make all others wait. */
export class Pace {
  #sinceMs = performance.now();

  get isDue(): boolean {
    return performance.now() - this.#sinceMs >= LONGEST_RUN_MS;
  }

  async breathe(): Promise<void> {
    await nextTurn();
    this.#sinceMs = performance.now();
  }
}
