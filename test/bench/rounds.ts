import { median } from "./latencies.ts";
import { atLeast, perSecond, type Row } from "./row.ts";

/** A rate a round, in the order of the rounds. */
export type Rates = readonly number[];

/** The median over rounds of one's rate by the other's in the same round. */
function ratio(measured: Rates, ceiling: Rates): number {
  return median(measured.map((rate, round) => rate / (ceiling[round] ?? Number.NaN)));
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
  readonly detail: unknown;
}

const HISTORY_TARGET = 0.9;

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
