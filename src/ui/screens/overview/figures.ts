import type { Stats, StatsRange } from "../../../domain/stats/stats.ts";

/** The ranges in words, and the time that rates in them are told for. */
export const RANGES: Readonly<
  Record<StatsRange, { readonly words: string; readonly per: string; readonly perMs: number }>
> = {
  "5m": { words: "5 min", per: "second", perMs: 1_000 },
  "1h": { words: "1 h", per: "minute", perMs: 60_000 },
  "24h": { words: "24 h", per: "minute", perMs: 60_000 },
  "7d": { words: "7 days", per: "hour", perMs: 3_600_000 },
};

type CountedSteps = Pick<Stats, "range" | "from" | "to" | "step_ms"> & {
  readonly series: Pick<Stats["series"], "delivered" | "published" | "failed_attempts">;
};

/** Steps of so much at most are left out while they are under way: the next look has them. */
const SHORT_STEP_MS = 10_000;

export type Rates = ReturnType<typeof ratesOf>;

/**
 * A chart of rates: each step's counts, over the time of its range (`perMs`), and the starts of the steps in seconds.
 * Nothing is extrapolated: where the time of a rate is longer than a step, each point tells the steps of that time up to it,
 * and what is under way counts as if no more came.
 */
export function ratesOf(stats: CountedSteps) {
  const { from, to, step_ms: stepMs, series, range } = stats;
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  const { perMs } = RANGES[range];
  const size = Math.max(1, Math.round(perMs / stepMs));
  const all = series.delivered.length;
  const isUnderWay = toMs < fromMs + all * stepMs;
  const steps = isUnderWay && stepMs <= SHORT_STEP_MS ? all - 1 : all;
  const points = Array.from({ length: Math.max(0, steps - size + 1) }, (_, index) => index + size - 1);
  const rates = (values: readonly (number | null)[]) =>
    points.map((last) => {
      const first = last - size + 1;
      const sum = values.slice(first, last + 1).reduce<number>((total, value) => total + (value ?? 0), 0);
      const spanMs = Math.min(toMs, fromMs + (last + 1) * stepMs) - (fromMs + first * stepMs);
      return (sum * perMs) / Math.max(perMs, spanMs);
    });
  return {
    times: points.map((last) => (fromMs + last * stepMs) / 1_000),
    delivered: rates(series.delivered),
    published: rates(series.published),
    failed: rates(series.failed_attempts),
  };
}
