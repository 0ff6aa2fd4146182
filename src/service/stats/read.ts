import type { EvregError } from "../../domain/error.ts";
import { malformedField } from "../../domain/request.ts";
import {
  type ActionFigures,
  BACKLOG_CAUSES,
  floorTo,
  type Stats,
  STATS_LIMITS,
  STATS_QUERY,
  STATS_RANGES,
  STATS_SPANS,
  type StatsBacklog,
  type StatsBreakdown,
  type StatsQuery,
  type StatsRange,
  type StatsSeries,
  type SubscriptionFigures,
} from "../../domain/stats/stats.ts";
import { Tally } from "../../domain/stats/tally.ts";
import type { Answer } from "../../evreg.ts";
import { toIso } from "../../runtime/clock.ts";
import type { Backlog } from "../../store/queue.ts";
import type { StatsPiece, StatsSelection, StatsSubject } from "../../store/history.ts";
import type { Access } from "../auth.ts";
import type { ServiceContext } from "../context.ts";
import { checkQuery } from "../requests.ts";

/** What somebody asks for: figures of whom, and of which time. */
interface StatsRequest {
  readonly range: StatsRange;
  readonly stepMs: number;
  /** The start of the first step. */
  readonly fromMs: number;
  readonly nowMs: number;
  readonly steps: number;
  readonly filter: StatsSelection;
  readonly by: StatsBreakdown | undefined;
  readonly limit: number;
}

/** Tallies by the starts of steps, or by the rowids of actions or subscriptions. */
type Tallies = Map<number, Tally>;

type StatsParts = Pick<ServiceContext, "store" | "clock" | "stats">;

/** Answers figures over time, from what is stored of them. */
export async function readStats(
  parts: StatsParts,
  access: Access,
  query: StatsQuery = {},
): Promise<Answer<Stats>> {
  const { store, clock, stats } = parts;
  const selection = selectionOf(access, query, clock.now());
  const { range, fromMs, nowMs, stepMs, steps, filter, by, limit } = selection;
  await stats.writeRefused();
  const starts = Array.from({ length: steps }, (_, index) => fromMs + index * stepMs);
  const [unfinished, ofSteps, ofSubjects] = await Promise.all([
    store.queue.backlog(
      nowMs,
      Object.values(filter).some((value) => value !== undefined) ? filter : undefined,
    ),
    store.stats.figures({
      ...filter,
      by: "start",
      pieces: starts.map((startMs) => ({ spanMs: stepMs, startMs })),
    }),
    by === undefined ? [] : store.stats.figures({ ...filter, by, pieces: longPieces(selection) }),
  ]);
  const totals = new Tally();
  const tallies: Tallies = new Map();
  // This process has run since its start. The clock may have been set back since then.
  const startedMs = floorTo(Math.min(stats.startedMs, nowMs), stepMs);
  for (const startMs of starts) if (startMs >= startedMs) tallyOf(tallies, startMs);
  for (const { key, counts } of ofSteps) {
    totals.add(counts);
    tallyOf(tallies, key).add(counts);
  }
  const data = {
    range,
    from: toIso(fromMs),
    to: toIso(nowMs),
    step_ms: stepMs,
    series: seriesOf(starts.map((startMs) => tallies.get(startMs))),
    totals: totals.figures(),
    backlog: backlogOf(unfinished),
  };
  if (by === undefined) return { data };
  const rows: Tallies = new Map();
  for (const { key, counts, lastError } of ofSubjects) tallyOf(rows, key).add(counts, lastError);
  const first = [...rows].toSorted(([, one], [, other]) => other.weight - one.weight).map(([key]) => key);
  const subjects = await store.stats.subjects({ ...filter, by, first, limit });
  if (by === "action") return { data: { ...data, rows: subjects.map((one) => actionFigures(one, rows)) } };
  return { data: { ...data, rows: subjects.map((one) => subscriptionFigures(one, rows)) } };
}

/** @throws EvregError `malformed`, and `forbidden` without any right to read */
function selectionOf(access: Access, query: StatsQuery, nowMs: number): StatsRequest {
  const applications = access.readable(query.application);
  const { range = "1h", action, subscription, by, limit } = checkQuery(STATS_QUERY, query);
  if (subscription !== undefined && action !== undefined) throw notTogether("subscription", "action");
  if (by === "action" && subscription !== undefined) throw notTogether("by=action", "subscription");
  if (by === "subscription" && action !== undefined) throw notTogether("by=subscription", "action");
  const { lengthMs, stepMs } = STATS_RANGES[range];
  const steps = lengthMs / stepMs;
  return {
    range,
    stepMs,
    steps,
    nowMs,
    fromMs: floorTo(nowMs, stepMs) - (steps - 1) * stepMs,
    filter: { applications, action, subscription },
    by,
    limit: limit ?? STATS_LIMITS.rowsDefault,
  };
}

function notTogether(one: string, other: string): EvregError {
  return malformedField(one, `is not given together with ${other}: figures are kept by either alone`, null);
}

function seriesOf(steps: readonly (Tally | undefined)[]): StatsSeries {
  const latencies = steps.map((tally) => tally?.latency);
  return {
    published: steps.map((tally) => tally?.published ?? null),
    refused: steps.map((tally) => tally?.refused ?? null),
    delivered: steps.map((tally) => tally?.delivered ?? null),
    failed_attempts: steps.map((tally) => tally?.failedAttempts ?? null),
    failed: steps.map((tally) => tally?.failed ?? null),
    latency_p50_ms: latencies.map((latency) => latency?.p50 ?? null),
    latency_p95_ms: latencies.map((latency) => latency?.p95 ?? null),
    latency_p99_ms: latencies.map((latency) => latency?.p99 ?? null),
  };
}

function actionFigures(
  { id, action, application, lastPublishedMs }: StatsSubject,
  rows: Tallies,
): ActionFigures {
  const tally = tallyOf(rows, id);
  const last_published_at = lastPublishedMs === null ? null : toIso(lastPublishedMs);
  return { action, application, ...tally.figures(), last_published_at };
}

function subscriptionFigures(
  { id: subscription_id, application, subscription, action }: StatsSubject,
  rows: Tallies,
): SubscriptionFigures {
  const tally = tallyOf(rows, subscription_id);
  const names = { application, subscription: subscription!, action };
  return { subscription_id, ...names, ...tally.figures(), last_error: tally.lastError };
}

/** What a map has for a key, a new one where it has none. */
function tallyOf(tallies: Tallies, key: number): Tally {
  let tally = tallies.get(key);
  if (tally === undefined) tallies.set(key, (tally = new Tally()));
  return tally;
}

/** The whole time in the longest spans that fit. */
function longPieces({ fromMs, steps, stepMs }: StatsRequest): readonly StatsPiece[] {
  const toMs = fromMs + steps * stepMs;
  const pieces: StatsPiece[] = [];
  for (let startMs = fromMs; startMs < toMs;) {
    const { spanMs } = LONGEST_FIRST.find(
      (one) => startMs % one.spanMs === 0 && startMs + one.spanMs <= toMs,
    )!;
    pieces.push({ spanMs, startMs });
    startMs += spanMs;
  }
  return pieces;
}

const LONGEST_FIRST = STATS_SPANS.toReversed();

function backlogOf(backlog: Backlog): StatsBacklog {
  const shares = BACKLOG_CAUSES.map((cause) => {
    const { deliveries, sinceMs } = backlog[cause];
    return [cause, { deliveries, since: sinceMs === undefined ? null : toIso(sinceMs) }] as const;
  });
  return { ...Object.fromEntries(shares), is_whole: backlog.isWhole } as StatsBacklog;
}
