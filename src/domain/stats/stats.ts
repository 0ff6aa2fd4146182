import type { ANSWERS, COUNTED } from "../../model/answers.ts";
import { byAction, byApplication, inputSchema, rowid, type ValueOf } from "../request.ts";

/** The least that figures are kept of. */
export const TEN_SECONDS_MS = 10_000;
export const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The start of the span of time that this is in. */
export function floorTo(ms: number, spanMs: number): number {
  return Math.floor(ms / spanMs) * spanMs;
}

/** How long a range is, and its steps. */
export const STATS_RANGES = {
  "5m": { lengthMs: 5 * MINUTE_MS, stepMs: TEN_SECONDS_MS },
  "1h": { lengthMs: HOUR_MS, stepMs: TEN_SECONDS_MS },
  "24h": { lengthMs: DAY_MS, stepMs: 5 * MINUTE_MS },
  "7d": { lengthMs: 7 * DAY_MS, stepMs: HOUR_MS },
} as const satisfies Readonly<Record<string, { readonly lengthMs: number; readonly stepMs: number }>>;
export type StatsRange = keyof typeof STATS_RANGES;

export const STATS_LIMITS = {
  /** Rows of a breakdown. */
  rowsMax: 1_000,
  rowsDefault: 100,
} as const;

/** The spans of time that figures are counted by, and for how long they are kept: somewhat longer than for the ranges of those steps. */
export const STATS_SPANS = [
  { spanMs: TEN_SECONDS_MS, keptMs: 65 * MINUTE_MS },
  { spanMs: 5 * MINUTE_MS, keptMs: 25 * HOUR_MS },
  { spanMs: HOUR_MS, keptMs: 8 * DAY_MS },
] as const;

export const STATS_RANGE_NAMES = ["5m", "1h", "24h", "7d"] as const satisfies readonly StatsRange[];

export const STATS_BREAKDOWNS = ["action", "subscription"] as const;
export type StatsBreakdown = (typeof STATS_BREAKDOWNS)[number];

type Answers = typeof ANSWERS;

/** What happened in some time. */
export interface Figures extends ValueOf<Answers["Figures"]> {}

/** Times in milliseconds, to 6 %; `null` where there were none. */
export type Percentiles = Figures["latency_ms"];

/** A value for each step. */
export type StatsSeries = Readonly<Record<keyof typeof COUNTED, readonly number[]>>;

export interface ActionFigures extends ValueOf<Answers["ActionFigures"]> {}

export interface SubscriptionFigures extends ValueOf<Answers["SubscriptionFigures"]> {}

/**
 * Why deliveries are unfinished: each for one of these, and those of deleted subscriptions for none.
 *
 * - `due`: to be sent now, with nothing else of their subscriptions under way.
 * - `busy`: to be sent now, with others of their subscriptions under way.
 * - `paced`: to be sent now, for subscriptions with a rate limit, or to be taken by consumers.
 * - `waiting`: to be sent later: they are not due yet, their subscription waits, or another one comes first.
 * - `blocked`: behind one that has used up its retries and blocks its subscription or key.
 * - `delivering`: leased.
 * - `held`: of paused subscriptions.
 */
export const BACKLOG_CAUSES = ["due", "busy", "paced", "waiting", "blocked", "delivering", "held"] as const;
export type BacklogCause = (typeof BACKLOG_CAUSES)[number];

/** Unfinished deliveries with one cause. */
export interface BacklogShare extends ValueOf<Answers["BacklogShare"]> {}

/** What is unfinished now. */
export type StatsBacklog = Readonly<Record<BacklogCause, BacklogShare>> & {
  /** Whether all were counted. Otherwise there are at least so many of each. */
  readonly is_whole: boolean;
};

export interface Stats {
  readonly range: StatsRange;
  /** ISO 8601 UTC, the start of the first step. */
  readonly from: string;
  /** ISO 8601 UTC, now: within the last step. */
  readonly to: string;
  readonly step_ms: number;
  readonly series: StatsSeries;
  /** The figures of the whole range. */
  readonly totals: Figures;
  readonly backlog: StatsBacklog;
  /** The busiest first, then those with nothing; only with `by`. */
  readonly rows?: readonly ActionFigures[] | readonly SubscriptionFigures[];
}

const limit = {
  type: "integer",
  minimum: 1,
  maximum: STATS_LIMITS.rowsMax,
  default: STATS_LIMITS.rowsDefault,
  description: "How many rows with `by`.",
} as const;

export const STATS_QUERY = inputSchema("StatsQuery", {
  range: {
    type: "string",
    enum: STATS_RANGE_NAMES,
    default: "1h",
    description: "The time up to now, in steps of 10 s, 5 min or 1 h.",
  },
  action: byAction,
  subscription: {
    ...rowid,
    description: "Only the subscription with this rowid. Not together with `action`.",
  },
  application: byApplication,
  by: { type: "string", enum: STATS_BREAKDOWNS, description: "Adds totals for each action or subscription." },
  limit,
});
export type StatsQuery = ValueOf<typeof STATS_QUERY>;
