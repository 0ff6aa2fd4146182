import { TimeHistogram } from "./histogram.ts";
import type { Figures, Percentiles } from "./stats.ts";

/** What is counted. The last two are followed by their buckets, see `histogram.ts`. */
export const MEASURE = {
  published: 0,
  refused: 1,
  delivered: 2,
  failedAttempts: 3,
  failed: 4,
  latency: 256,
  /** An attempt, delivered or not, by how long it took. */
  attempt: 512,
} as const;

/** How often something happened, by its measure. */
export type MeasureCounts = Record<string, number>;

const NO_TIMES: Percentiles = { p50: null, p95: null, p99: null };

/** What is added up to figures. */
export class Tally {
  published = 0;
  refused = 0;
  delivered = 0;
  failedAttempts = 0;
  failed = 0;
  lastError: string | null = null;
  #latency: TimeHistogram | undefined;
  #attempts: TimeHistogram | undefined;

  /** @param lastError of the last attempt that failed; later ones are added last */
  add(counts: MeasureCounts, lastError: string | null = null): void {
    this.lastError = lastError ?? this.lastError;
    for (const [measure, count] of Object.entries(counts)) this.#count(Number(measure), count);
  }

  #count(measure: number, count: number): void {
    if (measure === MEASURE.published) this.published += count;
    else if (measure === MEASURE.refused) this.refused += count;
    else if (measure === MEASURE.delivered) this.delivered += count;
    else if (measure === MEASURE.failedAttempts) this.failedAttempts += count;
    else if (measure === MEASURE.failed) this.failed += count;
    else if (measure >= MEASURE.attempt) {
      (this.#attempts ??= new TimeHistogram()).add(measure - MEASURE.attempt, count);
    } else if (measure >= MEASURE.latency) {
      (this.#latency ??= new TimeHistogram()).add(measure - MEASURE.latency, count);
    }
  }

  /** How much happened, for an order. */
  get weight(): number {
    return this.published + this.refused + this.delivered + this.failedAttempts + this.failed;
  }

  get latency(): Percentiles {
    return percentiles(this.#latency);
  }

  figures(): Figures {
    return {
      published: this.published,
      refused: this.refused,
      delivered: this.delivered,
      failed_attempts: this.failedAttempts,
      failed: this.failed,
      latency_ms: this.latency,
      attempt_ms: percentiles(this.#attempts),
    };
  }
}

function percentiles(histogram: TimeHistogram | undefined): Percentiles {
  if (histogram === undefined) return NO_TIMES;
  return { p50: histogram.percentile(50), p95: histogram.percentile(95), p99: histogram.percentile(99) };
}
