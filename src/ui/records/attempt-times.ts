import { type Attempt, type Delivery, statusesBefore } from "../../domain/delivery.ts";
import { isThrottle, retryWaitMs } from "../../domain/retry.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { durationText } from "../parts/texts.ts";

/** A part of an attempt's time, placed on the scale of all attempts: 0 to `BAR_WIDTH`. */
interface BarPart {
  readonly kind: "dns" | "connect" | "first" | "rest" | "lost";
  readonly x: number;
  readonly width: number;
}

export const BAR_WIDTH = 100;
/** A short one can then be seen beside a long one. */
const LEAST_WIDTH = 1;

type Timed = Pick<Attempt, "duration_ms" | "dns_ms" | "connect_ms" | "first_byte_ms" | "error_code">;

/** What is known of an attempt's time, part by part. What has no answer is lost from where its last known part ends. */
function partsOf(attempt: Timed): readonly (readonly [kind: BarPart["kind"], ms: number])[] {
  const { duration_ms: wholeMs, dns_ms: dns, connect_ms: connect, first_byte_ms: first } = attempt;
  const known = (
    [
      ["dns", dns],
      ["connect", connect],
      ["first", first],
    ] as const
  ).flatMap(([kind, ms]) => (ms === null ? [] : [[kind, ms] as const]));
  const restMs = wholeMs - known.reduce((sum, [, ms]) => sum + ms, 0);
  // Without parts, nearly all of it was waiting for the answer.
  const last = attempt.error_code !== null ? "lost" : known.length > 0 ? "rest" : "first";
  return [...known, [last, Math.max(0, restMs)]];
}

/** The parts of an attempt, one behind the other. */
export function barParts(attempt: Timed, longestMs: number): readonly BarPart[] {
  const parts = partsOf(attempt);
  const scale =
    BAR_WIDTH /
    Math.max(
      1,
      longestMs,
      parts.reduce((sum, [, ms]) => sum + ms, 0),
    );
  let x = 0;
  return parts.flatMap(([kind, ms], index) => {
    if (ms === 0 && (index < parts.length - 1 || x > 0)) return [];
    const start = Math.min(x, BAR_WIDTH - LEAST_WIDTH);
    const width = Math.min(BAR_WIDTH - start, Math.max(LEAST_WIDTH, ms * scale));
    x = start + width;
    return [{ kind, x: start, width }];
  });
}

const PART_WORDS: Readonly<Record<BarPart["kind"], string>> = {
  dns: "DNS",
  connect: "connect",
  first: "first byte",
  rest: "rest",
  lost: "then no answer for",
};

/** `DNS 1.2 ms, connect 3 ms, first byte 80 ms, rest 4 ms`; without parts what the whole took. */
export function partsText(attempt: Timed): string {
  const parts = partsOf(attempt);
  if (parts.length === 1) return `${durationText(attempt.duration_ms)} in all`;
  return parts.map(([kind, ms]) => `${PART_WORDS[kind]} ${durationText(ms)}`).join(", ");
}

/** The settings of a subscription as it is now. */
type AttemptSchedule = Pick<Subscription, "retry_schedule" | "max_retries" | "on_exhausted">;

const AT_ONCE_MS = 250;
/** Past its wait an attempt also waits for its turn. */
const TURN_MS = 1_500;
const JITTER = 1.1;

/**
 * How long a delivery waited between two attempts, and why as far as that can be told.
 * @param schedule of its subscription; `undefined` if it is gone
 * @param usualWaitsMs the server's schedule, for a subscription without one
 */
export function gapText(
  before: Attempt,
  after: Attempt,
  schedule: AttemptSchedule | undefined,
  usualWaitsMs: readonly number[] | null,
): string {
  const waitedMs = Date.parse(after.started_at) - Date.parse(before.started_at) - before.duration_ms;
  if (waitedMs < AT_ONCE_MS && before.outcome !== "delivered") return "sent again at once";
  const waited = `waited ${durationText(Math.max(0, waitedMs))}`;
  if (before.outcome === "delivered") return `${waited}, then sent again by a person or a replay`;
  if (before.outcome === "returned") return `${waited}, and was taken up again`;
  if (schedule === undefined) return waited;
  // It had failed for good.
  if (before.attempt > schedule.max_retries && schedule.on_exhausted !== "block")
    return `${waited}, then sent again by a person or a replay`;
  const plannedMs = retryWaitMs(before.attempt, 0, schedule.retry_schedule ?? usualWaitsMs);
  if (waitedMs < plannedMs - AT_ONCE_MS) return `${waited}: sent again before its time`;
  if (waitedMs <= plannedMs * JITTER + TURN_MS) return `${waited}, by its schedule`;
  if (before.status_code !== null && isThrottle(before.status_code)) {
    return `${waited}: with ${before.status_code} the handler asked for a pause`;
  }
  return `${waited}: ${durationText(plannedMs)} by its schedule, the rest in the queue, paused or failed`;
}

const RETRIABLE = statusesBefore("retry requested");
const SKIPPABLE = statusesBefore("skipped");

/** Whether a person can have it sent again now. */
export function canRetry({ status }: Pick<Delivery, "status">): boolean {
  return RETRIABLE.has(status);
}

/** Whether it can be given up: it has failed so far, and has not ended. */
export function canSkip({ status, last_error: error }: Pick<Delivery, "status" | "last_error">): boolean {
  return error !== null && SKIPPABLE.has(status);
}
