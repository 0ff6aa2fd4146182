import type { Column } from "../io/table.ts";
import {
  type ActionFigures,
  BACKLOG_CAUSES,
  type BacklogCause,
  type Figures,
  type Percentiles,
  STATS_RANGES,
  type Stats,
  type StatsRange,
  type SubscriptionFigures,
} from "../../domain/stats/stats.ts";
import { subscriptionOf } from "./deliveries.ts";

const MINUTE_MS = 60_000;

/** What each cause is to a person. */
const CAUSES: Readonly<Record<BacklogCause, string>> = {
  due: "due",
  busy: "behind others of a busy handler",
  paced: "at a rate limit, or for a consumer",
  waiting: "waiting for their time or turn",
  blocked: "behind one that blocks",
  delivering: "being delivered",
  held: "held",
};

/** The totals of a range, and what is unfinished now. */
export const STATS_RECORD: readonly Column<Stats>[] = [
  { title: "Range", value: ({ range, from }) => `${range}, since ${from}` },
  { title: "Published", value: ({ totals, range }) => perMinute(totals.published, range) },
  { title: "Delivered", value: ({ totals, range }) => perMinute(totals.delivered, range) },
  { title: "Failed attempts", value: ({ totals }) => failedAttempts(totals) },
  {
    title: "Failed for good",
    value: ({ totals }) => totals.failed,
    color: ({ totals }) => (totals.failed > 0 ? "red" : undefined),
  },
  { title: "Latency", value: ({ totals }) => percentiles(totals.latency_ms) },
  { title: "Attempts took", value: ({ totals }) => percentiles(totals.attempt_ms) },
  { title: "Unfinished", value: unfinished, lines: true },
];

function perMinute(count: number, range: StatsRange): string {
  const rate = count / (STATS_RANGES[range].lengthMs / MINUTE_MS);
  return `${count} (${rateText(rate)} a minute)`;
}

function rateText(rate: number): string {
  return rate >= 10 || Number.isInteger(rate) ? String(Math.round(rate)) : rate.toFixed(rate < 1 ? 2 : 1);
}

function failedAttempts({ failed_attempts: failed, delivered }: Figures): string {
  return failed === 0 ? "0" : `${failed} (${((100 * failed) / (failed + delivered)).toFixed(1)} %)`;
}

function percentiles({ p50, p95, p99 }: Percentiles): string | undefined {
  return p50 === null ? undefined : `p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms`;
}

function unfinished({ backlog }: Stats): string {
  const lines = BACKLOG_CAUSES.flatMap((cause) => {
    const { deliveries, since } = backlog[cause];
    if (deliveries === 0) return [];
    return [`${deliveries} ${CAUSES[cause]}${since === null ? "" : ` since ${since}`}`];
  });
  if (!backlog.is_whole) lines.push("and more");
  return lines.length === 0 ? "none" : lines.join("\n");
}

const FIGURES: readonly Column<Figures>[] = [
  { title: "DELIVERED", value: ({ delivered }) => delivered, align: "right" },
  { title: "FAILED ATTEMPTS", value: ({ failed_attempts: failed }) => failed, align: "right" },
  {
    title: "FAILED",
    value: ({ failed }) => failed,
    align: "right",
    color: ({ failed }) => (failed > 0 ? "red" : undefined),
  },
  { title: "P50 MS", value: ({ latency_ms: latency }) => latency.p50, align: "right" },
  { title: "P95 MS", value: ({ latency_ms: latency }) => latency.p95, align: "right" },
];

export const ACTION_FIGURES: readonly Column<ActionFigures>[] = [
  { title: "ACTION", value: ({ action }) => action, shrinkTo: 12, keepWhole: true },
  { title: "PUBLISHED", value: ({ published }) => published, align: "right" },
  ...FIGURES,
  { title: "LAST PUBLISHED", value: ({ last_published_at: last }) => last, time: true, dropOrder: 2 },
];

export const SUBSCRIPTION_FIGURES: readonly Column<SubscriptionFigures>[] = [
  { title: "SUBSCRIPTION", value: subscriptionOf, shrinkTo: 12, keepWhole: true },
  { title: "ACTION", value: ({ action }) => action, shrinkTo: 10, dropOrder: 1 },
  ...FIGURES,
  { title: "ATTEMPT P50 MS", value: ({ attempt_ms: attempt }) => attempt.p50, align: "right", dropOrder: 2 },
  { title: "LAST ERROR", value: ({ last_error: error }) => error, shrinkTo: 8 },
];
