import { COMPATIBILITY_AGAINST, COMPATIBILITY_MODES } from "../domain/compatibility.ts";
import { ATTEMPT_ERROR_CODES, DELIVERY_STATUSES } from "../domain/delivery.ts";
import { ON_EXHAUSTED } from "../domain/subscription-settings.ts";
import { BEARERS } from "../domain/subscription.ts";
import { REPLAY_SELECTIONS, REPLAY_STATUSES } from "../domain/replay.ts";
import type { JsonSchema } from "./route.ts";

/** The records as they are answered, for the OpenAPI document. Tests hold real answers to them. */

const rowid: JsonSchema = {
  type: "integer",
  minimum: 1,
  description: "Assigned by the service; only grows.",
};
const timestamp: JsonSchema = {
  type: "string",
  format: "date-time",
  description: "ISO 8601 UTC with milliseconds.",
};
const nullableTimestamp: JsonSchema = { type: ["string", "null"], format: "date-time" };
const text: JsonSchema = { type: "string" };
const count: JsonSchema = { type: "integer", minimum: 0 };
const part: JsonSchema = { type: ["integer", "null"], minimum: 0 };

/** An object that has exactly these members. */
function record(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required, additionalProperties: false };
}

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

const delivery = {
  rowid,
  event_id: rowid,
  subscription_id: rowid,
  application: text,
  subscription: text,
  action: text,
  status: {
    type: "string",
    enum: DELIVERY_STATUSES,
    description:
      "Ends are `delivered`, `failed`, `filtered` (the subscription's filter kept it back, and nothing was sent) and `cancelled`.",
  },
  attempt: { ...count, description: "Attempts begun so far." },
  next_attempt_at: { ...nullableTimestamp, description: "`null` when nothing is planned." },
  last_error: {
    type: ["string", "null"],
    description: "Of the last finished attempt, such as `HTTP 500` or `timeout`.",
  },
  timestamped: timestamp,
  finished_at: nullableTimestamp,
} as const;

const replayed = {
  subscription_id: rowid,
  application: text,
  subscription: text,
  action: text,
  selection: { type: "string", enum: REPLAY_SELECTIONS },
  from: { ...timestamp, description: "Of the events' publication, included." },
  to: { ...timestamp, description: "Not included." },
} as const;

const token = {
  rowid,
  name: text,
  scopes: { type: "array", items: text },
  expires_at: nullableTimestamp,
  last_used_at: nullableTimestamp,
  timestamped: timestamp,
} as const;

const failure = {
  error: { type: "string", description: "A sentence: what went wrong, and what to do." },
  details: {
    type: "object",
    description: "Where one field is at fault: `{ field, message, value }`.",
    additionalProperties: true,
  },
  code: { type: "integer", description: "The HTTP status." },
} as const;

export const RECORDS: Readonly<Record<string, JsonSchema>> = {
  Action: record({
    rowid,
    action: text,
    application: text,
    schemata: { type: "object", description: "JSON Schema Draft 7.", additionalProperties: true },
    revision: { type: "integer", minimum: 1, description: "Number of the schema now in force." },
    compatibility: {
      type: "string",
      enum: COMPATIBILITY_MODES,
      description: "Whom a change of the schema must not break.",
    },
    compatibility_against: {
      type: "string",
      enum: COMPATIBILITY_AGAINST,
      description: "Whether a change is compared with the last schema or with all there were.",
    },
    deprecated: { type: "boolean", description: "Publishers are told to move on." },
    retired: { type: "boolean", description: "Publishing is refused." },
    successor: { type: ["string", "null"], description: "The action to publish to instead." },
    timestamped: timestamp,
  }),
  ActionRevision: record({
    action: text,
    revision: { type: "integer", minimum: 1 },
    schemata: { type: "object", description: "JSON Schema Draft 7.", additionalProperties: true },
    timestamped: { ...timestamp, description: "When it was applied." },
  }),
  SchemaBreak: record(
    {
      revision: { type: "integer", minimum: 1, description: "The revision it breaks with." },
      side: { type: "string", enum: ["producer", "consumer"], description: "Who breaks." },
      pointer: {
        ...text,
        description: "JSON pointer to the place: in the new schema, or in the old one for what is gone.",
      },
      was: { description: "What the old schema says there; left out where it says nothing." },
      is: { description: "What the new one says; left out where it says nothing." },
      message: text,
      remedy: { ...text, description: "What to do instead." },
      certainty: {
        type: "string",
        enum: ["proven", "cannot_prove"],
        description: "`cannot_prove`: it may be harmless, but that cannot be shown.",
      },
      example: { description: "A payload that shows it." },
    },
    ["was", "is", "example"],
  ),
  SchemaVerdict: record({
    compatible: { type: "boolean", description: "Whether an update in that mode would be applied." },
    breaks: { type: "array", items: ref("SchemaBreak") },
    warnings: { type: "array", items: ref("SchemaWarning") },
    replay: { oneOf: [ref("CheckedEvents"), { type: "null" }], description: "`null` unless asked for." },
  }),
  CheckedEvents: record({
    checked: {
      ...count,
      description: "Fewer than asked for where there are no more, or where 20 seconds were over.",
    },
    failed: count,
    failures: {
      type: "array",
      items: record({ event: rowid, field: text, message: text }),
      description: "The first 100, newest event first.",
    },
  }),
  Deprecation: record({
    action: text,
    since: { ...timestamp, description: "To the second." },
    successor: { type: ["string", "null"], description: "The action to publish to instead." },
  }),
  SchemaWarning: record({
    pointer: { ...text, description: "JSON pointer into the schema." },
    message: text,
  }),
  Event: record({
    rowid,
    action: text,
    payload: {
      type: "object",
      description: "Exactly as published, byte for byte.",
      additionalProperties: true,
    },
    revision: {
      type: "integer",
      minimum: 1,
      description: "The schema revision the payload was validated against.",
    },
    timestamped: timestamp,
  }),
  PageMeta: record({
    total: count,
    page: { type: "integer", minimum: 1 },
    per_page: { type: "integer", minimum: 1 },
  }),
  BatchItemError: record({ index: { ...count, description: "Place in the batch, from 0." }, ...failure }),
  Subscription: record(subscription),
  SubscriptionWithSecret: record({
    ...subscription,
    secret: { ...text, description: "Only ever in this answer: deliveries are signed with it." },
  }),
  Delivery: record(delivery),
  Attempt: record({
    attempt: { type: "integer", minimum: 1 },
    started_at: timestamp,
    duration_ms: count,
    dns_ms: {
      ...part,
      description:
        "Of the duration, for looking up the host's name; `null` where there was a connection already, or none came about, or the host is an address.",
    },
    connect_ms: {
      ...part,
      description:
        "Likewise for connecting, TLS included; `null` where there was a connection, or none came about.",
    },
    first_byte_ms: {
      ...part,
      description: "Likewise from the request to the beginning of the answer, where the connection was new.",
    },
    outcome: { type: "string", enum: ["delivered", "failed", "returned"] },
    status_code: { type: ["integer", "null"] },
    error_code: { enum: [...ATTEMPT_ERROR_CODES, null] },
    response: { type: ["string", "null"], description: "First 1 KiB of the answer." },
  }),
  DeliveryWithAttempts: record({
    ...delivery,
    attempts: {
      type: "array",
      items: ref("Attempt"),
      description: "In order; of more than 100, the first 50 and the last 50.",
    },
  }),
  ReplayCount: record({ ...replayed, total: { ...count, description: "Deliveries it would make due." } }),
  Replay: record({
    rowid,
    ...replayed,
    status: {
      type: "string",
      enum: REPLAY_STATUSES,
      description: "`done`: each one was handed to delivery, where `GET /v1/deliveries` tells of it.",
    },
    reason: { type: ["string", "null"], description: "Why it ended before it was done." },
    total: {
      type: ["integer", "null"],
      minimum: 0,
      description: "What there was to send when it began; `null` until it is counted.",
    },
    queued: { ...count, description: "Handed to delivery so far." },
    skipped: {
      ...count,
      description:
        "Of the total: gone, or sent again by somebody else, when their turn came. Known once it is done.",
    },
    timestamped: timestamp,
    finished_at: nullableTimestamp,
  }),
  Token: record(token),
  TokenWithSecret: record({ ...token, token: { ...text, description: "Only ever in this answer." } }),
  Identity: record({
    name: { ...text, description: "Of the token; `local` where the server asks for none." },
    scopes: token.scopes,
    expires_at: { ...nullableTimestamp, description: "When the token ends; `null`: never." },
  }),
  Health: record(
    {
      status: { enum: ["ok", "unavailable"] },
      version: text,
      reason: { ...text, description: "Why it is unavailable." },
      store: { enum: ["ok", "unavailable"] },
      engine: { enum: ["running", "stopped"] },
      instance: { ...text, description: "Made anew at each start." },
    },
    ["reason"],
  ),
  Error: record(failure),
};

export function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** `{ data: <record> }` */
export function one(name: string, meta?: JsonSchema): JsonSchema {
  return meta === undefined ? record({ data: ref(name) }) : record({ data: ref(name), meta }, ["meta"]);
}

/** `{ data: [<record>, …] }` */
export function many(name: string, meta?: JsonSchema): JsonSchema {
  const data: JsonSchema = { type: "array", items: ref(name) };
  return meta === undefined ? record({ data }) : record({ data, meta });
}

export const WARNINGS: JsonSchema = record({ warnings: { type: "array", items: ref("SchemaWarning") } });

/** The answer to a batch; with `failed`, also the members that every failure has. */
export function batch(failed: boolean): JsonSchema {
  return record({
    data: { type: "array", items: { oneOf: [ref("Event"), { type: "null" }] } },
    errors: { type: "array", items: ref("BatchItemError") },
    meta: record(
      {
        accepted: count,
        rejected: count,
        replayed: {
          ...count,
          description: "Of the accepted: their idempotency key stands for an event accepted before.",
        },
        deprecated: {
          type: "array",
          items: ref("Deprecation"),
          description: "The deprecated actions of the accepted; absent when there is none.",
        },
      },
      ["deprecated"],
    ),
    ...(failed ? failure : {}),
  });
}

/** `/health` while something is wrong: the record, and the members that every failure has. */
export const UNHEALTHY: JsonSchema = record({ data: ref("Health"), ...failure });
