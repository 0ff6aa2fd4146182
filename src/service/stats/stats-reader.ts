import {
  type ActionFigures,
  BACKLOG_CAUSES,
  DAY_MS,
  HOUR_MS,
  MINUTE_MS,
  STATS_RANGES,
  type Stats,
  type StatsBacklog,
  type StatsQuery,
  type SubscriptionFigures,
} from "../../domain/stats/stats.ts";
import type { Answer } from "../../evreg.ts";
import type { Series } from "../../metrics/stats/series.ts";
import type { Slot } from "../../metrics/stats/slot.ts";
import { addRun, type StatsCounts } from "../../metrics/stats/stats-counts.ts";
import { Tally } from "../../metrics/stats/tally.ts";
import { type Clock, toIso } from "../../runtime/clock.ts";
import type { Backlog } from "../../store/queue.ts";
import type { ActionSubject, StatsPiece, StatsSpan, SubscriptionSubject } from "../../store/stats.ts";
import type { Store } from "../../store/store.ts";
import type { Access } from "../auth.ts";
import { isSelected, type Selection, selectionOf } from "./selection.ts";
import { StoredReads } from "./stored-reads.ts";
import { fillMinute, seriesOf, type StepValues, valuesOf } from "./steps.ts";

interface ReaderParts {
  readonly store: Pick<Store, "queue" | "stats">;
  readonly clock: Clock;
  readonly stats: StatsCounts;
}

/** What was added up for an answer. */
interface Counted {
  readonly steps: StepValues;
  readonly totals: Tally;
  /** By action or subscription; empty without a breakdown. */
  readonly rows: ReadonlyMap<string | number, Tally>;
}

/** Reads are repeated while minutes are stored meanwhile: they would count twice, or not at all. */
const MAX_TRIES = 3;

/** Figures over time: of the last minutes from memory, of what was before from the store. */
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
    const isOfRings = selection.stepMs < MINUTE_MS;
    for (let tries = 1; ; tries += 1) {
      await stats.storing;
      const { stores } = stats;
      const counted = await (isOfRings ? this.#fromRings(selection) : this.#fromStore(selection));
      if (stats.stores === stores || tries === MAX_TRIES) return counted;
    }
  }

  /** By the rings; where they do not reach back far enough, an hour has minutes from the store. */
  async #fromRings(selection: Selection): Promise<Counted> {
    const { stats } = this.#parts;
    const { fromMs, nowMs, stepMs } = selection;
    const wholeFromMs = Math.max(fromMs, stats.wholeFromMs(stepMs));
    const minuteFromMs = Math.ceil(fromMs / MINUTE_MS) * MINUTE_MS;
    // With the minute of which the rings have a part: the process before may have stored another.
    const minuteToMs = Math.ceil(wholeFromMs / MINUTE_MS) * MINUTE_MS;
    const hasMinutes = stepMs === STATS_RANGES["1h"].stepMs && minuteToMs > minuteFromMs;
    const adding = new Adding(selection);
    const stepFromMs = Math.floor(wholeFromMs / stepMs) * stepMs;
    for (let atMs = stepFromMs; atMs <= nowMs; atMs += stepMs) adding.stepAt(atMs);
    stats.visitSteps(stepMs, fromMs, nowMs, (startMs, slot) => {
      const inMinutes = hasMinutes && startMs >= minuteFromMs && startMs < minuteToMs;
      if (inMinutes) adding.showSlot(stats, slot, startMs);
      else adding.addSlot(stats, slot, startMs);
    });
    if (!hasMinutes) return adding.counted();
    for (const { startMs, slot } of stats.unstored(nowMs)) {
      if (startMs >= minuteFromMs && startMs < minuteToMs) adding.addMinute(stats, slot, startMs);
    }
    const minutes = { span: 1, fromMs: minuteFromMs, toMs: minuteToMs } as const;
    await this.#addStored(adding, minutes, minutesBetween(minuteFromMs, minuteToMs));
    return adding.counted();
  }

  async #fromStore(selection: Selection): Promise<Counted> {
    const { stats } = this.#parts;
    const { fromMs, nowMs, stepMs } = selection;
    const adding = new Adding(selection);
    if (stats.startedMs <= nowMs) adding.stepAt(nowMs);
    for (const { startMs, slot } of stats.unstored(nowMs)) {
      if (startMs >= fromMs) adding.addSlot(stats, slot, startMs);
    }
    const span: StatsSpan = stepMs < HOUR_MS ? 1 : 60;
    // To the end of the minute, so that what is asked for stays the same for so long.
    const toMs = (Math.floor(nowMs / MINUTE_MS) + 1) * MINUTE_MS;
    await this.#addStored(adding, { span, fromMs, toMs }, piecesBetween(fromMs, toMs, span));
    return adding.counted();
  }

  async #addStored(
    adding: Adding,
    time: { readonly span: StatsSpan; readonly fromMs: number; readonly toMs: number },
    pieces: readonly StatsPiece[],
  ): Promise<void> {
    const { of, by, stepMs } = adding.selection;
    const own = Math.max(stepMs, MINUTE_MS);
    const [steps, totals] = await Promise.all([
      this.#reads.steps({ ...of, ...time, stepMs: own }),
      by === undefined ? [] : this.#reads.totals({ ...of, by, pieces }),
    ]);
    for (const { startMs, figures } of steps) {
      adding.totals.add(figures);
      if (own === stepMs) adding.stepAt(startMs).add(figures);
      else adding.minuteAt(startMs).add(figures);
    }
    for (const { action, subscription, figures } of totals) {
      adding.rowOf(by === "action" ? action : subscription).addEarlier(figures);
    }
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
  return { subscription_id, ...names, ...tally.figures(), last_error: tally.lastError ?? null };
}

/** Adds up what belongs to a selection. */
class Adding {
  readonly selection: Selection;
  readonly totals = new Tally();
  readonly #filter: (series: Series) => boolean;
  readonly #tallies: (Tally | undefined)[];
  /** By their starts: what is known of them as wholes. */
  readonly #minutes = new Map<number, Tally>();
  readonly #rows = new Map<string | number, Tally>();

  constructor(selection: Selection) {
    this.selection = selection;
    this.#filter = isSelected(selection);
    this.#tallies = Array.from({ length: selection.steps });
  }

  /** The step with that time, of which something is known. */
  stepAt(ms: number): Tally {
    const { fromMs, stepMs } = this.selection;
    return (this.#tallies[Math.floor((ms - fromMs) / stepMs)] ??= new Tally());
  }

  minuteAt(startMs: number): Tally {
    let tally = this.#minutes.get(startMs);
    if (tally === undefined) this.#minutes.set(startMs, (tally = new Tally()));
    return tally;
  }

  rowOf(key: string | number): Tally {
    let tally = this.#rows.get(key);
    if (tally === undefined) this.#rows.set(key, (tally = new Tally()));
    return tally;
  }

  addSlot(stats: StatsCounts, slot: Slot, startMs: number): void {
    this.#add(this.stepAt(startMs), stats, slot);
  }

  /** Adds what a minute had that is not stored yet. */
  addMinute(stats: StatsCounts, slot: Slot, startMs: number): void {
    this.#add(this.minuteAt(startMs), stats, slot);
  }

  /** Of a step whose minute is added as a whole. */
  showSlot(stats: StatsCounts, slot: Slot, startMs: number): void {
    const step = this.stepAt(startMs);
    for (const run of stats.runs(slot, this.#filter)) addRun(step, slot, run);
  }

  #add(into: Tally, stats: StatsCounts, slot: Slot): void {
    const { by, fromMs } = this.selection;
    for (const run of stats.runs(slot, this.#filter)) {
      const { action, subscription, lastError, lastErrorMs } = run.series;
      addRun(into, slot, run);
      addRun(this.totals, slot, run);
      const key = by === "action" ? action : subscription;
      if (by === undefined || key === "" || key === 0) continue;
      const row = this.rowOf(key);
      addRun(row, slot, run);
      if (lastError !== undefined && lastErrorMs >= fromMs) row.noteError(lastError, lastErrorMs);
    }
  }

  counted(): Counted {
    const { fromMs, stepMs } = this.selection;
    const steps = this.#tallies.map((tally) => tally && valuesOf(tally));
    for (const [startMs, minute] of this.#minutes) {
      fillMinute(steps, (startMs - fromMs) / stepMs, MINUTE_MS / stepMs, valuesOf(minute));
    }
    return { steps, totals: this.totals, rows: this.#rows };
  }
}

/**
 * The time in days where it has whole ones, else in hours, else in minutes, up to the end of the last `span`: as far as the steps
 * go, as a clock that was set back leaves figures behind them.
 */
function piecesBetween(fromMs: number, toMs: number, span: StatsSpan): readonly StatsPiece[] {
  const pieces: StatsPiece[] = [];
  const endMs = Math.ceil(toMs / (span * MINUTE_MS)) * span * MINUTE_MS;
  for (let atMs = fromMs; atMs < endMs;) {
    const [piece, spanMs] = SPANS.find(([, ms]) => atMs % ms === 0 && atMs + ms <= endMs) ?? [1, MINUTE_MS];
    pieces.push({ span: piece, startMs: atMs });
    atMs += spanMs;
  }
  return pieces;
}

const SPANS: readonly (readonly [StatsSpan, number])[] = [
  [1_440, DAY_MS],
  [60, HOUR_MS],
];

function minutesBetween(fromMs: number, toMs: number): readonly StatsPiece[] {
  const minutes = Array.from({ length: (toMs - fromMs) / MINUTE_MS });
  return minutes.map((_, index) => ({ span: 1, startMs: fromMs + index * MINUTE_MS }));
}

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
