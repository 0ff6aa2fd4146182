import { ON_EXHAUSTED } from "../../domain/subscription-settings.ts";
import { BEARERS } from "../../domain/subscription.ts";
import type { JsonSchema } from "../route.ts";
import { count, nullableTimestamp, record, rowid, text, timestamp } from "./members.ts";

const subscription = {
  rowid,
  application: text,
  subscription: text,
  action: text,
  handler: { type: "string", format: "uri" },
  max_retries: { type: "integer", minimum: 0, maximum: 20 },
  active: { type: "boolean" },
  disabled_reason: {
    type: ["string", "null"],
    description: "Why the service itself deactivated it; `null` while active or when a person paused it.",
  },
  bearer: {
    type: "string",
    enum: BEARERS,
    description:
      "What `Authorization: Bearer` of its deliveries carries: its secret, a value of its own, or there is no such header.",
  },
  previous_secret_until: {
    ...nullableTimestamp,
    description: "While its secret is being rotated: until when the one before is signed with as well.",
  },
  failing_since: {
    ...nullableTimestamp,
    description: "When the first attempt after the last success failed; `null` when the last one went well.",
  },
  slowed_until: {
    ...nullableTimestamp,
    description:
      "As its handler asked (`Retry-After`), or keeps answering 429, 502, 503 or 504, or as it is ordered and waits for a retry, no attempt begins before this, except one that a person asks for. It may have passed.",
  },
  blocked_by: {
    type: ["integer", "null"],
    minimum: 1,
    description:
      "Rowid of the delivery that an ordered one waits for which blocks: it has used up its retries and is tried on. `null` while none has.",
  },
  filter: { type: ["object", "null"], additionalProperties: true },
  rate_limit: { type: ["number", "null"] },
  max_in_flight: { type: ["integer", "null"] },
  timeout_ms: { type: ["integer", "null"] },
  headers: { type: ["object", "null"], additionalProperties: text },
  retry_schedule: { type: ["array", "null"], items: count },
  ordered: {
    type: "boolean",
    description: "One delivery at a time, in the order in which the events were published.",
  },
  on_exhausted: {
    enum: [...ON_EXHAUSTED, null],
    description:
      "Of an ordered one, when a delivery has used up its retries: `block` tries on and sends nothing past it, `skip` fails it and sends the next.",
  },
  timestamped: timestamp,
} as const;

/** Subscriptions as they are answered. */
export const SUBSCRIPTION_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Subscription: record(subscription),
  SubscriptionWithSecret: record({
    ...subscription,
    secret: { ...text, description: "Only ever in this answer: deliveries are signed with it." },
  }),
};

export const CANCELLED: JsonSchema = record({
  cancelled: {
    ...count,
    description:
      "How many deliveries waited and were cancelled. One under way ends as usual, and is cancelled as well if it fails.",
  },
});
