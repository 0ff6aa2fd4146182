import type { Logger } from "../runtime/logger.ts";
import type { AttemptResult, Claim } from "../store/store.ts";

/**
 * One line for each attempt. Of the handler's URL only the origin is told: paths and queries of webhook addresses are
 * often as good as a password.
 */
export function logAttempt(logger: Logger, claim: Claim, result: AttemptResult): void {
  const { deliveryId, eventId, subscriptionId, attempt, handler } = claim;
  const { statusCode, errorCode, durationMs, next } = result;
  const fields = {
    delivery: deliveryId,
    event: eventId,
    subscription: subscriptionId,
    attempt,
    ...(statusCode === undefined ? {} : { status: statusCode }),
    ...(errorCode === undefined ? {} : { error: errorCode }),
    durationMs,
    handler: URL.canParse(handler) ? new URL(handler).origin : "",
  };
  switch (next.kind) {
    case "delivered":
      logger.info(fields, "delivered");
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
      logger.warn(fields, "delivery failed for good, subscription deactivated");
      break;
    case "returned":
      logger.info(fields, "attempt cut short, delivery handed back");
      break;
  }
}
