import type { Logger } from "../runtime/logger.ts";
import type { ClaimedSubscription } from "../store/claims.ts";
import type { AttemptResult } from "../store/finishes.ts";
import { destinationOf } from "./destination.ts";

export interface BegunAttempt {
  readonly deliveryId: number;
  readonly claimId: number;
  readonly eventId: number;
  readonly attempt: number;
  readonly failures: number;
  readonly subscription: ClaimedSubscription;
  readonly startedAtMs: number;
  readonly publishedAtMs: number;
}

/**
 * One line for each attempt. Of the handler's URL only the origin is told: paths and queries of webhook addresses are
 * often as good as a password. A refusal names the address its host has. What goes well does so thousands of times a second and is for debugging.
 */
export function logAttempt(logger: Logger, begun: BegunAttempt, result: AttemptResult): void {
  const { deliveryId, eventId, subscription, attempt } = begun;
  const { statusCode, errorCode, refusal, durationMs, next } = result;
  // Whose failures are in the log is not to be left there as failing.
  const isNews = next.kind !== "delivered" || begun.failures > 0;
  if (!isNews && !logger.tellsDebug) return;
  const fields = {
    delivery: deliveryId,
    event: eventId,
    subscription: subscription.subscriptionId,
    attempt,
    ...(statusCode === undefined ? {} : { status: statusCode }),
    ...(errorCode === undefined ? {} : { error: errorCode }),
    ...(refusal === undefined ? {} : { refusal }),
    durationMs,
    handler: destinationOf(subscription.handler)?.origin ?? "",
  };
  switch (next.kind) {
    case "delivered":
      logger[isNews ? "info" : "debug"](fields, "delivered");
      break;
    case "retry":
      logger.info(
        { ...fields, retryInMs: next.atMs - result.startedAtMs - durationMs },
        "attempt failed, will be retried",
      );
      break;
    case "failed":
      logger.warn(fields, "delivery failed for good");
      break;
    case "gone":
      logger.warn(fields, "delivery failed for good, the handler is gone");
      break;
    case "returned":
      logger.info(fields, "attempt cut short, delivery handed back");
      break;
    case "filtered":
    case "unsent":
      break;
  }
}
