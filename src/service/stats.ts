import type { EvregError } from "../domain/error.ts";
import {
  type ActionFigures,
  floorTo,
  type Stats,
  STATS_LIMITS,
  STATS_QUERY,
  STATS_RANGES,
  STATS_SPANS,
  type StatsQuery,
  type StatsSeries,
  type SubscriptionFigures,
} from "../domain/stats/stats.ts";
import { type Clock, toIso } from "../runtime/clock.ts";
import type { StatsPiece, StatsSubject } from "../store/history.ts";
import type { StatsSelection } from "../store/queue.ts";
import { malformedField } from "../domain/request.ts";
import { Tally } from "../domain/stats/tally.ts";
import type { Answer } from "../evreg.ts";
import type { Access } from "./auth.ts";
import type { Store } from "../store/store.ts";
import { checkQuery } from "./requests.ts";

/** Tallies by the starts of steps, or by the rowids of actions or subscriptions. */
type Tallies = Map<number, Tally>;

/** Answers figures over time, from what is stored of them. */
export async function readStats(
  { store, clock }: { store: Pick<Store, "queue" | "stats">; clock: Clock },
  access: Access,
  query: StatsQuery = {},
): Promise<Answer<Stats>> {
  const filter = filterOf(access, query);
  const { range = "1h", by, limit = STATS_LIMITS.rowsDefault } = query;
  const { lengthMs, stepMs } = STATS_RANGES[range];
  const nowMs = clock.now();
  const toMs = floorTo(nowMs, stepMs) + stepMs;
  const fromMs = toMs - lengthMs;
  const starts = Array.from({ length: lengthMs / stepMs }, (_, index) => fromMs + index * stepMs);
  const [backlog, ofSteps, ofSubjects] = await Promise.all([
    store.queue.backlog(nowMs, filter),
    store.stats.figures({
      ...filter,
      by: "start",
      pieces: starts.map((startMs) => ({ spanMs: stepMs, startMs })),
    }),
    by === undefined ? [] : store.stats.figures({ ...filter, by, pieces: longPieces(fromMs, toMs) }),
  ]);
  const totals = new Tally();
  const tallies: Tallies = new Map();
  for (const { key, counts } of ofSteps) {
    totals.add(counts);
    tallyOf(tallies, key).add(counts);
  }
  const data = {
    range,
    from: toIso(fromMs),
    to: toIso(nowMs),
    step_ms: stepMs,
    series: seriesOf(starts.map((startMs) => tallyOf(tallies, startMs))),
    totals: totals.figures(),
    backlog,
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
function filterOf(access: Access, query: StatsQuery): StatsSelection {
  const applications = access.readable(query.application);
  const { action, subscription, by } = checkQuery(STATS_QUERY, query);
  if (subscription !== undefined && action !== undefined) throw notTogether("subscription", "action");
  if (by === "action" && subscription !== undefined) throw notTogether("by=action", "subscription");
  if (by === "subscription" && action !== undefined) throw notTogether("by=subscription", "action");
  return { applications, action, subscription };
}

function notTogether(one: string, other: string): EvregError {
  return malformedField(one, `is not given together with ${other}: figures are kept by either alone`, null);
}

function seriesOf(steps: readonly Tally[]): StatsSeries {
  const counts = steps.map((tally) => tally.counts());
  return {
    published: counts.map(({ published }) => published),
    delivered: counts.map(({ delivered }) => delivered),
    failed_attempts: counts.map(({ failed_attempts: failed }) => failed),
    failed: counts.map(({ failed }) => failed),
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
function longPieces(fromMs: number, toMs: number): readonly StatsPiece[] {
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
