import type { AttemptResult } from "../store/finishes.ts";
import type { Flow } from "./flow.ts";

/**
 * Ordered subscriptions. Several of their deliveries are leased at a time, and the next one begins when the end of the one
 * before is stored: after a crash nothing is sent again that another came after.
 */
export class TurnTaking {
  readonly #unstored = new WeakMap<AttemptResult, Flow>();

  ended(flow: Flow, result: AttemptResult): void {
    this.#unstored.set(result, flow);
    flow.storing();
  }

  /** Answers whose turn may have come by that. */
  stored(result: AttemptResult): Flow | undefined {
    const flow = this.#unstored.get(result);
    if (flow === undefined) return undefined;
    this.#unstored.delete(result);
    flow.stored();
    return flow;
  }
}
