import { LEAST_BLOCKED_WAIT_MS, retryWaitMs } from "../../domain/retry.ts";
import type { OnExhausted } from "../../domain/subscription-settings.ts";
import { toIso } from "../../runtime/clock.ts";
import type { AttemptResult } from "../queue.ts";

/** What a store has of a delivery while an attempt of it is under way. */
export interface AttemptedDelivery {
  /** Failed attempts before this one that count against the retries. */
  readonly failures: number;
  readonly lastError: string | null;
  /** The key of a delivery that has a place in an order. */
  readonly key: number | null;
}

/** The settings of a subscription that are in force as the result is stored. */
export interface SettingsInForce {
  readonly handler: string;
  readonly maxRetries: number;
  readonly onExhausted: OnExhausted | null;
  /** The waits before its retries; the server's schedule where it has none of its own; `null` where the waits double. */
  readonly retryScheduleMs: readonly number[] | null;
}

/** What decides of all that an attempt reports. */
export type AttemptFacts = Pick<
  AttemptResult,
  "ending" | "statusCode" | "errorCode" | "handler" | "retryAfterMs" | "slowUntilMs" | "jitter"
>;

/**
 * What becomes of a delivery, and what its attempt says of the handler. `DELIVERY_TRANSITIONS` has the ways from one status to
 * another that there are.
 */
export interface DeliveryVerdict {
  readonly state: "pending" | "delivered" | "failed" | "filtered";
  /** How the attempt is recorded, where one was made. */
  readonly attempt?: "delivered" | "failed" | "returned";
  /** What else changes of a delivery, where anything does. `dueMs` is `null` where it has ended. */
  readonly moved?: {
    readonly failures: number;
    readonly lastError: string | null;
    readonly dueMs: number | null;
  };
  readonly retryAtMs?: number | undefined;
  /** Whether its subscription, or its key, is blocked by it from now on. */
  readonly startsBlocking?: boolean;
  /** What the attempt says of the handler that the subscription has by now, where it says anything. */
  readonly handler?: "accepts" | "fails" | "is gone" | undefined;
  readonly slowedUntilMs?: number | undefined;
}

/**
 * Decides what becomes of a delivery: what was accepted is delivered, what was cut short or never started counts for nothing,
 * and all else is a failure that is retried `maxRetries` times. In an order that blocks it is retried for as long as it takes.
 */
export function verdictOn(
  facts: AttemptFacts,
  delivery: AttemptedDelivery,
  settings: SettingsInForce,
  nowMs: number,
): DeliveryVerdict {
  const { failures, lastError, key } = delivery;
  switch (facts.ending) {
    case "delivered": {
      const moved = { failures, lastError: null, dueMs: null };
      return { state: "delivered", attempt: "delivered", moved, handler: "accepts" };
    }
    case "filtered":
      return { state: "filtered", moved: { failures, lastError, dueMs: null } };
    case "never started":
      return { state: "pending" };
    case "interrupted":
      return { state: "pending", attempt: "returned", moved: { failures, lastError, dueMs: nowMs } };
    case "failed":
    case "gone":
      break;
  }
  const { maxRetries, onExhausted } = settings;
  const { handler, slowUntilMs } = facts;
  const isSameHandler = handler === undefined || handler === settings.handler;
  const isGone = facts.ending === "gone" && isSameHandler;
  const blocks = key !== null && onExhausted === "block";
  const isExhausted = failures >= maxRetries;
  const isRetried = blocks || (!isExhausted && !isGone);
  const leastMs = blocks && isExhausted ? LEAST_BLOCKED_WAIT_MS : 0;
  // The handler may ask for a longer wait than the schedule has, not for a shorter one.
  const scheduledMs = retryWaitMs(failures + 1, facts.jitter ?? 0, settings.retryScheduleMs);
  const waitMs = facts.ending === "gone" ? 0 : Math.max(leastMs, scheduledMs, facts.retryAfterMs ?? 0);
  const retryAtMs = isRetried ? Math.ceil(nowMs + waitMs) : undefined;
  const { statusCode, errorCode } = facts;
  const error = errorCode ?? (statusCode === undefined ? "network_error" : `HTTP ${statusCode}`);
  return {
    state: isRetried ? "pending" : "failed",
    attempt: "failed",
    moved: { failures: failures + 1, lastError: error, dueMs: retryAtMs ?? null },
    retryAtMs,
    startsBlocking: blocks && failures === maxRetries,
    handler: isGone ? "is gone" : isSameHandler ? "fails" : undefined,
    slowedUntilMs: isSameHandler ? slowUntilMs : undefined,
  };
}

/** What is known of a handler, with its subscription. Times are milliseconds since the epoch; `null` for none. */
export interface HandlerHealth {
  readonly isActive: boolean;
  /** Why its subscription is deactivated by the attempts of one call. */
  readonly disabledReason: string | null;
  /** When the first attempt since the last success failed. */
  readonly failingSinceMs: number | null;
  readonly lastFailureMs: number | null;
  /** What counts of the time between failed attempts since the last success. */
  readonly failingTotalMs: number;
  /** No attempt starts before this: the handler wants a pause. */
  readonly slowedUntilMs: number | null;
}

/**
 * Answers what is known of a handler after an attempt, and whether its subscription goes on.
 * @param disableAfterMs `undefined` where no subscription is deactivated for failing
 * @returns the same object where nothing has changed
 */
export function healthAfter(
  before: HandlerHealth,
  { handler, moved, slowedUntilMs }: Pick<DeliveryVerdict, "handler" | "moved" | "slowedUntilMs">,
  nowMs: number,
  disableAfterMs: number | undefined,
): HandlerHealth {
  // An answer that asks for less does not cut a wait short.
  const untilMs = Math.max(before.slowedUntilMs ?? 0, Math.ceil(slowedUntilMs ?? 0));
  const health = slowedUntilMs === undefined ? before : { ...before, slowedUntilMs: untilMs };
  if (handler === "accepts") return afterSuccess(health, nowMs);
  if (handler === undefined || !health.isActive) return health;
  if (handler === "is gone") {
    return { ...health, lastFailureMs: nowMs, isActive: false, disabledReason: GONE_REASON };
  }
  return afterFailure(health, moved?.lastError ?? "network_error", nowMs, disableAfterMs);
}

/** Forgets failures. A pause that the handler asked for goes on. */
function afterSuccess(health: HandlerHealth, nowMs: number): HandlerHealth {
  const { failingSinceMs, slowedUntilMs } = health;
  const isOver = slowedUntilMs !== null && slowedUntilMs <= nowMs;
  if (failingSinceMs === null && !isOver) return health;
  const failures = { failingSinceMs: null, lastFailureMs: null, failingTotalMs: 0 };
  return { ...health, ...failures, slowedUntilMs: isOver ? null : slowedUntilMs };
}

/** Counts a failure. The time of day may have been set back since the last one. */
function afterFailure(
  health: HandlerHealth,
  lastError: string,
  nowMs: number,
  disableAfterMs: number | undefined,
): HandlerHealth {
  const { lastFailureMs } = health;
  const gapMs = Math.max(0, nowMs - (lastFailureMs ?? nowMs));
  const longestMs = disableAfterMs === undefined ? 0 : longestGapMs(disableAfterMs);
  const failingSinceMs = Math.min(health.failingSinceMs ?? nowMs, nowMs);
  const failingTotalMs = health.failingTotalMs + Math.min(gapMs, longestMs);
  const failing = { ...health, failingSinceMs, lastFailureMs: nowMs, failingTotalMs };
  if (disableAfterMs === undefined || failingTotalMs < disableAfterMs) return failing;
  return { ...failing, isActive: false, disabledReason: failingReason(failingSinceMs, lastError) };
}

/** The time after which a subscription is deactivated spans at least so many gaps between attempts. */
const MIN_GAPS = 5;

/**
 * Answers how much of the time between two failed attempts counts at most: after a week in which the service was stopped, not
 * all handlers have failed for a week. A handler with a delivery a day is still deactivated.
 */
function longestGapMs(disableAfterMs: number): number {
  return Math.ceil(disableAfterMs / MIN_GAPS);
}

const GONE_REASON = "The handler answered 410 Gone.";

function failingReason(sinceMs: number, lastError: string): string {
  const since = toIso(sinceMs);
  return `Every attempt since ${since} has failed, the last with ${lastError}. Its deliveries are held until it is reactivated.`;
}
