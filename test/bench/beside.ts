import { type LatencySummary, median } from "./latencies.ts";
import { ms, type Row } from "./row.ts";

/** How much later the last of a hundred arrives beside something than alone: the median of the rounds' ratios. */
export function besideRow(
  scenario: string,
  { alones, besides }: { alones: readonly LatencySummary[]; besides: readonly LatencySummary[] },
  most: number,
): Row {
  const ratio = median(besides.map(({ p99Ms }, round) => p99Ms / (alones[round]?.p99Ms ?? Number.NaN)));
  return {
    scenario,
    ceiling: `alone ${shown(alones)}`,
    measured: shown(besides),
    figure: `${ratio.toFixed(2)} ×`,
    target: `≤ ${most} ×`,
    met: ratio <= most,
    detail: { alones, besides },
  };
}

function shown(runs: readonly LatencySummary[]): string {
  const p50 = median(runs.map(({ p50Ms }) => p50Ms));
  const p99 = median(runs.map(({ p99Ms }) => p99Ms));
  return `p50 ${ms(p50)}, p99 ${ms(p99)}`;
}
