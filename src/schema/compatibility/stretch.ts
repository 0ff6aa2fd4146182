import { budget } from "../budget.ts";

/** Steps from one stop to the next: mostly half a millisecond, and some 2 with schemas made to take long. */
const STEPS_PER_STRETCH = 2_000;

/** Tells a task that takes steps of the budget when to stop, so that others have their turn. */
export class Stretch {
  #endsAt = Infinity;

  /** Whether a stretch has been gone through; the next one begins then. */
  isOver(): boolean {
    if (budget.left >= this.#endsAt) return false;
    this.#endsAt = budget.left - STEPS_PER_STRETCH;
    return true;
  }
}
