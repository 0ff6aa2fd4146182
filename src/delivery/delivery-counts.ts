import { ATTEMPT_ERROR_CODES, type AttemptErrorCode } from "../domain/delivery.ts";
import { Histogram } from "../runtime/histogram.ts";
import type { Capacity } from "./capacity.ts";
import type { AttemptResult, EndedCounts } from "../store/finishes.ts";

/** An answer's status as it is counted. A closed set, as it is a label; only `2xx` delivers. */
export const FAILED_STATUS_CLASSES = ["3xx", "4xx", "5xx", "other"] as const;
type FailedStatusClass = (typeof FAILED_STATUS_CLASSES)[number];

const ATTEMPT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Up to the longest wait between two attempts, as a delivery that needed retries counts as well. */
const LATENCY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 21_600];

/** What came of attempts and deliveries since the start, over all runs of the engine. */
export class DeliveryCounts {
  /** Attempts under way now. */
  inFlight: () => number = () => 0;
  /** How many there may be: none before an engine ran. */
  capacity: Pick<Capacity, "inFlight" | "perSubscription"> = { inFlight: 0, perSubscription: 0 };
  deliveredAttempts = 0;
  readonly failedByStatus: Record<FailedStatusClass, number> = zeros(FAILED_STATUS_CLASSES);
  /** `interrupted` is handed back and tried again; every other one failed. */
  readonly failedByError: Record<AttemptErrorCode, number> = zeros(ATTEMPT_ERROR_CODES);
  /** Deliveries that came to their end, once that is stored. */
  readonly finished = { delivered: 0, failed: 0, filtered: 0 };
  readonly attemptSeconds = new Histogram(ATTEMPT_SECONDS);
  /**
   * From an event's time to the end of the attempt that delivered it, all retries and waits included; not of deliveries
   * that were sent for a replay or a person, or again after a stop or crash.
   */
  readonly latencySeconds = new Histogram(LATENCY_SECONDS);

  /**
   * An attempt that was begun has ended.
   * @param publishedAtMs of its event, if the time since then counts
   */
  attempted(
    { startedAtMs, durationMs, statusCode, errorCode, next }: AttemptResult,
    publishedAtMs: number | undefined,
  ): void {
    this.attemptSeconds.observe(durationMs / 1_000);
    if (next.kind === "delivered") {
      this.deliveredAttempts += 1;
      if (publishedAtMs === undefined) return;
      // The clock may have been set back meanwhile.
      this.latencySeconds.observe(Math.max(0, startedAtMs + durationMs - publishedAtMs) / 1_000);
    } else if (errorCode !== undefined) this.failedByError[errorCode] += 1;
    else this.failedByStatus[statusClass(statusCode)] += 1;
  }

  /** Deliveries have come to their end, and that is stored. */
  ended({ delivered, failed, filtered }: EndedCounts): void {
    this.finished.delivered += delivered;
    this.finished.failed += failed;
    this.finished.filtered += filtered;
  }
}

function statusClass(statusCode: number | undefined): FailedStatusClass {
  switch (Math.floor((statusCode ?? 0) / 100)) {
    case 3:
      return "3xx";
    case 4:
      return "4xx";
    case 5:
      return "5xx";
    default:
      return "other";
  }
}

function zeros<K extends string>(names: readonly K[]): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>;
}
