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
import { type Clock, toIso } from "../../runtime/clock.ts";
import type { Backlog } from "../../store/queue.ts";
import type { StatsPiece, StatsSelection, StatsSubject, StatsTime } from "../../store/history.ts";
import type { Store } from "../../store/store.ts";
import type { Access } from "../auth.ts";
import { checkQuery } from "../requests.ts";
import type { StatsRecorder } from "./recorder.ts";

interface ReaderParts {
  readonly store: Pick<Store, "queue" | "stats">;
  readonly clock: Clock;
  readonly stats: Pick<StatsRecorder, "startedMs" | "writeRefused">;
}

/** Whose figures are asked for, and of which time. */
interface Selection {
  readonly range: StatsRange;
  readonly stepMs: number;
  /** The start of the first step. */
  readonly fromMs: number;
  readonly nowMs: number;
  readonly steps: number;
  readonly of: StatsSelection;
  readonly by: StatsBreakdown | undefined;
  readonly limit: number;
}

/** What was added up for an answer. */
interface Counted {
  /** Of each step; `undefined` where nothing is known. */
  readonly steps: readonly (Tally | undefined)[];
  readonly totals: Tally;
  /** By the rowid of the action or subscription; empty without a breakdown. */
  readonly rows: ReadonlyMap<number, Tally>;
}

/** Figures over time, from what is stored of them. */
export class StatsReader {
  readonly #parts: ReaderParts;

  constructor(parts: ReaderParts) {
    this.#parts = parts;
  }

  async read(access: Access, query: StatsQuery = {}): Promise<Answer<Stats>> {
    const { clock, store } = this.#parts;
    const selection = selectionOf(access, query, clock.now());
    const { range, fromMs, nowMs, stepMs, of, by } = selection;
    const isLimited = Object.values(of).some((value) => value !== undefined);
    const [unfinished, { steps, totals, rows }] = await Promise.all([
      store.queue.backlog(nowMs, isLimited ? of : undefined),
      this.#counted(selection),
    ]);
    const data = {
      range,
      from: toIso(fromMs),
      to: toIso(nowMs),
      step_ms: stepMs,
      series: seriesOf(steps),
      totals: totals.figures(),
      backlog: backlogOf(unfinished),
    };
    if (by === undefined) return { data };
    const first = busiest(rows);
    const subjects = await store.stats.subjects({ ...of, by, first, limit: selection.limit });
    if (by === "action") return { data: { ...data, rows: subjects.map((one) => actionFigures(one, rows)) } };
    return { data: { ...data, rows: subjects.map((one) => subscriptionFigures(one, rows)) } };
  }

  async #counted({ of, by, fromMs, nowMs, stepMs, steps }: Selection): Promise<Counted> {
    const { store, stats } = this.#parts;
    await stats.writeRefused();
    const time = { fromMs, toMs: fromMs + steps * stepMs };
    const starts = Array.from({ length: steps }, (_, index) => fromMs + index * stepMs);
    const pieces = starts.map((startMs) => ({ spanMs: stepMs, startMs }));
    const [figures, ofSubjects] = await Promise.all([
      store.stats.figures({ ...of, by: "start", pieces }),
      by === undefined ? [] : store.stats.figures({ ...of, by, pieces: piecesOf(time) }),
    ]);
    const totals = new Tally();
    const tallies = new Map<number, Tally>();
    // This process has run since its start. The clock may have been set back since then.
    const startedMs = floorTo(Math.min(stats.startedMs, nowMs), stepMs);
    for (const startMs of starts) if (startMs >= startedMs) tallyOf(tallies, startMs);
    for (const { key, counts } of figures) {
      totals.add(counts);
      tallyOf(tallies, key).add(counts);
    }
    const rows = new Map<number, Tally>();
    for (const { key, counts, lastError } of ofSubjects) tallyOf(rows, key).add(counts, lastError);
    return { steps: starts.map((startMs) => tallies.get(startMs)), totals, rows };
  }
}

/** @throws EvregError `malformed`, and `forbidden` without any right to read */
function selectionOf(access: Access, query: StatsQuery, nowMs: number): Selection {
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
    of: { applications, action, subscription },
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

type Rows = Counted["rows"];

function actionFigures(
  { id, action, application, lastPublishedMs }: StatsSubject,
  rows: Rows,
): ActionFigures {
  const tally = rows.get(id) ?? new Tally();
  const last_published_at = lastPublishedMs === null ? null : toIso(lastPublishedMs);
  return { action, application, ...tally.figures(), last_published_at };
}

function subscriptionFigures(
  { id: subscription_id, application, subscription, action }: StatsSubject,
  rows: Rows,
): SubscriptionFigures {
  const tally = rows.get(subscription_id) ?? new Tally();
  const names = { application, subscription: subscription!, action };
  return { subscription_id, ...names, ...tally.figures(), last_error: tally.lastError };
}

/** What a map has for a key, a new one where it has none. */
function tallyOf(tallies: Map<number, Tally>, key: number): Tally {
  let tally = tallies.get(key);
  if (tally === undefined) tallies.set(key, (tally = new Tally()));
  return tally;
}

/** The time in the longest spans that fit. */
function piecesOf({ fromMs, toMs }: StatsTime): readonly StatsPiece[] {
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

/** The keys of those with the most, the most first. */
function busiest(rows: ReadonlyMap<number, Tally>): readonly number[] {
  return [...rows].toSorted(([, one], [, other]) => other.weight - one.weight).map(([key]) => key);
}

function backlogOf(backlog: Backlog): StatsBacklog {
  const shares = BACKLOG_CAUSES.map((cause) => {
    const { deliveries, sinceMs } = backlog[cause];
    return [cause, { deliveries, since: sinceMs === undefined ? null : toIso(sinceMs) }] as const;
  });
  return { ...Object.fromEntries(shares), is_whole: backlog.isWhole } as StatsBacklog;
}
