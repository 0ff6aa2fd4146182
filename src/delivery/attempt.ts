import { TLS_REASON_WORDS } from "../domain/words/attempts.ts";
import { retryAfterMs } from "../domain/retry.ts";
import type { DeliveryStatus } from "../domain/delivery.ts";
import type { DeliveryResult } from "../domain/stream.ts";
import { toIso } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type {
  AttemptEnding,
  AttemptResult,
  Claim,
  ClaimedEvent,
  ClaimedSubscription,
  FinishOutcome,
} from "../store/queue.ts";
import type { SendResult } from "./exchange.ts";
import type { EngineParts } from "./parts.ts";
import type { RequestBuilder } from "./request.ts";
import { redact } from "./redaction.ts";
import { destinationOf, type Sender } from "./sender.ts";

interface AttemptParts extends Pick<EngineParts, "clock" | "random" | "counts"> {
  readonly sender: Pick<Sender, "send">;
  readonly requests: RequestBuilder;
}

/**
 * Carries an attempt through: builds, signs and sends the request, and says how it ended.
 * @param done called once, maybe before this returns. A callback, as a promise for each attempt is measurably slower.
 */
export function startAttempt(
  { clock, random, sender, counts, requests }: AttemptParts,
  claim: Claim,
  done: (result: AttemptResult, shown: ShownAttempt) => void,
): void {
  const { deliveryId, claimId, attempt, failures, subscription } = claim;
  const { timestampedMs } = claim.event;
  const shown = shownOf(claim);
  const startedAtMs = clock.now();
  const startMs = clock.monotonicMs();
  // Past its own retries, an attempt was requested by a person or follows a stop or crash.
  const isSentAgain = claim.isFromReplay === true || attempt > failures + 1;
  const finish = (sent: SendResult): void => {
    const durationMs = clock.monotonicMs() - startMs;
    const { retryAfter, ...ended } = withoutSecrets(sent, subscription);
    const ending = endingOf(sent);
    const hasFailed = ending === "failed" || ending === "gone";
    const askedMs = retryAfter === undefined ? undefined : retryAfterMs(retryAfter, clock.now());
    const result: AttemptResult = {
      deliveryId,
      claimId,
      startedAtMs,
      durationMs,
      ending,
      ...ended,
      ...(ending === "delivered" && !isSentAgain
        ? { latencyMs: Math.max(0, startedAtMs + durationMs - timestampedMs) }
        : {}),
      ...(hasFailed ? { handler: subscription.handler, jitter: random.fraction() } : {}),
      ...(hasFailed && askedMs !== undefined ? { retryAfterMs: askedMs } : {}),
    };
    counts.attempted(result);
    done(result, shown);
  };
  const request = requests.build(claim, startedAtMs);
  if (typeof request === "string") return finish({ errorCode: request });
  const { handler, settings } = subscription;
  sender.send({ ...request, url: handler, timeoutMs: settings.timeout_ms }, finish);
}

function withoutSecrets(sent: SendResult, subscription: ClaimedSubscription): SendResult {
  const { response, refusal } = sent;
  if (response !== undefined) return { ...sent, response: redact(response, subscription) };
  return refusal === undefined ? sent : { ...sent, refusal: redact(refusal, subscription) };
}

/** 200–299 accepts the delivery, and 410 says that the handler wants nothing any more. */
export function endingOf({ statusCode, errorCode }: SendResult): AttemptEnding {
  if (errorCode === "interrupted") return "interrupted";
  if (statusCode === undefined) return "failed";
  if (statusCode >= 200 && statusCode <= 299) return "delivered";
  return statusCode === 410 ? "gone" : "failed";
}

/** The result of a claim of which no attempt was started. */
export function withoutAttempt(
  { deliveryId, claimId }: Claim,
  ending: "never started" | "filtered",
  nowMs: number,
): AttemptResult {
  return { deliveryId, claimId, startedAtMs: nowMs, durationMs: 0, ending };
}

type StoredOutcome = FinishOutcome & { readonly kind: "stored" };

/** What the log and streams show of an attempt beside its result. */
export interface ShownAttempt extends Pick<Claim, "deliveryId" | "attempt" | "failures"> {
  readonly event: Pick<ClaimedEvent, "eventId" | "action">;
  /** A pull subscription has no handler. */
  readonly subscription: Pick<ClaimedSubscription, "subscriptionId" | "application" | "name"> & {
    readonly handler?: string;
  };
}

/** The status of a delivery after an attempt. What is to be sent again waits where it has failed. */
export function statusAfter(
  { ending }: AttemptResult,
  failures: number,
  { state }: StoredOutcome,
): DeliveryStatus {
  const hasFailed = failures > 0 || ending === "failed";
  return state === "pending" && hasFailed ? "waiting" : state;
}

/**
 * What is kept of a claim while its attempt is under way and its result is stored: not the payload, which may be a view of the
 * bytes of many.
 */
export function shownOf({ deliveryId, attempt, failures, event, subscription }: Claim): ShownAttempt {
  const { eventId, action } = event;
  return { deliveryId, attempt, failures, event: { eventId, action }, subscription };
}

/** A result as others see it. */
export function shownResult(
  { deliveryId, event, attempt, failures, subscription }: ShownAttempt,
  result: AttemptResult,
  outcome: StoredOutcome,
  nowMs: number,
): DeliveryResult {
  const { statusCode, errorCode, durationMs, ending } = result;
  return {
    rowid: deliveryId,
    event_id: event.eventId,
    subscription_id: subscription.subscriptionId,
    application: subscription.application,
    subscription: subscription.name,
    action: event.action,
    status: statusAfter(result, failures, outcome),
    // No attempt was made of one that the filter excluded.
    attempt: ending === "filtered" ? attempt - 1 : attempt,
    status_code: statusCode ?? null,
    error_code: errorCode ?? (ending === "interrupted" ? "interrupted" : null),
    duration_ms: ending === "filtered" ? null : durationMs,
    timestamped: toIso(nowMs),
  };
}

type LogLine = readonly [level: "debug" | "info" | "warn", message: string];

function logLine(ending: AttemptEnding, { state }: StoredOutcome): LogLine {
  if (ending === "delivered" || ending === "filtered") return ["debug", ending];
  if (ending === "interrupted") return ["info", "attempt cut short, delivery handed back"];
  if (state === "pending") return ["info", "attempt failed, will be retried"];
  if (ending === "gone") return ["warn", "delivery failed for good, the handler is gone"];
  return ["warn", "delivery failed for good"];
}

/**
 * Logs each attempt, and what a filter excluded, once it is known what became of the delivery. Of the handler's URL only the
 * origin is logged: paths and queries of webhook addresses are often as good as a password. Successes come by the thousand each
 * second, and are for debugging.
 */
export function logAttempt(
  logger: Logger,
  attempted: ShownAttempt,
  result: AttemptResult,
  outcome: StoredOutcome,
  nowMs: number,
): void {
  const { deliveryId, event, subscription, attempt, failures } = attempted;
  const { statusCode, errorCode, tlsReason, refusal, durationMs, ending } = result;
  const [usualLevel, message] = logLine(ending, outcome);
  // After a failure that was logged, the success is logged as well.
  const level = usualLevel === "debug" && failures > 0 ? "info" : usualLevel;
  if (level === "debug" && !logger.isDebugEnabled) return;
  const handler = destinationOf(subscription.handler ?? "")?.origin;
  const { retryAtMs } = outcome;
  const fields = {
    delivery: deliveryId,
    event: event.eventId,
    subscription: subscription.subscriptionId,
    action: event.action,
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
