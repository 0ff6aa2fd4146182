import { ATTEMPT, TIMES } from "./delivery.ts";
import { about, field, type Fields, ofSubscription, record } from "./field.ts";

const TEXTS = { type: "object", additionalProperties: field.text } as const;

/** What one signed attempt outside the queue has shown. It is stored nowhere. */
export const HANDLER_TEST = {
  ...ofSubscription,
  outcome: { answer: { type: "string", enum: ["delivered", "failed"] } },
  error_code: ATTEMPT.error_code,
  tls_reason: ATTEMPT.tls_reason,
  refusal: {
    answer: field.nullableText,
    about: "For `address_refused`: the address and the rule; `null` without the scope `admin`.",
  },
  ...TIMES,
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
