import { isThrottle, judge, retryAfterMs } from "../domain/retry.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { AttemptResult, Claim, ClaimedEvent, ClaimedSubscription } from "../store/queue.ts";
import { destinationOf } from "./connection-pools.ts";
import type { SendResult } from "./exchange.ts";
import type { Interruptible } from "./in-flight.ts";
import { censor, secretsOf } from "./response-text.ts";
import type { Sender } from "./sender.ts";
import { deliveryBody, deliveryHeaders } from "./signed-request.ts";

interface AttemptParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly sender: Sender;
  readonly logger: Logger;
  readonly counts: DeliveryCounts;
  /** Of evreg, for `User-Agent`. */
  readonly version: string;
}

const NOTHING_SENT: Interruptible = { interrupt: () => {} };

/** An answer that says "too much" or "not now". */
export interface Refusal {
  readonly handler: string;
  /** How long it says to wait. */
  readonly askedMs: number;
}

/** Carries claims through: build, sign, send, judge. */
export class Attempts {
  readonly #parts: AttemptParts;
  /** Of an event that goes to many, the body is made once. */
  #last: { readonly eventId: number; readonly attempt: number; readonly body: Buffer } | undefined;

  constructor(parts: AttemptParts) {
    this.#parts = parts;
  }

  /**
   * @param ended called once, maybe before this returns
   * @returns cuts it short; the delivery is then handed back
   */
  begin(claim: Claim, ended: (result: AttemptResult, refusal: Refusal | undefined) => void): Interruptible {
    const { clock, random, sender, logger, counts, version } = this.#parts;
    const { event, subscription, attempt } = claim;
    // The payload is not held while the answer is waited for: it may lie in the bytes of many others.
    const begun: BegunAttempt = {
      deliveryId: claim.deliveryId,
      claimId: claim.claimId,
      eventId: event.eventId,
      attempt,
      failures: claim.failures,
      subscription,
      startedAtMs: clock.now(),
      publishedAtMs: event.timestampedMs,
    };
    // Past its own retries an attempt is another's wish, or one more after a stop or crash.
    const isSentAgain = claim.isLate === true || attempt > claim.failures + 1;
    const finish = (sent: SendResult): void => {
      const nowMs = clock.now();
      const result = attemptResult(begun, withoutSecrets(sent, subscription), nowMs, random.fraction());
      counts.attempted(result, isSentAgain ? undefined : begun.publishedAtMs);
      logAttempt(logger, begun, result);
      ended(result, refusalIn(sent, begun.subscription.handler, nowMs));
    };
    const { secret, previous, bearer, settings } = subscription;
    if (secret === undefined) {
      finish({ kind: "error", errorCode: "secret_unreadable" });
      return NOTHING_SENT;
    }
    if (event.payload === undefined) {
      finish({ kind: "error", errorCode: "event_damaged" });
      return NOTHING_SENT;
    }
    const body = this.#body(event, event.payload, attempt);
    const headers = deliveryHeaders({
      eventId: event.eventId,
      subscriptionId: subscription.subscriptionId,
      action: event.action,
      attempt,
      body,
      secret,
      // Claimed ahead, it may be sent after the overlap's end.
      previousSecret:
        previous !== undefined && begun.startedAtMs < previous.untilMs ? previous.secret : undefined,
      bearer,
      extra: settings.headers,
      nowMs: begun.startedAtMs,
      version,
    });
    const { timeout_ms: timeoutMs } = settings;
    const request = { url: subscription.handler, headers, body };
    return sender.send(timeoutMs === null ? request : { ...request, timeoutMs }, finish);
  }

  #body({ eventId, action, timestampedMs }: ClaimedEvent, payload: Uint8Array, attempt: number): Buffer {
    if (this.#last?.eventId === eventId && this.#last.attempt === attempt) return this.#last.body;
    const body = deliveryBody({ eventId, action, payload, eventTimestampedMs: timestampedMs, attempt });
    this.#last = { eventId, attempt, body };
    return body;
  }
}

function withoutSecrets(sent: SendResult, subscription: ClaimedSubscription): SendResult {
  if (sent.kind === "error") {
    const { refusal } = sent;
    return refusal === undefined ? sent : { ...sent, refusal: censor(refusal, secretsOf(subscription)) };
  }
  const { response } = sent;
  return response === undefined ? sent : { ...sent, response: censor(response, secretsOf(subscription)) };
}

/** What the store is told of an attempt. */
function attemptResult(
  { deliveryId, claimId, failures, subscription, startedAtMs }: BegunAttempt,
  sent: SendResult,
  finishedAtMs: number,
  fraction: number,
): AttemptResult {
  const { handler, settings } = subscription;
  // What blocks is tried on for as long as it does.
  const maxRetries = settings.on_exhausted === "block" ? Infinity : subscription.maxRetries;
  const ownWaitsMs = settings.retry_schedule;
  const attempted = { outcome: sent, failures, maxRetries, ownWaitsMs, finishedAtMs, fraction };
  const verdict = judge(attempted);
  // Whether its subscription is ordered, and blocks, counts when this is stored: until then that may change.
  const triedOn = verdict.kind === "failed" ? judge({ ...attempted, maxRetries: Infinity }) : verdict;
  return {
    deliveryId,
    claimId,
    startedAtMs,
    // The clock may have been set back meanwhile.
    durationMs: Math.max(0, finishedAtMs - startedAtMs),
    ...(sent.kind === "error"
      ? { errorCode: sent.errorCode, ...(sent.refusal === undefined ? {} : { refusal: sent.refusal }) }
      : {
          statusCode: sent.statusCode,
          ...(sent.response === undefined ? {} : { response: sent.response }),
        }),
    next: verdict.kind === "gone" ? { ...verdict, handler } : verdict,
    ...(sent.connection === undefined ? {} : { connection: sent.connection }),
    ...(triedOn.kind === "retry" && triedOn.atMs > finishedAtMs
      ? { wait: { untilMs: triedOn.atMs, handler } }
      : {}),
  };
}

function refusalIn(sent: SendResult, handler: string, nowMs: number): Refusal | undefined {
  if (sent.kind === "error" || !isThrottle(sent.statusCode)) return undefined;
  const askedMs = sent.retryAfter === undefined ? undefined : retryAfterMs(sent.retryAfter, nowMs);
  return { handler, askedMs: askedMs ?? 0 };
}

/** What the store is told of a claim of which no attempt was begun. */
export function withoutAttempt(
  { deliveryId, claimId }: Claim,
  kind: "unsent" | "filtered",
  nowMs: number,
): AttemptResult {
  return { deliveryId, claimId, startedAtMs: nowMs, durationMs: 0, next: { kind } };
}

interface BegunAttempt {
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
function logAttempt(logger: Logger, begun: BegunAttempt, result: AttemptResult): void {
  const { deliveryId, eventId, subscription, attempt } = begun;
  const { statusCode, errorCode, refusal, durationMs, next } = result;
  // Whose failures are in the log is not to be left there as failing.
  const isNews = next.kind !== "delivered" || begun.failures > 0;
  if (!isNews && !logger.isDebugEnabled) return;
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
