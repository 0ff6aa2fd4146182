import { isThrottle, retryAfterMs } from "../domain/retry.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { AttemptEnding, AttemptResult, Claim, ClaimedSubscription } from "../store/queue.ts";
import type { SendResult } from "./exchange.ts";
import type { RequestBuilder } from "./request.ts";
import { redact, secretsOf } from "./redaction.ts";
import type { Sender } from "./sender.ts";

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
  if (sent.kind === "error" || !isThrottle(sent.statusCode)) return undefined;
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
