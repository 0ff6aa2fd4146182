import { TLS_REASON_WORDS } from "../domain/attempt-words.ts";
import type { DeliveryResult } from "../domain/stream.ts";
import { toIso } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type {
  AttemptEnding,
  AttemptResult,
  Claim,
  ClaimedSubscription,
  FinishOutcome,
} from "../store/queue.ts";
import { destinationOf } from "./sender.ts";

type StoredOutcome = FinishOutcome & { readonly kind: "stored" };

/** What the log and streams show of an attempt beside its result. */
export interface ShownAttempt extends Pick<Claim, "deliveryId" | "attempt" | "failures"> {
  readonly eventId: number;
  readonly action: string;
  /** A pull subscription has no handler. */
  readonly subscription: Pick<ClaimedSubscription, "subscriptionId" | "application" | "name"> & {
    readonly handler?: string;
  };
}

/** A result as others see it. */
export function shownResult(
  { deliveryId, eventId, action, attempt, failures, subscription }: ShownAttempt,
  { statusCode, errorCode, durationMs, ending }: AttemptResult,
  { state }: StoredOutcome,
  nowMs: number,
): DeliveryResult {
  const hasFailed = failures > 0 || ending !== "interrupted";
  return {
    rowid: deliveryId,
    event_id: eventId,
    subscription_id: subscription.subscriptionId,
    application: subscription.application,
    subscription: subscription.name,
    action,
    status: state === "pending" && hasFailed ? "waiting" : state,
    attempt,
    status_code: statusCode ?? null,
    error_code: errorCode ?? (ending === "interrupted" ? "interrupted" : null),
    duration_ms: ending === "filtered" ? null : durationMs,
    timestamped: toIso(nowMs),
  };
}

type LogLine = readonly [level: "debug" | "info" | "warn", message: string];

/** `undefined` for a claim of which no attempt was made. */
function logLine(ending: AttemptEnding, { state }: StoredOutcome): LogLine | undefined {
  if (ending === "delivered") return ["debug", "delivered"];
  if (ending === "interrupted") return ["info", "attempt cut short, delivery handed back"];
  if (ending !== "failed" && ending !== "gone") return undefined;
  if (state === "pending") return ["info", "attempt failed, will be retried"];
  if (ending === "failed") return ["warn", "delivery failed for good"];
  return ["warn", "delivery failed for good, the handler is gone"];
}

/**
 * One line for each attempt, once it is known what became of the delivery. Of the handler's URL only the origin is logged:
 * paths and queries of webhook addresses are often as good as a password. Successes come by the thousand each second, and are
 * for debugging.
 */
export function logAttempt(
  logger: Logger,
  attempted: ShownAttempt,
  result: AttemptResult,
  outcome: StoredOutcome,
  nowMs: number,
): void {
  const { deliveryId, eventId, action, subscription, attempt, failures } = attempted;
  const { statusCode, errorCode, tlsReason, refusal, durationMs, ending } = result;
  const [usualLevel, message] = logLine(ending, outcome) ?? [];
  // After a failure that was logged, the success is logged as well.
  const level = usualLevel === "debug" && failures > 0 ? "info" : usualLevel;
  if (level === undefined || message === undefined || (level === "debug" && !logger.isDebugEnabled)) return;
  const handler = destinationOf(subscription.handler ?? "")?.origin;
  const { retryAtMs } = outcome;
  const fields = {
    delivery: deliveryId,
    event: eventId,
    subscription: subscription.subscriptionId,
    action,
    to: `${subscription.application}/${subscription.name}`,
    attempt,
    ...(statusCode === undefined ? {} : { status: statusCode }),
    ...(errorCode === undefined ? {} : { error: errorCode }),
    ...(tlsReason === undefined ? {} : { tls: tlsReason, why: TLS_REASON_WORDS[tlsReason] }),
    ...(refusal === undefined ? {} : { refusal }),
    durationMs,
    ...(handler === undefined ? { consumer: true } : { handler }),
    // Storing the result took a moment.
    ...(retryAtMs === undefined ? {} : { retryInMs: Math.max(0, retryAtMs - nowMs) }),
  };
  logger[level](fields, message);
}
