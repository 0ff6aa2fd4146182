import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { LRUCache } from "lru-cache";
import { isReservedHeader } from "../domain/subscription-settings.ts";
import type { WebhookHeader } from "../domain/webhook.ts";
import { toIso } from "../runtime/clock.ts";

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
  /** In place of a secret in `Authorization`; `null` for no such header. */
  readonly bearer?: string | null | undefined;
  /** What the subscription wants sent besides; what has a name of ours is omitted. */
  readonly extra?: Readonly<Record<string, string>> | null;
  /** When this attempt is sent. */
  readonly nowMs: number;
  /** Of evreg, for `User-Agent`. */
  readonly version: string;
}

/**
 * The headers of one attempt.
 *
 * `X-Evreg-Signature` is `sha256=<hex HMAC-SHA256 of the body>`, keyed with the UTF-8 bytes of the whole secret, `whsec_`
 * included. The `webhook-*` headers follow Standard Webhooks 1.0.0: the key is what `whsec_` stands before, base64
 * decoded; the text signed is `<id>.<timestamp>.<body>`; `webhook-id` names the delivery and is the same in each retry.
 *
 * While a rotation's overlap lasts, `webhook-signature` holds a signature by each secret, separated by a space. The two
 * headers that can hold one value only, `X-Evreg-Signature` and `Authorization`, go by the secret before to the end of
 * the overlap: receivers that know nothing of the new one yet, and compare the whole value, go on undisturbed.
 */
export function deliveryHeaders(delivery: SignedDelivery): Record<string, string> {
  const { eventId, subscriptionId, action, attempt, body, nowMs, version } = delivery;
  const { secret, previousSecret, bearer } = delivery;
  const webhookId = `evt_${eventId}_${subscriptionId}`;
  const timestamp = Math.floor(nowMs / 1_000);
  const keys = signingKeys(secret);
  const previousKeys = previousSecret === undefined ? undefined : signingKeys(previousSecret);
  let standard = `v1,${standardSignature(keys, webhookId, timestamp, body)}`;
  if (previousKeys !== undefined) {
    standard += ` v1,${standardSignature(previousKeys, webhookId, timestamp, body)}`;
  }
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": `evreg/${version}`,
    "X-Evreg-Event": action,
    "X-Evreg-Delivery": `${eventId}_${attempt}`,
    "X-Evreg-Signature": `sha256=${bodySignature(previousKeys ?? keys, body)}`,
    "webhook-id": webhookId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": standard,
  } satisfies Record<WebhookHeader | "Content-Type" | "User-Agent", string>;
  if (bearer !== null) headers["Authorization"] = `Bearer ${bearer ?? previousSecret ?? secret}`;
  for (const [name, value] of Object.entries(delivery.extra ?? {})) {
    if (!isReservedHeader(name)) headers[name] = value;
  }
  return headers;
}

function bodySignature({ whole }: SigningKeys, body: Uint8Array): string {
  return createHmac("sha256", whole).update(body).digest("hex");
}

function standardSignature(
  { standard }: SigningKeys,
  id: string,
  timestamp: number,
  body: Uint8Array,
): string {
  return createHmac("sha256", standard).update(`${id}.${timestamp}.`).update(body).digest("base64");
}

/** A secret as the two kinds of signature take it. */
interface SigningKeys {
  /** The UTF-8 bytes of the whole secret. */
  readonly whole: KeyObject;
  /** What `whsec_` stands before, base64 decoded. */
  readonly standard: KeyObject;
}

const STANDARD_PREFIX = "whsec_";
const MAX_KEYS = 10_000;
const keysOf = new LRUCache<string, SigningKeys>({ max: MAX_KEYS });

/** Made once for each secret: an HMAC with bytes for a key takes seven times as long as with a key object. */
function signingKeys(secret: string): SigningKeys {
  const known = keysOf.get(secret);
  if (known !== undefined) return known;
  const encoded = secret.startsWith(STANDARD_PREFIX) ? secret.slice(STANDARD_PREFIX.length) : secret;
  const keys = {
    whole: createSecretKey(secret, "utf8"),
    standard: createSecretKey(encoded, "base64"),
  };
  keysOf.set(secret, keys);
  return keys;
}

export interface DeliveryBody {
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
