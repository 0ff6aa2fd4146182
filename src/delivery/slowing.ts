import type { AttemptResult } from "../store/finishes.ts";
import type { Refusal } from "./attempt.ts";
import type { Flow } from "./flow.ts";

/**
 * Subscriptions that are slowed down. That they are is kept in the store, where claims mind it; until it is there, the
 * flow is held here.
 */
export class Slowing {
  readonly #unstored = new WeakMap<AttemptResult, Flow>();

  /** Takes note of an answer that may slow its subscription down. Answers the result as it is to be stored. */
  refused(flow: Flow, result: AttemptResult, { handler, askedMs }: Refusal, nowMs: number): AttemptResult {
    const waitMs = Math.max(askedMs, flow.refused(nowMs, result.durationMs, result.startedAtMs));
    if (waitMs === 0) return result;
    const slowing: AttemptResult = { ...result, slow: { untilMs: nowMs + waitMs, handler } };
    this.#unstored.set(slowing, flow);
    flow.hold();
    return slowing;
  }

  stored(result: AttemptResult): void {
    this.#unstored.get(result)?.release();
    this.#unstored.delete(result);
  }
}
