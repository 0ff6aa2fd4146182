import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { AttemptErrorCode } from "../domain/delivery.ts";
import { retryAfterMs } from "../domain/retry.ts";
import { isReservedHeader } from "../domain/subscription-settings.ts";
import type { WebhookHeader } from "../domain/webhook.ts";
import { toIso } from "../runtime/clock.ts";
import type {
  AttemptEnding,
  AttemptResult,
  Claim,
  ClaimedEvent,
  ClaimedSubscription,
} from "../store/queue.ts";
import type { SendResult } from "./exchange.ts";
import type { EngineParts } from "./parts.ts";
import { redact } from "./redaction.ts";
import type { Sender } from "./sender.ts";
import { type ShownAttempt, shownOf } from "./store-calls.ts";

interface AttemptParts extends Pick<EngineParts, "clock" | "random" | "counts" | "version"> {
  readonly sender: Pick<Sender, "send">;
}

/**
 * Carries an attempt through: builds, signs and sends the request, and says how it ended.
 * @param done called once, maybe before this returns. A callback, as a promise for each attempt is measurably slower.
 */
export function startAttempt(
  { clock, random, sender, counts, version }: AttemptParts,
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
    const { headers, ...ended } = withoutSecrets(sent, subscription);
    const ending = endingOf(sent);
    const hasFailed = ending === "failed" || ending === "gone";
    const retryAfter: unknown = headers?.["retry-after"];
    const askedMs = typeof retryAfter === "string" ? retryAfterMs(retryAfter, clock.now()) : undefined;
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
  const request = buildRequest(version, claim, startedAtMs);
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

interface SignedRequest {
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

/** What of a claim is sent. */
type SentClaim = Pick<Claim, "event" | "subscription" | "attempt">;

/**
 * The request of an attempt that begins now; why nothing can be sent, where its event or its secret cannot be read.
 * @param version of evreg, for `User-Agent`
 * @param webhookId instead of that of the event's delivery
 */
export function buildRequest(
  version: string,
  { event, subscription, attempt }: SentClaim,
  nowMs: number,
  webhookId = `evt_${event.eventId}_${subscription.subscriptionId}`,
): SignedRequest | AttemptErrorCode {
  const { payload } = event;
  const { secret, previous, bearer, settings } = subscription;
  if (secret === undefined) return "secret_unreadable";
  if (payload === undefined) return "event_damaged";
  const body = bodyOf(event, payload, attempt);
  // Prefetched, it may be sent after the overlap's end.
  const previousSecret = previous !== undefined && nowMs < previous.untilMs ? previous.secret : undefined;
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": `evreg/${version}`,
    "X-Evreg-Event": event.action,
    "X-Evreg-Delivery": `${event.eventId}_${attempt}`,
    ...signatures(body, secret, previousSecret, webhookId, Math.floor(nowMs / 1_000)),
  } satisfies Record<WebhookHeader | "Content-Type" | "User-Agent", string>;
  if (bearer !== null) headers["Authorization"] = `Bearer ${bearer ?? previousSecret ?? secret}`;
  for (const [name, value] of Object.entries(settings.headers ?? {})) {
    if (!isReservedHeader(name)) headers[name] = value;
  }
  return { headers, body };
}

/**
 * `X-Evreg-Signature` is `sha256=<hex HMAC-SHA256 of the body>`, keyed with the UTF-8 bytes of the whole secret, `whsec_`
 * included. The `webhook-*` headers follow Standard Webhooks 1.0.0: the key is what follows `whsec_`, base64 decoded; the
 * signed text is `<id>.<timestamp>.<body>`; `webhook-id` names the delivery and is the same in each retry.
 *
 * During a rotation's overlap, `webhook-signature` holds a signature by each secret. `X-Evreg-Signature` and `Authorization`
 * can hold only one and use the previous secret, so that receivers that do not have the new one yet go on undisturbed.
 */
function signatures(
  body: Buffer,
  secret: string,
  previousSecret: string | undefined,
  webhookId: string,
  timestamp: number,
) {
  const keys = [secret, ...(previousSecret === undefined ? [] : [previousSecret])].map(signingKeys);
  const signedPrefix = `${webhookId}.${timestamp}.`;
  const standard = keys.map((key) => `v1,${signed(key.standard, signedPrefix, body, "base64")}`);
  return {
    "X-Evreg-Signature": `sha256=${signed(keys.at(-1)!.whole, "", body, "hex")}`,
    "webhook-id": webhookId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": standard.join(" "),
  };
}

const STANDARD_PREFIX = "whsec_";
const MAX_KEYS = 10_000;
const keysOf = new LRUCache<string, Record<"whole" | "standard", KeyObject>>({ max: MAX_KEYS });

function signingKeys(secret: string) {
  const known = keysOf.get(secret);
  if (known !== undefined) return known;
  const encoded = secret.startsWith(STANDARD_PREFIX) ? secret.slice(STANDARD_PREFIX.length) : secret;
  const keys = {
    whole: createSecretKey(Buffer.from(secret)),
    standard: createSecretKey(Buffer.from(encoded, "base64")),
  };
  keysOf.set(secret, keys);
  return keys;
}

/** @param prefix signed before the body */
function signed(key: KeyObject, prefix: string, body: Uint8Array, encoding: "hex" | "base64"): string {
  return createHmac("sha256", key).update(prefix).update(body).digest(encoding);
}

/**
 * The bytes a handler gets: the specification's members in its order, `event_id` a string, and the payload exactly as it
 * was published, which is never parsed and written again.
 */
function bodyOf(
  { eventId, action, timestampedMs }: ClaimedEvent,
  payload: Uint8Array,
  attempt: number,
): Buffer {
  const head = `{"event_id":"${eventId}","action":${JSON.stringify(action)},"payload":`;
  const tail = `,"timestamp":"${toIso(timestampedMs)}","delivery_attempt":${attempt}}`;
  const headBytes = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafe(headBytes + payload.byteLength + tail.length);
  bytes.write(head, 0);
  bytes.set(payload, headBytes);
  bytes.write(tail, headBytes + payload.byteLength, "latin1");
  return bytes;
}
