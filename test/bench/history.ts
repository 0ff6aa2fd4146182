import { DELIVERED_ACTION, PAUSED_ACTION } from "./workload.ts";

// What a data folder holds that has been in use for a month: known well enough to check every total against.

export const HISTORY_EVENTS = 2_000_000;
/** Between two events; their times go up to about now. */
const STEP_MS = 1_296;

/** Of a hundred events, how many are of each action. Nothing is published to the last six while the benchmark runs. */
export const HISTORY_ACTIONS: readonly { readonly action: string; readonly share: number }[] = [
  { action: PAUSED_ACTION, share: 30 },
  { action: DELIVERED_ACTION, share: 25 },
  { action: "invoice.created", share: 20 },
  { action: "invoice.paid", share: 12 },
  { action: "customer.created", share: 6 },
  { action: "customer.updated", share: 4 },
  { action: "stock.changed", share: 2 },
  { action: "refund.made", share: 1 },
];

/** Event `n`, from 1, was published at `startMs + n * stepMs`. */
export interface History {
  readonly startMs: number;
  readonly stepMs: number;
}

export function historyUntil(nowMs: number): History {
  return { startMs: nowMs - (HISTORY_EVENTS + 1) * STEP_MS, stepMs: STEP_MS };
}

export function eventsOf(action: string): number {
  const share = HISTORY_ACTIONS.find((each) => each.action === action)?.share ?? 0;
  return (HISTORY_EVENTS / 100) * share;
}
