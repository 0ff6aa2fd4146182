import { WEBHOOK_HEADERS } from "../domain/webhook.ts";
import { DELIVERY_STATUSES } from "./delivery.ts";
import { about, field, ofSubscription, record } from "./field.ts";

/** The columns of figures over time, with what each has. */
export const STATS_COLUMNS = {
  published: "Events stored.",
  delivered: "Attempts that delivered.",
  failed_attempts: "Attempts that failed.",
  failed: "Deliveries that failed for good.",
  latency_p50_ms: "From publishing to the handler's answer, retries included: half took no longer.",
  latency_p95_ms: "The same for 95 of 100.",
  latency_p99_ms: "The same for 99 of 100.",
} as const;

const PERCENTILES = {
  ...record({ p50: field.nullableCount, p95: field.nullableCount, p99: field.nullableCount }),
  description: "In milliseconds, to 6 %; `null` where there were none.",
} as const;
/** By its name in the document, and of the type of what is named. */
const percentiles = { $ref: "#/components/schemas/Percentiles" } as unknown as typeof PERCENTILES;

const figures = {
  published: field.count,
  delivered: field.count,
  failed_attempts: field.count,
  failed: field.count,
  latency_ms: percentiles,
  attempt_ms: percentiles,
} as const;

/** What answers have that is neither a record nor of an action: figures, and deliveries that consumers take. */
export const ANSWERS = {
  Percentiles: PERCENTILES,
  Figures: record(figures),
  ActionFigures: record({
    action: field.text,
    application: field.text,
    ...figures,
    last_published_at: about(field.nullableTimestamp, "Of its last event that is kept."),
  }),
  SubscriptionFigures: record({
    subscription_id: ofSubscription.subscription_id.answer,
    application: field.text,
    subscription: field.text,
    action: field.text,
    ...figures,
    last_error: about(
      field.nullableText,
      "Of the last attempt that failed in this time: a status or an error code.",
    ),
  }),
  BacklogShare: record({
    deliveries: field.count,
    since: about(
      field.nullableTimestamp,
      "Since when the first of them has been due, or under way; for `blocked`, what blocks.",
    ),
  }),
  PulledDelivery: record({
    lease: about(field.text, "Names it in its result. Opaque; whoever has a later one holds the delivery."),
    delivery_id: field.rowid,
    event_id: field.rowid,
    action: field.text,
    attempt: { type: "integer", minimum: 1 },
    headers: {
      type: "object",
      additionalProperties: field.text,
      description: `All that a handler would be sent, such as ${Object.keys(WEBHOOK_HEADERS).join(", ")}.`,
    },
    body: about(field.text, "Its UTF-8 bytes are those that a handler would be sent, and are signed."),
    expires_at: about(field.timestamp, "When the lease ends, and the delivery is due again."),
  }),
  FinishedPull: record({
    lease: field.text,
    outcome: {
      type: "string",
      enum: ["stored", "fenced"],
      description:
        "`fenced`: the lease had ended, or its result is stored already. Somebody else has the delivery, or will have it.",
    },
    status: {
      enum: [...DELIVERY_STATUSES, null],
      description: "Of the delivery then; `null` where it is fenced.",
    },
    expires_at: about(field.nullableTimestamp, "Of one that was extended: when its lease ends."),
  }),
} as const;
