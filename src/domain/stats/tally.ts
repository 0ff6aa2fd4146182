import type { Figures, Percentiles } from "./stats.ts";

/**
 * What is counted, by the numbers that are stored; 1 was what is refused. The last two are followed by their buckets, see
 * `bucketOf`.
 */
export const MEASURE = {
  published: 0,
  delivered: 2,
  failedAttempts: 3,
  failed: 4,
  latency: 256,
  /** An attempt, delivered or not, by how long it took. */
  attempt: 512,
} as const;

/** How often something happened, by its measure. */
export type MeasureCounts = Record<string, number>;

/** What is counted without a time. */
const COUNTED = {
  published: MEASURE.published,
  delivered: MEASURE.delivered,
  failed_attempts: MEASURE.failedAttempts,
  failed: MEASURE.failed,
} as const;

/** What is added up to figures. */
export class Tally {
  lastError: string | null = null;
  /** At the places of their measures. */
  readonly #counts = Array.from({ length: MEASURE.failed + 1 }, () => 0);
  #latency: TimeHistogram | undefined;
  #attempts: TimeHistogram | undefined;

  /** @param lastError of the last attempt that failed; later ones are added last */
  add(counts: MeasureCounts, lastError: string | null = null): void {
    this.lastError = lastError ?? this.lastError;
    for (const [measure, count] of Object.entries(counts)) this.#count(Number(measure), count);
  }

  #count(measure: number, count: number): void {
    if (measure < this.#counts.length) this.#counts[measure]! += count;
    else if (measure >= MEASURE.attempt) {
      (this.#attempts ??= new TimeHistogram()).add(measure - MEASURE.attempt, count);
    } else if (measure >= MEASURE.latency) {
      (this.#latency ??= new TimeHistogram()).add(measure - MEASURE.latency, count);
    }
  }

  /** How much happened, for an order. */
  get weight(): number {
    return Object.values(COUNTED).reduce<number>((sum, measure) => sum + this.#counts[measure]!, 0);
  }

  counts(): Record<keyof typeof COUNTED, number> {
    const counted = Object.entries(COUNTED).map(([name, measure]) => [name, this.#counts[measure]!]);
    return Object.fromEntries(counted) as Record<keyof typeof COUNTED, number>;
  }

  figures(): Figures {
    const times = { latency_ms: percentiles(this.#latency), attempt_ms: percentiles(this.#attempts) };
    return { ...this.counts(), ...times };
  }
}

function percentiles(histogram: TimeHistogram | undefined): Percentiles {
  const [p50, p95, p99] = [50, 95, 99].map((percent) => histogram?.percentile(percent) ?? null);
  return { p50: p50!, p95: p95!, p99: p99! };
}

// Times in buckets whose width grows with the time: whole milliseconds up to 15, then eight buckets from each power of two to
// the next. A bucket's middle is at most 6 % from any time in it. The buckets never change, so histograms of any two spans of
// time add up to that of both.

const EXACT = 16;
const PER_OCTAVE_BITS = 3;
const PER_OCTAVE = 1 << PER_OCTAVE_BITS;
const EXACT_BITS = 4;
/** 24 days; longer times count as this. */
const MAX_MS = 2 ** 31 - 1;

/** The buckets cover all times, from 0 ms on. */
export const BUCKETS = EXACT + (31 - EXACT_BITS) * PER_OCTAVE;

/** @param ms 0 or more */
export function bucketOf(ms: number): number {
  const whole = ms < MAX_MS ? Math.trunc(ms) : MAX_MS;
  if (whole < EXACT) return Math.max(0, whole);
  const octave = 31 - Math.clz32(whole);
  const place = (whole >>> (octave - PER_OCTAVE_BITS)) & (PER_OCTAVE - 1);
  return EXACT + (octave - EXACT_BITS) * PER_OCTAVE + place;
}

/** The time that stands for all of a bucket, in milliseconds. */
export function middleOf(bucket: number): number {
  if (bucket < EXACT) return bucket;
  const octave = EXACT_BITS + Math.floor((bucket - EXACT) / PER_OCTAVE);
  const width = 2 ** (octave - PER_OCTAVE_BITS);
  const low = (PER_OCTAVE + ((bucket - EXACT) % PER_OCTAVE)) * width;
  return Math.floor(low + (width - 1) / 2);
}

/** How many times fell into each bucket. */
export class TimeHistogram {
  readonly #counts = new Float64Array(BUCKETS);
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(bucket: number, count: number): void {
    // What a damaged file holds counts nowhere.
    if (bucket >= BUCKETS) return;
    this.#counts[bucket]! += count;
    this.#total += count;
  }

  /** The time that so many percent of all reached or stayed under, in milliseconds; `null` without any. */
  percentile(percent: number): number | null {
    if (this.#total === 0) return null;
    const rank = Math.max(1, Math.ceil((this.#total * percent) / 100));
    let seen = 0;
    const bucket = this.#counts.findIndex((count) => (seen += count) >= rank);
    return middleOf(bucket);
  }
}
