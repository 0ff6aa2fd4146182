/** Milliseconds. */
export interface LatencySummary {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** Keeps every value, so that percentiles are exact; a run has some hundred thousand at most. */
export class Latencies {
  readonly #values: number[] = [];

  add(ms: number): void {
    this.#values.push(ms);
  }

  summary(): LatencySummary {
    const sorted = Float64Array.from(this.#values).toSorted();
    return {
      count: sorted.length,
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
      maxMs: sorted.at(-1) ?? 0,
    };
  }
}

/** The smallest value that at least `share` of all are not above; 0 when there are none. */
function percentile(sorted: ArrayLike<number>, share: number): number {
  const place = Math.max(0, Math.ceil(sorted.length * share) - 1);
  return sorted[place] ?? 0;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
