import { createHmac } from "node:crypto";
import { signingKeys, type SigningKeys } from "./signing-keys.ts";

export interface SignedDelivery {
  readonly eventId: number;
  readonly subscriptionId: number;
  readonly action: string;
  readonly attempt: number;
  /** The exact bytes that are sent. */
  readonly body: Uint8Array;
  /** The one in force first; while a secret is being rotated, also the one before. */
  readonly secrets: readonly [string, ...string[]];
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
 * With several secrets `webhook-signature` holds one signature each, separated by spaces, and `X-Evreg-Signature` one
 * each, separated by commas; `Authorization` carries the first.
 */
export function deliveryHeaders(delivery: SignedDelivery): Record<string, string> {
  const { eventId, subscriptionId, action, attempt, body, secrets, nowMs, version } = delivery;
  const webhookId = `evt_${eventId}_${subscriptionId}`;
  const timestamp = Math.floor(nowMs / 1_000);
  const keys = secrets.map(signingKeys);
  return {
    "Content-Type": "application/json",
    "User-Agent": `evreg/${version}`,
    Authorization: `Bearer ${secrets[0]}`,
    "X-Evreg-Event": action,
    "X-Evreg-Delivery": `${eventId}_${attempt}`,
    "X-Evreg-Signature": keys.map((key) => `sha256=${bodySignature(key, body)}`).join(","),
    "webhook-id": webhookId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": keys
      .map((key) => `v1,${standardSignature(key, webhookId, timestamp, body)}`)
      .join(" "),
  };
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
