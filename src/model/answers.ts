import { ATTEMPT, DELIVERY_STATUSES, TIMES } from "./delivery.ts";
import { about, answersOf, field, ofSubscription, record } from "./field.ts";

/** What is counted over time. */
export const COUNTED = {
  published: about(field.count, "Events stored."),
  delivered: about(field.count, "Attempts that delivered."),
  failed_attempts: about(field.count, "Attempts that failed."),
  failed: about(field.count, "Deliveries that failed for good."),
} as const;

const PERCENTILES = about(
  record({ p50: field.nullableCount, p95: field.nullableCount, p99: field.nullableCount }),
  "In milliseconds, to 6 %; `null` where there were none.",
);
/** By its name in the document, and of the type of what is named. */
const percentiles = { $ref: "#/components/schemas/Percentiles" } as unknown as typeof PERCENTILES;

const figures = { ...COUNTED, latency_ms: percentiles, attempt_ms: percentiles } as const;

/** Why a subscription needs a person, the gravest first; `Attention` says what each means. */
export const ATTENTION_REASONS = [
  "deactivated",
  "blocked",
  "failing",
  "failed",
  "unclaimed",
  "slowed",
  "paused",
] as const;

/** What is kept of who changed what. */
export const AUDITED_CHANGES = [
  "action.created",
  "action.updated",
  "subscription.created",
  "subscription.updated",
  "subscription.secret_rotated",
  // Only by earlier versions.
  "subscription.secret_used",
  "subscription.deleted",
  "token.created",
  "token.revoked",
  "replay.started",
  "replay.cancelled",
  "delivery.retried",
  "delivery.skipped",
  "data.restored",
] as const;

const auditedValue = { type: ["string", "number", "boolean", "null"] } as const;
const texts = { type: "object", additionalProperties: field.text } as const;

/** What answers have that no body has, and that is not of an action: figures, what consumers take, how the service is. */
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
    ...answersOf(ofSubscription),
    ...figures,
    last_error: about(field.nullableText, "Of its last failed attempt in this time."),
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
    attempt: field.ordinal,
    headers: about(texts, "All that a handler would be sent, as the webhook `event` has them."),
    body: about(field.text, "Its UTF-8 bytes are those that a handler would be sent, and are signed."),
    expires_at: about(field.timestamp, "When the lease ends, and the delivery is due again."),
  }),
  FinishedPull: record({
    lease: field.text,
    outcome: {
      type: "string",
      enum: ["stored", "fenced"],
      description:
        "`fenced`: the lease had ended and was released, or its result is stored already. Somebody else has the delivery, or will have it.",
    },
    status: about({ enum: [...DELIVERY_STATUSES, null] }, "Of the delivery then; `null` where it is fenced."),
    expires_at: about(field.nullableTimestamp, "Of one that was extended: when its lease ends."),
  }),
  /** What one signed attempt outside the queue has shown. It is stored nowhere. */
  HandlerTest: record({
    ...answersOf(ofSubscription),
    outcome: { type: "string", enum: ["delivered", "failed"] },
    ...answersOf({
      error_code: ATTEMPT.error_code,
      tls_reason: ATTEMPT.tls_reason,
      refusal: ATTEMPT.refusal,
      ...TIMES,
    }),
    request: record({
      method: { const: "POST" },
      url: { type: "string", format: "uri" },
      headers: about(texts, "Without the bearer; of signatures the first eight characters."),
      body: field.text,
    }),
    response: {
      ...record({
        status_code: { type: "integer" },
        headers: texts,
        body: about(field.nullableText, "The first 1 KiB as text."),
      }),
      type: ["object", "null"],
      description: "`null` if none came.",
    },
  }),
  Health: record(
    {
      status: { enum: ["ok", "unavailable"] },
      version: field.text,
      reason: about(field.text, "Why it is unavailable."),
      store: { enum: ["ok", "unavailable"] },
      engine: { enum: ["running", "failing", "stopped"] },
      instance: about(field.text, "New at each start."),
    },
    ["reason"],
  ),
  /** The result of one check of the doctor. */
  Finding: record({
    check: about(field.text, "What was checked."),
    status: about(
      { enum: ["ok", "warning", "problem"] },
      "A `warning` becomes a problem later, or may be intended.",
    ),
    found: field.text,
    remedy: about(field.nullableText, "What to do about it; `null` if all is well."),
  }),
  /** A process that has the data open. */
  Node: record({
    id: about(field.text, "New at each start."),
    host: field.text,
    pid: field.count,
    version: field.text,
    status: about(
      { enum: ["serving", "visiting", "gone"] },
      "`visiting` is a command, which delivers nothing; what is `gone` ended without a word.",
    ),
    started_at: field.timestamp,
    seen_at: about(field.timestamp, "Its last sign of life."),
    shards: about(field.count, "How many of the shards it has."),
    leaving: about(field.count, "How many of these it gives up once nothing of them is under way."),
  }),
  /** Something that needs a person. A subscription has one for its state at most, and one more for what failed. */
  Attention: record({
    reason: about(
      { enum: ATTENTION_REASONS },
      "The gravest first. `deactivated`: evreg gave up on its handler. `blocked`: a delivery that used up its retries holds up those behind it. `failing`: the last attempt failed. `failed`: deliveries failed for good within a day. `unclaimed`: deliveries of a pull subscription have been due for five minutes, and nobody claims from it. `slowed`: no attempt begins for now. `paused`: a person paused it, and it holds deliveries or has missed events.",
    ),
    ...answersOf(ofSubscription),
    since: about(
      field.nullableTimestamp,
      "Of `blocked` and `failing` the first failure since the last success. Of `failed` the first within a day. Of `unclaimed` the later of the last claim and of when the oldest delivery became due. `null` if it is not known.",
    ),
    until: about(field.nullableTimestamp, "No attempt begins before this; `null` if one may."),
    published_from: about(
      field.nullableTimestamp,
      "Of `failed`: when the oldest event was published whose delivery failed, so that a replay from there sends all of them. Of all that ever failed, where `at_least` says that not all were counted. `null` otherwise.",
    ),
    deliveries: about(
      field.nullableCount,
      "Deliveries that are held, wait (behind the one that blocks), or have failed.",
    ),
    at_least: about(field.flag, "Whether only so many were counted, and there may be more."),
    delivery_id: about(field.nullableRowid, "The delivery that blocks it, or that failed last."),
    missed: about(
      field.nullableCount,
      "Events published since it was paused or deactivated, for which it has no delivery; `null` if that is not known.",
    ),
    error: about(field.nullableText, "The last error such as `HTTP 500`, or why it was deactivated."),
    found: about(field.text, "A sentence with all this."),
  }),
  /** One change, as it was made. */
  AuditEntry: record({
    rowid: field.rowid,
    timestamped: field.timestamp,
    change: { type: "string", enum: AUDITED_CHANGES },
    record_id: about(field.nullableCount, "Rowid of what was changed; `null` for all data."),
    name: about(field.text, "Of what was changed, such as `billing/invoices#order.created`."),
    by: about(field.text, "The token's name; `local` for who holds the data folder itself."),
    token_id: field.nullableCount,
    address: about(field.nullableText, "Where the request came from: behind a proxy, the proxy's address."),
    members: {
      type: "array",
      items: record({ member: field.text, before: auditedValue, after: auditedValue }),
      description:
        "What an update changed; of a new token its scopes, of a replay what it sends. `before` and `after` are `null` for long values and for those that may hold a credential.",
    },
  }),
} as const;
