import { TimeHistogram } from "../../domain/stats/histogram.ts";
import type { Figures, Percentiles } from "../../domain/stats/stats.ts";
import { MEASURE } from "./slot.ts";

/** Figures as they are stored. */
export interface StoredFigures {
  readonly published: number;
  readonly refused: number;
  readonly delivered: number;
  readonly failedAttempts: number;
  readonly failed: number;
  /** Histograms, see `TimeHistogram.encoded`. */
  readonly latency: string;
  readonly attempts: string;
  /** Of the last attempt that failed. */
  readonly lastError: string | null;
}

const NO_TIMES: Percentiles = { p50: null, p95: null, p99: null };

/** What is added up to figures. */
export class Tally {
  published = 0;
  refused = 0;
  delivered = 0;
  failedAttempts = 0;
  failed = 0;
  lastError: string | undefined;
  #lastErrorMs = -Infinity;
  #latency: TimeHistogram | undefined;
  #attempts: TimeHistogram | undefined;

  /** @param measure see `MEASURE` */
  count(measure: number, count: number): void {
    if (measure === MEASURE.published) this.published += count;
    else if (measure === MEASURE.refused) this.refused += count;
    else if (measure === MEASURE.failed) this.failed += count;
    else if (measure < MEASURE.delivered) {
      this.#latency ??= new TimeHistogram();
      this.#latency.add(measure - MEASURE.latency, count);
    } else {
      const hasFailed = measure >= MEASURE.failedAttempt;
      if (hasFailed) this.failedAttempts += count;
      else this.delivered += count;
      this.#attempts ??= new TimeHistogram();
      this.#attempts.add(measure - (hasFailed ? MEASURE.failedAttempt : MEASURE.delivered), count);
    }
  }

  /** The last of those that are noted is kept. */
  noteError(error: string, atMs: number): void {
    if (atMs < this.#lastErrorMs) return;
    this.#lastErrorMs = atMs;
    this.lastError = error;
  }

  /** @param stored later ones last */
  add(stored: StoredFigures): void {
    this.published += stored.published;
    this.refused += stored.refused;
    this.delivered += stored.delivered;
    this.failedAttempts += stored.failedAttempts;
    this.failed += stored.failed;
    this.lastError = stored.lastError ?? this.lastError;
    if (stored.latency !== "") (this.#latency ??= new TimeHistogram()).addEncoded(stored.latency);
    if (stored.attempts !== "") (this.#attempts ??= new TimeHistogram()).addEncoded(stored.attempts);
  }

  /** Adds what was before all that was added. */
  addEarlier(stored: StoredFigures): void {
    const { lastError } = this;
    this.add(stored);
    this.lastError = lastError ?? this.lastError;
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

  stored(): StoredFigures {
    return {
      published: this.published,
      refused: this.refused,
      delivered: this.delivered,
      failedAttempts: this.failedAttempts,
      failed: this.failed,
      latency: this.#latency?.encoded() ?? "",
      attempts: this.#attempts?.encoded() ?? "",
      lastError: this.lastError ?? null,
    };
  }
}

function percentiles(histogram: TimeHistogram | undefined): Percentiles {
  if (histogram === undefined) return NO_TIMES;
  return { p50: histogram.percentile(50), p95: histogram.percentile(95), p99: histogram.percentile(99) };
}
