import { isThrottle, judge, retryAfterMs } from "../domain/retry.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { AttemptResult, Claim, ClaimedEvent, ClaimedSubscription } from "../store/queue.ts";
import { destinationOf } from "./connection-pools.ts";
import type { Abortable, SendResult } from "./exchange.ts";
import { redact, secretsOf } from "./response-text.ts";
import type { Throttle } from "./scheduler.ts";
import type { Sender } from "./sender.ts";
import { deliveryBody, deliveryHeaders } from "./signed-request.ts";

interface AttemptDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly sender: Sender;
  readonly logger: Logger;
  readonly counts: DeliveryCounts;
  /** Of evreg, for `User-Agent`. */
  readonly version: string;
}

/** An attempt in flight. */
interface Running {
  /** There once the request is made. */
  request: Abortable | undefined;
  /** Where it is in the list; `undefined` once it has ended. */
  place: number | undefined;
}

type Done = (result: AttemptResult, throttle: Throttle | undefined) => void;

/** Carries attempts through: build, sign, send, judge. */
export class Attempts {
  readonly #dependencies: AttemptDependencies;
  /**
   * In flight. Not in a Set: each table that it empties leads to the next one, so once V8 has taken a table for long-lived,
   * it keeps all that came after.
   */
  readonly #running: Running[] = [];
  /** Of an event that goes to many, the body is made once. */
  #last: { readonly eventId: number; readonly attempt: number; readonly body: Buffer } | undefined;

  constructor(dependencies: AttemptDependencies) {
    this.#dependencies = dependencies;
  }

  /** @param done called once, maybe before this returns. A callback, as a promise for each attempt can be measured. */
  start(claim: Claim, done: Done): void {
    const running: Running = { request: undefined, place: this.#running.length };
    this.#running.push(running);
    try {
      running.request = this.#send(claim, (result, throttle) => {
        this.#remove(running);
        done(result, throttle);
      });
    } catch (error) {
      this.#remove(running);
      throw error;
    }
  }

  /** Ends all soon. Their deliveries are returned. */
  abortAll(): void {
    for (const { request } of this.#running.slice()) request?.abort();
  }

  #remove(running: Running): void {
    const { place } = running;
    const last = this.#running.at(-1);
    if (place === undefined || last === undefined) return;
    this.#running[place] = last;
    last.place = place;
    this.#running.pop();
    running.place = undefined;
  }

  #send(claim: Claim, done: Done): Abortable | undefined {
    const { clock, random, sender, logger, counts, version } = this.#dependencies;
    const { event, subscription, attempt } = claim;
    // The payload is not held while the answer is waited for: it may lie in the bytes of many others.
    const context: AttemptContext = {
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
      const result = attemptResult(context, withoutSecrets(sent, subscription), nowMs, random.fraction());
      counts.attempted(result, isSentAgain ? undefined : context.publishedAtMs);
      logAttempt(logger, context, result);
      done(result, throttleIn(sent, context.subscription.handler, nowMs));
    };
    const { secret, previous, bearer, settings } = subscription;
    if (secret === undefined) {
      finish({ kind: "error", errorCode: "secret_unreadable" });
      return undefined;
    }
    if (event.payload === undefined) {
      finish({ kind: "error", errorCode: "event_damaged" });
      return undefined;
    }
    const body = this.#body(event, event.payload, attempt);
    const headers = deliveryHeaders({
      eventId: event.eventId,
      subscriptionId: subscription.subscriptionId,
      action: event.action,
      attempt,
      body,
      secret,
      // Prefetched, it may be sent after the overlap's end.
      previousSecret:
        previous !== undefined && context.startedAtMs < previous.untilMs ? previous.secret : undefined,
      bearer,
      extra: settings.headers,
      nowMs: context.startedAtMs,
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
    return refusal === undefined ? sent : { ...sent, refusal: redact(refusal, secretsOf(subscription)) };
  }
  const { response } = sent;
  return response === undefined ? sent : { ...sent, response: redact(response, secretsOf(subscription)) };
}

/** The result of an attempt, as it is stored. */
function attemptResult(
  { deliveryId, claimId, failures, subscription, startedAtMs }: AttemptContext,
  sent: SendResult,
  finishedAtMs: number,
  fraction: number,
): AttemptResult {
  const { handler, settings } = subscription;
  // What blocks its subscription is tried again for as long as it does.
  const maxRetries = settings.on_exhausted === "block" ? Infinity : subscription.maxRetries;
  const ownWaitsMs = settings.retry_schedule;
  const attempted = { outcome: sent, failures, maxRetries, ownWaitsMs, finishedAtMs, fraction };
  const verdict = judge(attempted);
  // Whether its subscription is ordered, and blocks, counts when this is stored: until then that may change.
  const whileBlocking = verdict.kind === "failed" ? judge({ ...attempted, maxRetries: Infinity }) : verdict;
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
    ...(whileBlocking.kind === "retry" && whileBlocking.atMs > finishedAtMs
      ? { wait: { untilMs: whileBlocking.atMs, handler } }
      : {}),
  };
}

function throttleIn(sent: SendResult, handler: string, nowMs: number): Throttle | undefined {
  if (sent.kind === "error" || !isThrottle(sent.statusCode)) return undefined;
  const waitMs = sent.retryAfter === undefined ? undefined : retryAfterMs(sent.retryAfter, nowMs);
  return { handler, retryAfterMs: waitMs ?? 0 };
}

/** The result of a claim of which no attempt was started. */
export function withoutAttempt(
  { deliveryId, claimId }: Claim,
  kind: "unsent" | "filtered",
  nowMs: number,
): AttemptResult {
  return { deliveryId, claimId, startedAtMs: nowMs, durationMs: 0, next: { kind } };
}

interface AttemptContext {
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
 * One line for each attempt. Of the handler's URL only the origin is logged: paths and queries of webhook addresses are
 * often as good as a password. A refusal names the address of its host. Successes come by the thousand each second, and
 * are for debugging.
 */
function logAttempt(logger: Logger, context: AttemptContext, result: AttemptResult): void {
  const { deliveryId, eventId, subscription, attempt } = context;
  const { statusCode, errorCode, refusal, durationMs, next } = result;
  // After a failure that was logged, the success is logged as well.
  const isNews = next.kind !== "delivered" || context.failures > 0;
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
