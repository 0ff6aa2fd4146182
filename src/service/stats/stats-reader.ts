import {
  type ActionFigures,
  BACKLOG_CAUSES,
  floorTo,
  HOUR_MS,
  MINUTE_MS,
  type Stats,
  type StatsBacklog,
  type StatsQuery,
  type SubscriptionFigures,
  TEN_SECONDS_MS,
} from "../../domain/stats/stats.ts";
import { Tally } from "../../domain/stats/tally.ts";
import type { Answer } from "../../evreg.ts";
import { type Clock, toIso } from "../../runtime/clock.ts";
import type { Backlog } from "../../store/queue.ts";
import {
  type ActionSubject,
  STATS_SPANS,
  type StatsPiece,
  type StatsSpan,
  type StatsTime,
  type SubscriptionSubject,
} from "../../store/history.ts";
import type { Store } from "../../store/store.ts";
import type { Access } from "../auth.ts";
import type { StatsRecorder } from "./recorder.ts";
import { type Selection, selectionOf } from "./selection.ts";
import { StoredReads } from "./stored-reads.ts";
import { seriesOf, stepValues, type StepValues } from "./steps.ts";

interface ReaderParts {
  readonly store: Pick<Store, "queue" | "stats">;
  readonly clock: Clock;
  readonly stats: Pick<StatsRecorder, "startedMs" | "folding" | "folds" | "writeRefused">;
}

/** What was added up for an answer. */
interface Counted {
  readonly steps: StepValues;
  readonly totals: Tally;
  /** By action or subscription; empty without a breakdown. */
  readonly rows: ReadonlyMap<string | number, Tally>;
}

/** Reads are repeated while counts are folded meanwhile: they would be in both places, or in none. */
const MAX_TRIES = 3;

/** Figures over time, from what is stored of them. */
export class StatsReader {
  readonly #parts: ReaderParts;
  readonly #reads: StoredReads;

  constructor(parts: ReaderParts) {
    this.#parts = parts;
    this.#reads = new StoredReads(parts.store.stats, parts.stats);
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
    const described = by === "action" ? this.#actions(selection, rows) : this.#subscriptions(selection, rows);
    return { data: { ...data, rows: await described } };
  }

  async #counted(selection: Selection): Promise<Counted> {
    const { stats } = this.#parts;
    await stats.writeRefused();
    for (let tries = 1; ; tries += 1) {
      await stats.folding;
      const { folds } = stats;
      const counted = await this.#readAll(selection);
      if (stats.folds === folds || tries === MAX_TRIES) return counted;
    }
  }

  async #readAll({ of, by, fromMs, nowMs, stepMs, steps }: Selection): Promise<Counted> {
    const { store, stats } = this.#parts;
    const ownMs = Math.max(stepMs, TEN_SECONDS_MS);
    const span = ownMs < MINUTE_MS ? "tenSeconds" : ownMs < HOUR_MS ? "minute" : "hour";
    const spanMs = STATS_SPANS[span];
    // To the end of a span, so that what is asked for stays the same for so long.
    const time = { fromMs: floorTo(fromMs, ownMs), toMs: floorTo(nowMs, spanMs) + spanMs };
    const [stored, storedRows, open] = await Promise.all([
      this.#reads.steps({ ...of, ...time, span, stepMs: ownMs }),
      by === undefined ? [] : this.#reads.totals({ ...of, by, pieces: piecesOf(time) }),
      store.stats.open({ ...of, ...time, by }),
    ]);
    const totals = new Tally();
    const tallies = new Map<number, Tally>();
    // The clock may have been set back since the start.
    for (let ms = Math.max(time.fromMs, Math.min(stats.startedMs, nowMs)); ms <= nowMs; ms += ownMs) {
      tallyOf(tallies, floorTo(ms, ownMs));
    }
    tallyOf(tallies, floorTo(nowMs, ownMs));
    for (const { startMs, figures } of [...stored, ...open.steps]) {
      totals.add(figures);
      tallyOf(tallies, floorTo(startMs, ownMs)).add(figures);
    }
    const rows = new Map<string | number, Tally>();
    for (const { subject, figures } of [...storedRows, ...open.totals]) tallyOf(rows, subject).add(figures);
    return { steps: stepValues(tallies, { fromMs, nowMs, stepMs, ownMs, steps }), totals, rows };
  }

  async #actions(
    { of, limit }: Selection,
    rows: ReadonlyMap<string | number, Tally>,
  ): Promise<readonly ActionFigures[]> {
    const found = await this.#parts.store.stats.actions({ ...of, first: busiest(rows), limit });
    return found.map((action) => actionFigures(action, rows.get(action.action)));
  }

  async #subscriptions(
    { of, limit }: Selection,
    rows: ReadonlyMap<string | number, Tally>,
  ): Promise<readonly SubscriptionFigures[]> {
    const found = await this.#parts.store.stats.subscriptions({ ...of, first: busiest(rows), limit });
    return found.map((subscription) => subscriptionFigures(subscription, rows.get(subscription.id)));
  }
}

function actionFigures(
  { action, application, lastPublishedMs }: ActionSubject,
  tally: Tally = new Tally(),
): ActionFigures {
  const last_published_at = lastPublishedMs === null ? null : toIso(lastPublishedMs);
  return { action, application, ...tally.figures(), last_published_at };
}

function subscriptionFigures(
  { id: subscription_id, ...names }: SubscriptionSubject,
  tally: Tally = new Tally(),
): SubscriptionFigures {
  return { subscription_id, ...names, ...tally.figures(), last_error: tally.lastError };
}

/** What a map has for a key, a new one where it has none. */
function tallyOf<K>(tallies: Map<K, Tally>, key: K): Tally {
  let tally = tallies.get(key);
  if (tally === undefined) tallies.set(key, (tally = new Tally()));
  return tally;
}

/** The time in the longest spans that fit. */
function piecesOf({ fromMs, toMs }: StatsTime): readonly StatsPiece[] {
  const pieces: StatsPiece[] = [];
  for (let startMs = fromMs; startMs < toMs;) {
    const span = LONGEST_FIRST.find(
      (one) => startMs % STATS_SPANS[one] === 0 && startMs + STATS_SPANS[one] <= toMs,
    )!;
    pieces.push({ span, startMs });
    startMs += STATS_SPANS[span];
  }
  return pieces;
}

const LONGEST_FIRST = ["day", "hour", "minute", "tenSeconds"] as const satisfies readonly StatsSpan[];

/** The keys of those with the most, the most first. */
function busiest(rows: ReadonlyMap<string | number, Tally>): readonly (string | number)[] {
  return [...rows].toSorted(([, one], [, other]) => other.weight - one.weight).map(([key]) => key);
}

function backlogOf(backlog: Backlog): StatsBacklog {
  const shares = BACKLOG_CAUSES.map((cause) => {
    const { deliveries, sinceMs } = backlog[cause];
    return [cause, { deliveries, since: sinceMs === undefined ? null : toIso(sinceMs) }] as const;
  });
  return { ...Object.fromEntries(shares), is_whole: backlog.isWhole } as StatsBacklog;
}
