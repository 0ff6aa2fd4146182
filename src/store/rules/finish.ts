import type { AttemptErrorCode } from "../../domain/delivery.ts";
import { retryWaitMs } from "../../domain/retry.ts";
import type { OnExhausted } from "../../domain/subscription-settings.ts";
import type { AttemptEnding } from "../queue.ts";

/** What a store has of a delivery while an attempt of it is under way. */
export interface AttemptedDelivery {
  /** Failed attempts before this one that count against the retries. */
  readonly failures: number;
  readonly lastError: string | null;
}

/** The settings of a subscription that are in force as the result is stored. */
export interface SettingsInForce {
  readonly handler: string;
  readonly maxRetries: number;
  readonly isOrdered: boolean;
  readonly onExhausted: OnExhausted | null;
  /** The waits before its retries; the server's schedule where it has none of its own; `null` where the waits double. */
  readonly retryScheduleMs: readonly number[] | null;
}

/** What an attempt reports; see `AttemptResult`. */
export interface AttemptFacts {
  readonly ending: AttemptEnding;
  readonly statusCode?: number | undefined;
  readonly errorCode?: AttemptErrorCode | undefined;
  /** The rest comes only with some of the attempts that failed. */
  readonly handler?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly slowUntilMs?: number | undefined;
  readonly jitter?: number | undefined;
}

/**
 * What becomes of a delivery, and what its attempt says of the handler. `DELIVERY_TRANSITIONS` has the ways from one status to
 * another that there are.
 */
export interface DeliveryVerdict {
  readonly state: "pending" | "delivered" | "failed" | "filtered";
  /** How the attempt is recorded; `undefined` where none was made. */
  readonly attempt: "delivered" | "failed" | "returned" | undefined;
  /** What else changes of a delivery that was not delivered. */
  readonly moved: MovedDelivery | undefined;
  /** When the delivery's retry is due. */
  readonly retryAtMs: number | undefined;
  /** Whether its subscription, or its key, is blocked by it from now on. */
  readonly startsBlocking: boolean;
  /** What the attempt says of the handler that the subscription has by now. */
  readonly handler: "accepts" | "fails" | "is gone" | "unknown";
  readonly slowedUntilMs: number | undefined;
}

interface MovedDelivery {
  readonly failures: number;
  readonly lastError: string | null;
  /** When the delivery is due; `null` where it has ended. */
  readonly dueMs: number | null;
}

const NOTHING_MORE = {
  attempt: undefined,
  moved: undefined,
  retryAtMs: undefined,
  startsBlocking: false,
  handler: "unknown",
  slowedUntilMs: undefined,
} as const;

/** A schedule may end with a wait of 0, and what an order is blocked by is tried again without end. */
const LEAST_BLOCKED_WAIT_MS = 1_000;

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
  const unmoved = { failures: delivery.failures, lastError: delivery.lastError };
  switch (facts.ending) {
    case "delivered":
      return { ...NOTHING_MORE, state: "delivered", attempt: "delivered", handler: "accepts" };
    case "filtered":
      return { ...NOTHING_MORE, state: "filtered", moved: { ...unmoved, dueMs: null } };
    case "never started":
      return { ...NOTHING_MORE, state: "pending" };
    case "interrupted":
      return { ...NOTHING_MORE, state: "pending", attempt: "returned", moved: { ...unmoved, dueMs: nowMs } };
    case "failed":
    case "gone":
      break;
  }
  return failed(facts, delivery, settings, nowMs);
}

function failed(
  facts: AttemptFacts,
  { failures }: AttemptedDelivery,
  settings: SettingsInForce,
  nowMs: number,
): DeliveryVerdict {
  const { maxRetries, isOrdered, onExhausted } = settings;
  const { handler, slowUntilMs } = facts;
  const isSameHandler = handler === undefined || handler === settings.handler;
  const isGone = facts.ending === "gone" && isSameHandler;
  const blocks = isOrdered && onExhausted === "block";
  const isExhausted = failures >= maxRetries;
  const isRetried = blocks || (!isExhausted && !isGone);
  const leastMs = blocks && isExhausted ? LEAST_BLOCKED_WAIT_MS : 0;
  const waitMs = facts.ending === "gone" ? 0 : Math.max(leastMs, retryWait(facts, failures, settings));
  const retryAtMs = isRetried ? Math.ceil(nowMs + waitMs) : undefined;
  return {
    state: isRetried ? "pending" : "failed",
    attempt: "failed",
    moved: { failures: failures + 1, lastError: errorOf(facts), dueMs: retryAtMs ?? null },
    retryAtMs,
    startsBlocking: blocks && failures === maxRetries,
    handler: handlerAfter(facts.ending, isSameHandler),
    slowedUntilMs: isSameHandler ? slowUntilMs : undefined,
  };
}

function handlerAfter(ending: AttemptEnding, isSameHandler: boolean): DeliveryVerdict["handler"] {
  if (!isSameHandler) return "unknown";
  return ending === "gone" ? "is gone" : "fails";
}

/** Answers how long a delivery waits. The handler may ask for a longer wait than the schedule has, not for a shorter one. */
function retryWait(
  { jitter = 0, retryAfterMs = 0 }: AttemptFacts,
  failures: number,
  { retryScheduleMs }: SettingsInForce,
): number {
  return Math.max(retryWaitMs(failures + 1, jitter, retryScheduleMs), retryAfterMs);
}

/** Answers the last error of a delivery whose attempt failed so, in a word. */
function errorOf({ statusCode, errorCode }: Pick<AttemptFacts, "statusCode" | "errorCode">): string {
  return errorCode ?? (statusCode === undefined ? "network_error" : `HTTP ${statusCode}`);
}
