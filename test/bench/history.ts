import { DELIVERED_ACTION, PAUSED_ACTION } from "./workload.ts";

// What a data folder holds that has been in use for a month: known well enough to check every total against.

/** How many events, by what `--size` takes; a month's each. */
export const HISTORY_SIZES: Readonly<Record<string, number>> = { "2m": 2_000_000, "10m": 10_000_000 };
const MONTH_MS = 30 * 86_400_000;

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

/** SQL of the place of event `n`'s action among them. Actions are mixed, as 37 and 100 have no common factor. */
export const PLACE_OF_N = `CASE ${HISTORY_ACTIONS.map((_, place) => {
  const below = HISTORY_ACTIONS.slice(0, place + 1).reduce((sum, { share }) => sum + share, 0);
  return `WHEN n * 37 % 100 < ${below} THEN ${place}`;
}).join(" ")} END`;

/** Event `n`, from 1 to `events`, was published at `startMs + n * stepMs`. */
export interface History {
  readonly events: number;
  readonly startMs: number;
  readonly stepMs: number;
}

/** Their times go up to about now. */
export function historyUntil(nowMs: number, events: number): History {
  const stepMs = Math.floor(MONTH_MS / events);
  return { events, startMs: nowMs - (events + 1) * stepMs, stepMs };
}

/** The ways to list events, by what each is called; the window of time is the same part of every history. */
export function eventListings({ events, startMs, stepMs }: History): ReadonlyMap<string, string> {
  const at = (part: number): string =>
    encodeURIComponent(new Date(startMs + Math.floor(events * part) * stepMs).toISOString());
  const window = `from=${at(0.4)}&to=${at(0.6)}`;
  const page = "/v1/events?limit=50";
  return new Map([
    ["events", page],
    ["events of an action", `${page}&action=customer.created`],
    ["events of a pattern", `${page}&action=customer.*`],
    ["events of a time", `${page}&${window}`],
    ["events of action and time", `${page}&action=invoice.created&${window}`],
    ["events after one", `${page}&after=${events / 2}`],
    ["events in the middle", `${page}&page=${events / 2 / 50}`],
    ["total alone", "/v1/events?limit=1"],
  ]);
}
