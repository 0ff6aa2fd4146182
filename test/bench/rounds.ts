import { type LatencySummary, median } from "./latencies.ts";
import type { Rig } from "./rig.ts";
import { atLeast, atMost, ms, perSecond, type Row, times } from "./row.ts";
import type { BenchServer } from "./server.ts";

/** Until the code that is run most is compiled; longer in the first round. */
export function warmUpMs(round: number): number {
  return round === 0 ? 2_000 : 300;
}

export interface Turns<C, T> {
  readonly scenario: string;
  /** What the servers are compared with. */
  readonly ceiling?: (round: number) => Promise<C>;
  /** By their names in the report. */
  readonly servers: ReadonlyMap<string, BenchServer>;
  readonly measure: (server: BenchServer, round: number) => Promise<T>;
  /** How many events a measurement was. */
  readonly eventsOf?: (result: T) => number;
}

/** Measures the ceiling and then each server, round by round, and retires them. Answers what came of each, in the order of the rounds. */
export async function inTurns<C, T>(rig: Rig, turns: Turns<C, T>) {
  const { scenario, ceiling, servers, measure, eventsOf } = turns;
  const ceilings: C[] = [];
  const measured = new Map([...servers.keys()].map((name): [string, T[]] => [name, []]));
  await rig.inRounds(scenario, async (round) => {
    if (ceiling !== undefined) ceilings.push(await ceiling(round));
    for (const [name, server] of servers) {
      const result = await rig.observe(scenario, name, server, () => measure(server, round), eventsOf);
      measured.get(name)!.push(result);
    }
  });
  for (const [name, server] of servers) await rig.retire(scenario, name, server);
  return { ceilings, measured };
}

/** A rate a round, in the order of the rounds. */
export type Rates = readonly number[];

/** The median over rounds of one figure by the other in the same round. */
export function ratio(measured: Rates, beside: Rates): number {
  return median(measured.map((rate, round) => rate / (beside[round] ?? Number.NaN)));
}

export interface RateComparison {
  readonly scenario: string;
  readonly ceiling: { readonly name: string; readonly rates: Rates };
  /** By the name of the server; all but the first are also compared with the first. */
  readonly servers: ReadonlyMap<string, Rates>;
  readonly target: number;
  readonly unit: string;
  /** Shown beside the rate, by the name of the server. */
  readonly notes?: ReadonlyMap<string, string>;
  readonly detail?: unknown;
}

export const HISTORY_TARGET = 0.9;

/** The first server beside the ceiling, and each other beside the first. */
export function rateRows(comparison: RateComparison): readonly Row[] {
  const { scenario, ceiling, servers, target, unit, notes, detail } = comparison;
  const [first, ...others] = [...servers];
  if (first === undefined) return [];
  const [firstName, firstRates] = first;
  const shown = (name: string, rates: Rates): string =>
    [`${perSecond(median(rates))} ${unit}`, notes?.get(name)].filter((part) => part !== undefined).join(", ");
  const rows: Row[] = [
    {
      scenario,
      ceiling: `${ceiling.name} ${perSecond(median(ceiling.rates))}`,
      measured: shown(firstName, firstRates),
      ...atLeast(ratio(firstRates, ceiling.rates), target),
      detail: { ceiling: ceiling.rates, servers: Object.fromEntries(servers), detail },
    },
  ];
  for (const [name, rates] of others) {
    rows.push({
      scenario: `${scenario}, ${name}`,
      ceiling: `${firstName} ${perSecond(median(firstRates))}`,
      measured: shown(name, rates),
      ...atLeast(ratio(rates, firstRates), HISTORY_TARGET),
      detail: { ratioToCeiling: ratio(rates, ceiling.rates) },
    });
  }
  return rows;
}

/** How much later the last of a hundred arrives beside something than alone: the median of the rounds' ratios. */
export function besideRow(
  scenario: string,
  alones: readonly LatencySummary[],
  besides: readonly LatencySummary[],
  most: number,
): Row {
  const [alone, beside] = [alones, besides].map((runs) => runs.map(({ p99Ms }) => p99Ms));
  return {
    scenario,
    ceiling: `alone ${latencies(alones)}`,
    measured: latencies(besides),
    ...atMost(ratio(beside!, alone!), most, (value) => `${times(value)} ×`),
    detail: { alones, besides },
  };
}

/** The medians of the rounds' percentiles. */
export function latencies(runs: readonly LatencySummary[]): string {
  const p50 = median(runs.map(({ p50Ms }) => p50Ms));
  const p99 = median(runs.map(({ p99Ms }) => p99Ms));
  return `p50 ${ms(p50)}, p99 ${ms(p99)}`;
}
