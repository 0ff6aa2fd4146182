import {
  BACKLOG_CAUSES,
  type Column,
  type Stats,
  type StatsBacklog,
  type StatsQuery,
  type StatsSeries,
} from "../../domain/stats/stats.ts";
import type { Answer } from "../../evreg.ts";
import type { StatsCounts } from "../../metrics/stats/stats-counts.ts";
import { Tally } from "../../metrics/stats/tally.ts";
import { type Clock, toIso } from "../../runtime/clock.ts";
import type { Backlog } from "../../store/queue.ts";
import type { Store } from "../../store/store.ts";
import type { Access } from "../auth.ts";
import { isSelected, type Selection, selectionOf } from "./selection.ts";

interface ReaderParts {
  readonly store: Pick<Store, "queue">;
  readonly clock: Clock;
  readonly stats: StatsCounts;
}

/** Figures over time, of what was counted. */
export class StatsReader {
  readonly #parts: ReaderParts;

  constructor(parts: ReaderParts) {
    this.#parts = parts;
  }

  async read(access: Access, query: StatsQuery = {}): Promise<Answer<Stats>> {
    const { clock, store } = this.#parts;
    const selection = selectionOf(access, query, clock.now());
    const { range, fromMs, nowMs, stepMs, applications, action, subscription } = selection;
    const isLimited = applications !== undefined || action !== undefined || subscription !== undefined;
    const of = isLimited ? { applications, action, subscription } : undefined;
    const counting = store.queue.backlog(nowMs, of);
    const { series, totals } = this.#counted(selection);
    const backlog = backlogOf(await counting);
    const span = { range, from: toIso(fromMs), to: toIso(nowMs), step_ms: stepMs };
    return { data: { ...span, series, totals: totals.figures(), backlog } };
  }

  #counted(selection: Selection): { readonly series: StatsSeries; readonly totals: Tally } {
    const { stats } = this.#parts;
    const { fromMs, nowMs, stepMs, steps } = selection;
    const filter = isSelected(selection);
    const totals = new Tally();
    const tallies: (Tally | undefined)[] = Array.from({ length: steps });
    const knownFrom = Math.max(0, Math.floor((stats.knownFromMs(stepMs) - fromMs) / stepMs));
    for (let step = knownFrom; step < steps; step += 1) tallies[step] = new Tally();
    stats.visitSteps(stepMs, fromMs, nowMs, (startMs, slot) => {
      const tally = tallies[(startMs - fromMs) / stepMs];
      stats.visit(slot, filter, (_series, measure, count) => {
        tally?.count(measure, count);
        totals.count(measure, count);
      });
    });
    return { series: seriesOf(tallies), totals };
  }
}

/** @param tallies of each step; `undefined` where nothing is known */
function seriesOf(tallies: readonly (Tally | undefined)[]): StatsSeries {
  const column = (valueOf: (tally: Tally) => number | null): Column =>
    tallies.map((tally) => (tally === undefined ? null : valueOf(tally)));
  const latencies = tallies.map((tally) => tally?.latency);
  return {
    published: column(({ published }) => published),
    refused: column(({ refused }) => refused),
    delivered: column(({ delivered }) => delivered),
    failed_attempts: column(({ failedAttempts }) => failedAttempts),
    failed: column(({ failed }) => failed),
    latency_p50_ms: latencies.map((latency) => latency?.p50 ?? null),
    latency_p95_ms: latencies.map((latency) => latency?.p95 ?? null),
    latency_p99_ms: latencies.map((latency) => latency?.p99 ?? null),
  };
}

function backlogOf(backlog: Backlog): StatsBacklog {
  const shares = BACKLOG_CAUSES.map((cause) => {
    const { deliveries, sinceMs } = backlog[cause];
    return [cause, { deliveries, since: sinceMs === undefined ? null : toIso(sinceMs) }] as const;
  });
  return {
    ...(Object.fromEntries(shares) as Omit<StatsBacklog, "is_whole">),
    is_whole: backlog.isWhole,
  } as StatsBacklog;
}
