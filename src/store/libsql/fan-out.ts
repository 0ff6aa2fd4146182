import type { EventRecord, RecordOutcome } from "../events.ts";

/**
 * How many deliveries an event of each action made the last time: what a publish will have to write is only known once
 * it is written, and this foretells it well enough to keep flights short. Subscriptions change seldom.
 */
export class FanOut {
  readonly #deliveries = new Map<number, number>();

  /** Rows these are likely to be: one an event, one a delivery. */
  rowsOf(batch: readonly EventRecord[]): number {
    return batch.reduce((sum, { actionId }) => sum + 1 + (this.#deliveries.get(actionId) ?? 0), 0);
  }

  note(batch: readonly EventRecord[], outcomes: readonly RecordOutcome[]): void {
    let noted = -1;
    for (const [index, { actionId }] of batch.entries()) {
      const outcome = outcomes[index];
      // Those of one call were made by the same subscriptions.
      if (outcome?.kind !== "recorded" || actionId === noted) continue;
      noted = actionId;
      if (outcome.deliveries === 0) this.#deliveries.delete(actionId);
      else this.#deliveries.set(actionId, outcome.deliveries);
    }
  }
}
