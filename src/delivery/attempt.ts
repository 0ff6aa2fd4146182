import { LRUCache } from "lru-cache";
import { TLS_REASON_WORDS } from "../domain/attempt-words.ts";
import type { DeliveryResult } from "../domain/stream.ts";
import { isThrottle, retryAfterMs } from "../domain/retry.ts";
import { isReservedHeader } from "../domain/subscription-settings.ts";
import type { WebhookHeader } from "../domain/webhook.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import { type Clock, type Random, toIso } from "../runtime/clock.ts";
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
import { HmacKey } from "./hmac.ts";
import { redact, secretsOf } from "./response-text.ts";
import type { Throttle } from "./schedule.ts";
import { destinationOf, type Sender } from "./sender.ts";

interface AttemptsDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly sender: Pick<Sender, "send">;
  readonly counts: DeliveryCounts;
  /** The version of evreg, for `User-Agent`. */
  readonly version: string;
}

/** What is retained of a claim while the answer is awaited: not the payload, which may be a view of the bytes of many. */
interface StartedAttempt extends Omit<Claim, "event"> {
  readonly eventId: number;
  readonly action: string;
  readonly startedAtMs: number;
  /** Of its event, if the time since then counts. */
  readonly publishedAtMs?: number | undefined;
}

type StoredOutcome = FinishOutcome & { readonly kind: "stored" };

type Done = (result: AttemptResult, throttle: Throttle | undefined, started: StartedAttempt) => void;

/** Carries attempts through: build, sign, send, and say how they ended. */
export class Attempts {
  readonly #dependencies: AttemptsDependencies;
  /** Of an event that goes to many, the body is made once. */
  #last: { readonly eventId: number; readonly attempt: number; readonly body: Buffer } | undefined;

  constructor(dependencies: AttemptsDependencies) {
    this.#dependencies = dependencies;
  }

  /** @param done called once, maybe before this returns. A callback, as a promise for each attempt is measurably slower. */
  start(claim: Claim, done: Done): void {
    const { clock, random, sender, counts, version } = this.#dependencies;
    const { deliveryId, claimId, event, subscription, attempt, failures } = claim;
    const { eventId, action, payload, timestampedMs } = event;
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
      done(result, throttleIn(sent, result), started);
    };
    const { secret } = subscription;
    if (secret === undefined) return finish({ kind: "error", errorCode: "secret_unreadable" });
    if (payload === undefined) return finish({ kind: "error", errorCode: "event_damaged" });
    const body = this.#body(event, payload, attempt);
    const headers = claimHeaders(claim, { secret, body, nowMs: startedAtMs, version });
    const { timeout_ms: timeoutMs } = subscription.settings;
    const request = { url: subscription.handler, headers, body };
    sender.send(timeoutMs === null ? request : { ...request, timeoutMs }, finish);
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

function throttleIn(sent: SendResult, result: AttemptResult): Throttle | undefined {
  if (sent.kind === "error" || !isThrottle(sent.statusCode)) return undefined;
  return { retryAfterMs: result.retryAfterMs ?? 0 };
}

/** The result of a claim of which no attempt was started. */
export function withoutAttempt(
  { deliveryId, claimId }: Claim,
  ending: "never started" | "filtered",
  nowMs: number,
): AttemptResult {
  return { deliveryId, claimId, startedAtMs: nowMs, durationMs: 0, ending };
}

/** What others are told of an attempt beside its result. */
export interface ShownAttempt extends Omit<StartedAttempt, "startedAtMs" | "claimId" | "subscription"> {
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

/** The headers of an attempt that begins now. */
export function claimHeaders(
  { event, subscription, attempt }: Claim,
  {
    secret,
    body,
    nowMs,
    version,
  }: { readonly secret: string; readonly body: Uint8Array; readonly nowMs: number; readonly version: string },
): Record<string, string> {
  const { subscriptionId, previous, bearer, settings } = subscription;
  return deliveryHeaders({
    eventId: event.eventId,
    subscriptionId,
    action: event.action,
    attempt,
    body,
    secret,
    // Prefetched, it may be sent after the overlap's end.
    previousSecret: previous !== undefined && nowMs < previous.untilMs ? previous.secret : undefined,
    bearer,
    extra: settings.headers,
    nowMs,
    version,
  });
}

export interface SignedDelivery {
  readonly eventId: number;
  readonly subscriptionId: number;
  readonly action: string;
  readonly attempt: number;
  /** The exact bytes that are sent. */
  readonly body: Uint8Array;
  readonly secret: string;
  /** The one before, while a rotation's overlap lasts. */
  readonly previousSecret?: string | undefined;
  /** Replaces the secret in `Authorization`; `null` for no such header. */
  readonly bearer?: string | null | undefined;
  /** The subscription's own headers; reserved names are omitted. */
  readonly extra?: Readonly<Record<string, string>> | null;
  readonly nowMs: number;
  /** Of evreg, for `User-Agent`. */
  readonly version: string;
  /** Instead of that of the event's delivery. */
  readonly webhookId?: string;
}

/**
 * The headers of one attempt.
 *
 * `X-Evreg-Signature` is `sha256=<hex HMAC-SHA256 of the body>`, keyed with the UTF-8 bytes of the whole secret, `whsec_`
 * included. The `webhook-*` headers follow Standard Webhooks 1.0.0: the key is what follows `whsec_`, base64 decoded; the
 * signed text is `<id>.<timestamp>.<body>`; `webhook-id` names the delivery and is the same in each retry.
 *
 * During a rotation's overlap, `webhook-signature` holds a signature by each secret. `X-Evreg-Signature` and `Authorization`
 * can hold only one and use the previous secret, so that receivers that do not have the new one yet go on undisturbed.
 */
export function deliveryHeaders(delivery: SignedDelivery): Record<string, string> {
  const { eventId, subscriptionId, action, attempt, body, nowMs, version } = delivery;
  const { secret, previousSecret, bearer } = delivery;
  const webhookId = delivery.webhookId ?? `evt_${eventId}_${subscriptionId}`;
  const timestamp = Math.floor(nowMs / 1_000);
  const keys = signingKeys(secret);
  const previousKeys = previousSecret === undefined ? undefined : signingKeys(previousSecret);
  const { whole } = previousKeys ?? keys;
  const signedPrefix = `${webhookId}.${timestamp}.`;
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": `evreg/${version}`,
    "X-Evreg-Event": action,
    "X-Evreg-Delivery": `${eventId}_${attempt}`,
    "X-Evreg-Signature": `sha256=${whole.sign("", body, "hex")}`,
    "webhook-id": webhookId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": standardSignatures(keys, previousKeys, signedPrefix, body),
  } satisfies Record<WebhookHeader | "Content-Type" | "User-Agent", string>;
  if (bearer !== null) headers["Authorization"] = `Bearer ${bearer ?? previousSecret ?? secret}`;
  for (const [name, value] of Object.entries(delivery.extra ?? {})) {
    if (!isReservedHeader(name)) headers[name] = value;
  }
  return headers;
}

interface SigningKeys {
  /** The UTF-8 bytes of the whole secret. */
  readonly whole: HmacKey;
  /** What follows `whsec_`, base64 decoded. */
  readonly standard: HmacKey;
}

function standardSignatures(
  keys: SigningKeys,
  previousKeys: SigningKeys | undefined,
  prefix: string,
  body: Uint8Array,
): string {
  const signature = `v1,${keys.standard.sign(prefix, body, "base64")}`;
  if (previousKeys === undefined) return signature;
  return `${signature} v1,${previousKeys.standard.sign(prefix, body, "base64")}`;
}

const STANDARD_PREFIX = "whsec_";
const MAX_KEYS = 10_000;
const keysOf = new LRUCache<string, SigningKeys>({ max: MAX_KEYS });

function signingKeys(secret: string): SigningKeys {
  const known = keysOf.get(secret);
  if (known !== undefined) return known;
  const encoded = secret.startsWith(STANDARD_PREFIX) ? secret.slice(STANDARD_PREFIX.length) : secret;
  const keys = {
    whole: new HmacKey(Buffer.from(secret)),
    standard: new HmacKey(Buffer.from(encoded, "base64")),
  };
  keysOf.set(secret, keys);
  return keys;
}

interface DeliveryBody {
  readonly eventId: number;
  readonly action: string;
  /** Well-formed JSON, as published. */
  readonly payload: Uint8Array;
  readonly eventTimestampedMs: number;
  readonly attempt: number;
}

/**
 * The bytes a handler gets: the specification's members in its order, `event_id` a string, and the payload exactly as it
 * was published, which is never parsed and written again.
 */
export function deliveryBody(body: DeliveryBody): Buffer {
  const { payload } = body;
  const head = `{"event_id":"${body.eventId}","action":${JSON.stringify(body.action)},"payload":`;
  const tail = `,"timestamp":"${toIso(body.eventTimestampedMs)}","delivery_attempt":${body.attempt}}`;
  const headBytes = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafe(headBytes + payload.byteLength + tail.length);
  bytes.write(head, 0);
  bytes.set(payload, headBytes);
  bytes.write(tail, headBytes + payload.byteLength, "latin1");
  return bytes;
}
