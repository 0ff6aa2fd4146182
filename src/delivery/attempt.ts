import { TLS_REASON_WORDS } from "../domain/attempt-words.ts";
import { isThrottle, retryAfterMs } from "../domain/retry.ts";
import type { DeliveryResult } from "../domain/stream.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import { type Clock, type Random, toIso } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type {
  AttemptEnding,
  AttemptResult,
  Claim,
  ClaimedSubscription,
  FinishOutcome,
} from "../store/queue.ts";
import type { SendResult } from "./exchange.ts";
import type { RequestBuilder } from "./request.ts";
import { redact, secretsOf } from "./redaction.ts";
import { destinationOf, type Sender } from "./sender.ts";

interface AttemptsDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly sender: Pick<Sender, "send">;
  readonly counts: DeliveryCounts;
  readonly requests: RequestBuilder;
}

/** What is retained of a claim while the answer is awaited: not the payload, which may be a view of the bytes of many. */
interface StartedAttempt extends Omit<Claim, "event"> {
  readonly eventId: number;
  readonly action: string;
  readonly startedAtMs: number;
  /** Of its event, if the time since then counts. */
  readonly publishedAtMs?: number | undefined;
}

type Done = (result: AttemptResult, throttledMs: number | undefined, started: StartedAttempt) => void;

/** Carries attempts through: build, sign, send, and say how they ended. */
export class Attempts {
  readonly #dependencies: AttemptsDependencies;

  constructor(dependencies: AttemptsDependencies) {
    this.#dependencies = dependencies;
  }

  /** @param done called once, maybe before this returns. A callback, as a promise for each attempt is measurably slower. */
  start(claim: Claim, done: Done): void {
    const { clock, random, sender, counts, requests } = this.#dependencies;
    const { deliveryId, claimId, event, subscription, attempt, failures } = claim;
    const { eventId, action, timestampedMs } = event;
    const startedAtMs = clock.now();
    const startMs = clock.monotonicMs();
    // Past its own retries, an attempt was requested by a person or follows a stop or crash.
    const isSentAgain = claim.isFromReplay === true || attempt > failures + 1;
    const publishedAtMs = isSentAgain ? undefined : timestampedMs;
    const ids = { deliveryId, claimId, eventId, action, attempt, failures };
    const started = { ...ids, subscription, startedAtMs, publishedAtMs };
    const finish = (sent: SendResult): void => {
      const nowMs = clock.now();
      const durationMs = clock.monotonicMs() - startMs;
      const shown = withoutSecrets(sent, subscription);
      const result = attemptResult(started, durationMs, shown, { nowMs, random });
      counts.attempted(result);
      done(result, throttledMs(sent, result), started);
    };
    const request = requests.build(claim, startedAtMs);
    if (typeof request === "string") return finish({ kind: "error", errorCode: request });
    const { timeout_ms: timeoutMs } = subscription.settings;
    const post = { ...request, url: subscription.handler };
    sender.send(timeoutMs === null ? post : { ...post, timeoutMs }, finish);
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

function attemptResult(
  { deliveryId, claimId, subscription, startedAtMs, publishedAtMs }: StartedAttempt,
  durationMs: number,
  sent: SendResult,
  { nowMs, random }: { readonly nowMs: number; readonly random: Random },
): AttemptResult {
  const ending = endingOf(sent);
  const isTimed = publishedAtMs !== undefined && ending === "delivered";
  const hasFailed = ending === "failed" || ending === "gone";
  return {
    deliveryId,
    claimId,
    startedAtMs,
    durationMs,
    ending,
    ...(sent.kind === "error"
      ? {
          errorCode: sent.errorCode,
          ...(sent.tlsReason === undefined ? {} : { tlsReason: sent.tlsReason }),
          ...(sent.refusal === undefined ? {} : { refusal: sent.refusal }),
        }
      : {
          statusCode: sent.statusCode,
          ...(sent.response === undefined ? {} : { response: sent.response }),
        }),
    ...(isTimed ? { latencyMs: Math.max(0, startedAtMs + durationMs - publishedAtMs) } : {}),
    ...(hasFailed ? { handler: subscription.handler, jitter: random.fraction() } : {}),
    ...(hasFailed ? waitAskedFor(sent, nowMs) : {}),
    ...(sent.connection === undefined ? {} : { connection: sent.connection }),
  };
}

/** 200–299 accepts the delivery, and 410 says that the handler wants nothing any more. */
function endingOf(sent: SendResult): AttemptEnding {
  if (sent.kind === "error") return sent.errorCode === "interrupted" ? "interrupted" : "failed";
  const { statusCode } = sent;
  if (statusCode >= 200 && statusCode <= 299) return "delivered";
  return statusCode === 410 ? "gone" : "failed";
}

function waitAskedFor(sent: SendResult, nowMs: number): Pick<AttemptResult, "retryAfterMs"> {
  if (sent.kind === "error" || sent.retryAfter === undefined) return {};
  const waitMs = retryAfterMs(sent.retryAfter, nowMs);
  return waitMs === undefined ? {} : { retryAfterMs: waitMs };
}

/** The pause that an answer asks for that means "too much" or "not now". */
function throttledMs(sent: SendResult, result: AttemptResult): number | undefined {
  if (result.ending !== "failed" || sent.kind === "error" || !isThrottle(sent.statusCode)) return undefined;
  return result.retryAfterMs ?? 0;
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
