import type { AttemptErrorCode } from "../domain/delivery.ts";
import { ATTEMPT_ERROR_CODES } from "../model/delivery.ts";
import { asEvregError, codeOfStatus, type EvregErrorCode } from "../domain/error.ts";
import type { BatchResult } from "../domain/event.ts";

/** Counts values by size. An observation takes a few nanoseconds. */
export class Histogram {
  /** Largest value of each bucket, ascending; one more bucket takes what is larger than all. */
  readonly bounds: readonly number[];
  /** How many values are in each bucket. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1;
    counts[bucket]! += 1;
    this.sum += value;
  }
}

/** Why an event was refused. A closed set, as it is a label. */
export const REFUSAL_REASONS = [
  "malformed",
  "unauthorized",
  "forbidden",
  "not_found",
  "conflict",
  "gone",
  "too_large",
  "unsupported_media_type",
  "invalid",
  "rate_limited",
  "unavailable",
  "internal",
  /** Nothing wrong with it; another item of its atomic batch was refused. */
  "withheld",
] as const satisfies readonly (EvregErrorCode | "withheld")[];
type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Published events since the start. Plain numbers, as every event adds to them. */
export class PublishCounts {
  /** Events stored. */
  single = 0;
  batch = 0;
  /** Events that evreg published about itself. */
  service = 0;
  /** Answered with an earlier event; nothing stored. */
  replayedSingle = 0;
  replayedBatch = 0;
  queuedDeliveries = 0;
  /** Made due by replays. */
  replayedDeliveries = 0;
  /** Had ended, and were made due again by a person. */
  retriedDeliveries = 0;
  readonly refused: Record<RefusalReason, number> = zeros(REFUSAL_REASONS);

  /** Events that evreg stored about itself. */
  countServiceEvents({ events, deliveries }: { readonly events: number; readonly deliveries: number }): void {
    this.service += events;
    this.queuedDeliveries += deliveries;
  }

  /** A request that was refused as a whole. */
  countRefusal(failure: unknown): void {
    this.#refuse(asEvregError(failure).code);
  }

  /** The items of a batch that were refused while the batch as a whole was answered. */
  countRefusedItems({ errors, meta }: BatchResult): void {
    for (const { code } of errors) this.#refuse(codeOfStatus(code));
    this.refused.withheld += meta.rejected - errors.length;
  }

  #refuse(code: EvregErrorCode): void {
    this.refused[REFUSAL_REASONS.find((reason) => reason === code) ?? "internal"] += 1;
  }
}

/** An answer's status as it is counted. A closed set, as it is a label; only `2xx` delivers. */
export const FAILED_STATUS_CLASSES = ["3xx", "4xx", "5xx", "other"] as const;
type FailedStatusClass = (typeof FAILED_STATUS_CLASSES)[number];

const ATTEMPT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Buckets go up to the longest wait between two attempts, as a delivery that needed retries counts as well. */
const LATENCY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 21_600];

interface EndedAttempt {
  readonly durationMs: number;
  readonly latencyMs?: number;
  readonly statusCode?: number;
  readonly errorCode?: AttemptErrorCode;
  readonly ending: string;
}

/** Attempts and deliveries since the start, over all runs of the engine. */
export class EngineCounts {
  /** Attempts under way now. */
  inFlight: () => number = () => 0;
  /** How many there may be; none before an engine ran. */
  capacity = { inFlight: 0, perSubscription: 0 };
  deliveredAttempts = 0;
  readonly failedByStatus: Record<FailedStatusClass, number> = zeros(FAILED_STATUS_CLASSES);
  /** An `interrupted` one was cut short by evreg; every other one failed. */
  readonly failedByError: Record<AttemptErrorCode, number> = zeros(ATTEMPT_ERROR_CODES);
  /** Deliveries that ended, once that is stored. */
  readonly finished = { delivered: 0, failed: 0, filtered: 0 };
  readonly attemptSeconds = new Histogram(ATTEMPT_SECONDS);
  /**
   * The time from an event to the end of the attempt that delivered it, all retries and waits included; not of deliveries
   * that were sent for a replay or a person, or again after a stop or crash.
   */
  readonly latencySeconds = new Histogram(LATENCY_SECONDS);

  /** An attempt that was started has ended. */
  attempted({ durationMs, latencyMs, statusCode, errorCode, ending }: EndedAttempt): void {
    this.attemptSeconds.observe(durationMs / 1_000);
    if (ending === "delivered") {
      this.deliveredAttempts += 1;
      if (latencyMs !== undefined) this.latencySeconds.observe(latencyMs / 1_000);
    } else if (errorCode !== undefined) this.failedByError[errorCode] += 1;
    else this.failedByStatus[statusClass(statusCode)] += 1;
  }
}

function statusClass(statusCode = 0): FailedStatusClass {
  const name = `${Math.floor(statusCode / 100)}xx`;
  return FAILED_STATUS_CLASSES.find((known) => known === name) ?? "other";
}

function zeros<K extends string>(names: readonly K[]): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>;
}

/** Buckets of what making a transaction durable takes. */
export const COMMIT_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
];
