import { ATTEMPT } from "./delivery.ts";
import { about, field, type Fields } from "./field.ts";
import { record } from "./schemas.ts";

const TEXTS = { type: "object", additionalProperties: field.text } as const;

/** What one signed attempt outside the queue has shown. It is stored nowhere. */
export const HANDLER_TEST = {
  subscription_id: { answer: field.rowid },
  application: { answer: field.text },
  subscription: { answer: field.text },
  action: { answer: field.text },
  outcome: { answer: { type: "string", enum: ["delivered", "failed"] } },
  error_code: ATTEMPT.error_code,
  tls_reason: ATTEMPT.tls_reason,
  refusal: {
    answer: field.nullableText,
    about: "For `address_refused`: the address and the rule; `null` without the scope `admin`.",
  },
  started_at: { answer: field.timestamp },
  duration_ms: { answer: field.count },
  dns_ms: { answer: field.nullableCount },
  connect_ms: { answer: field.nullableCount },
  first_byte_ms: { answer: field.nullableCount },
  request: {
    answer: record({
      method: { const: "POST" },
      url: { type: "string", format: "uri" },
      headers: about(TEXTS, "Without the bearer; of signatures the first eight characters."),
      body: field.text,
    }),
  },
  response: {
    answer: {
      ...record({
        status_code: { type: "integer" },
        headers: TEXTS,
        body: about(field.nullableText, "The first 1 KiB as text."),
      }),
      type: ["object", "null"],
    },
    about: "`null` if none came.",
  },
} as const satisfies Fields;
