import type { ANSWERS } from "../model/answers.ts";
import { record } from "../model/field.ts";
import type { ValueOf } from "./request.ts";

// What a handler receives. The engine sends exactly these headers and members, and the OpenAPI document publishes them.

/** The headers of a delivery that are evreg's own. */
export const WEBHOOK_HEADERS = {
  "X-Evreg-Event": "The action.",
  "X-Evreg-Delivery": "`<event_id>_<delivery_attempt>`.",
  "X-Evreg-Signature":
    "`sha256=` and the hex HMAC-SHA256 of the raw body. The key is the subscription's secret as text, `whsec_` included.",
  "webhook-id": "The same in each attempt of a delivery (Standard Webhooks 1.0.0).",
  "webhook-timestamp": "When the attempt was sent, in seconds since the epoch.",
  "webhook-signature":
    "`v1,` and the base64 HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<raw body>`. The key is what follows `whsec_` in the secret, base64 decoded. While a secret is being rotated there are two, separated by a space.",
} as const;

export type WebhookHeader = keyof typeof WEBHOOK_HEADERS;

/** The body of a delivery. */
export const WEBHOOK_BODY = record({
  event_id: { type: "string", description: "The same each time the event is sent." },
  action: { type: "string" },
  payload: {
    type: "object",
    additionalProperties: true,
    description: "Byte for byte as it was published.",
  },
  timestamp: { type: "string", format: "date-time", description: "When the event was published." },
  delivery_attempt: { type: "integer", minimum: 1, description: "Counted on over replays." },
});

/** The header that only the requests of tests have. */
export const TEST_HEADER = "X-Evreg-Test";

/** What one signed attempt outside the queue has shown. It is stored nowhere. */
export interface HandlerTest extends ValueOf<(typeof ANSWERS)["HandlerTest"]> {}
