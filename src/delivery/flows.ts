import { Flow } from "./flow.ts";

/** What is known of subscriptions that have nothing to do is kept for so many. */
const MOST_IDLE = 1_000;

/** The subscriptions that the engine has to do with. */
export class Flows implements Iterable<Flow> {
  readonly #mostWindow: number;
  readonly #flows = new Map<number, Flow>();

  constructor(mostWindow: number) {
    this.#mostWindow = mostWindow;
  }

  [Symbol.iterator](): Iterator<Flow> {
    return this.#flows.values();
  }

  of(subscriptionId: number): Flow {
    let flow = this.#flows.get(subscriptionId);
    if (flow === undefined) {
      flow = new Flow(subscriptionId, this.#mostWindow);
      this.#flows.set(subscriptionId, flow);
    }
    return flow;
  }

  /** Forgets those that have been idle, the oldest first, while there are too many. */
  tidy(nowMs: number): void {
    if (this.#flows.size <= MOST_IDLE) return;
    for (const [id, flow] of this.#flows) {
      if (flow.isIdle(nowMs)) this.#flows.delete(id);
      if (this.#flows.size <= MOST_IDLE) return;
    }
  }
}
