import { toIso } from "../../runtime/clock.ts";
import type { DeliveryVerdict } from "./finish.ts";

/** What is known of a handler, with its subscription. Times are milliseconds since the epoch; `null` for none. */
export interface HandlerHealth {
  /** Whether its subscription is active. */
  readonly isActive: boolean;
  /** Why its subscription is deactivated by the attempts of one call. */
  readonly disabledReason: string | null;
  /** When the first attempt since the last success failed. */
  readonly failingSinceMs: number | null;
  readonly lastFailureMs: number | null;
  /** What counts of the time between failed attempts since the last success. */
  readonly failingTotalMs: number;
  /** No attempt starts before this, except requested ones: the handler wants a pause. */
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
  const health = slowedUntilMs === undefined ? before : slowedUntil(before, slowedUntilMs);
  if (handler === "accepts") return afterSuccess(health, nowMs);
  if (handler === "unknown" || !health.isActive) return health;
  if (handler === "is gone") {
    return { ...health, lastFailureMs: nowMs, isActive: false, disabledReason: GONE_REASON };
  }
  return afterFailure(health, moved?.lastError ?? "network_error", nowMs, disableAfterMs);
}

/** Makes a subscription wait. An answer that asks for less does not cut a wait short. */
function slowedUntil(health: HandlerHealth, untilMs: number): HandlerHealth {
  return { ...health, slowedUntilMs: Math.max(health.slowedUntilMs ?? 0, Math.ceil(untilMs)) };
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
