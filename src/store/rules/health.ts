import { toIso } from "../../runtime/clock.ts";

/** What is known of a handler, with its subscription. Times are milliseconds since the epoch; `null` for none. */
export interface HandlerHealth {
  /** When the first attempt since the last success failed. */
  readonly failingSinceMs: number | null;
  readonly lastFailureMs: number | null;
  /** What counts of the time between failed attempts since the last success. */
  readonly failingTotalMs: number;
  /** No attempt starts before this, except requested ones: the handler wants a pause. */
  readonly slowedUntilMs: number | null;
}

/** What attempts that are stored together say of the handler that their subscription has. */
export interface HandlerSigns {
  readonly hasSucceeded: boolean;
  /** The error of the last one, where that failed. */
  readonly lastError: string | undefined;
  readonly slowedUntilMs: number | undefined;
  /** It wants nothing any more. */
  readonly isGone: boolean;
}

export interface HealthVerdict {
  readonly health: HandlerHealth;
  /** Why its subscription is deactivated by that. */
  readonly disabledReason: string | undefined;
}

/**
 * What is known of a handler after attempts, and whether its subscription goes on.
 * @param disableAfterMs `undefined` where no subscription is deactivated for failing
 */
export function healthAfter(
  before: HandlerHealth,
  signs: HandlerSigns,
  isActive: boolean,
  nowMs: number,
  disableAfterMs: number | undefined,
): HealthVerdict {
  const after = signs.hasSucceeded ? afterSuccess(before, nowMs) : before;
  const hasFailed = signs.lastError !== undefined && isActive;
  const counted = hasFailed ? afterFailure(after, nowMs, disableAfterMs) : after;
  const health = {
    ...counted,
    // An answer that asks for less does not cut a wait short.
    slowedUntilMs: later(counted.slowedUntilMs, signs.slowedUntilMs),
  };
  if (!isActive) return { health, disabledReason: undefined };
  if (signs.isGone) return { health: { ...health, lastFailureMs: nowMs }, disabledReason: GONE_REASON };
  const hasFailedTooLong =
    hasFailed && disableAfterMs !== undefined && health.failingTotalMs >= disableAfterMs;
  const disabledReason = hasFailedTooLong
    ? failingReason(health.failingSinceMs ?? nowMs, signs.lastError)
    : undefined;
  return { health, disabledReason };
}

/** A pause that the handler asked for goes on. */
function afterSuccess({ slowedUntilMs }: HandlerHealth, nowMs: number): HandlerHealth {
  const isSlowed = slowedUntilMs !== null && slowedUntilMs > nowMs;
  return { ...HEALTHY, slowedUntilMs: isSlowed ? slowedUntilMs : null };
}

export const HEALTHY: HandlerHealth = {
  failingSinceMs: null,
  lastFailureMs: null,
  failingTotalMs: 0,
  slowedUntilMs: null,
};

/** The time of day may have been set back since. */
function afterFailure(
  health: HandlerHealth,
  nowMs: number,
  disableAfterMs: number | undefined,
): HandlerHealth {
  const { failingSinceMs, lastFailureMs, failingTotalMs } = health;
  const gapMs = Math.max(0, nowMs - (lastFailureMs ?? nowMs));
  const longestMs = disableAfterMs === undefined ? 0 : longestGapMs(disableAfterMs);
  return {
    ...health,
    failingSinceMs: Math.min(failingSinceMs ?? nowMs, nowMs),
    lastFailureMs: nowMs,
    failingTotalMs: failingTotalMs + Math.min(gapMs, longestMs),
  };
}

/** The time after which a subscription is deactivated spans at least so many gaps between attempts. */
const MIN_GAPS = 5;

/**
 * How much of the time between two failed attempts counts at most: after a week in which the service was stopped, not all
 * handlers have failed for a week. A handler with a delivery a day is still deactivated.
 */
function longestGapMs(disableAfterMs: number): number {
  return Math.ceil(disableAfterMs / MIN_GAPS);
}

const GONE_REASON = "The handler answered 410 Gone.";

function failingReason(sinceMs: number, lastError: string): string {
  const since = toIso(sinceMs);
  return `Every attempt since ${since} has failed, the last with ${lastError}. Its deliveries are held until it is reactivated.`;
}

function later(one: number | null, other: number | undefined): number | null {
  return other === undefined ? one : Math.max(one ?? 0, Math.ceil(other));
}
