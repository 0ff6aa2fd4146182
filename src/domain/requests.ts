import { CHECK_LIMITS, REVISION_LIMITS } from "./action.ts";
import { COMPATIBILITY_AGAINST, COMPATIBILITY_MODES, DEFAULT_RULE } from "./compatibility.ts";
import { DELIVERY_LIMITS, DELIVERY_STATUSES } from "./delivery.ts";
import { EVENT_LIMITS } from "./event.ts";
import { NAME_LENGTH } from "./names.ts";
import { REPLAY_LIMITS, REPLAY_SELECTIONS, REPLAY_STATUSES } from "./replay.ts";
import type { QueryProperty, QuerySchema } from "./query.ts";
import { ON_EXHAUSTED, SETTINGS_LIMITS } from "./subscription-settings.ts";
import { BEARERS, SUBSCRIPTION_LIMITS } from "./subscription.ts";

/**
 * What every request may hold: the schemas that check bodies and queries, and that the OpenAPI document publishes.
 * Unknown members are refused everywhere, as a typo would otherwise be lost without a word.
 */
export type BodySchema = Readonly<Record<string, unknown>>;

const actionName = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  pattern: "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$",
  description: "Segments of letters, digits, _ and - joined by single dots.",
  examples: ["user.created", "user.created.v2"],
} as const;

const label = { type: "string", minLength: 1, maxLength: NAME_LENGTH } as const;

const application = {
  ...label,
  description: "Name of the owning application: printable characters, trimmed.",
  examples: ["billing"],
} as const;

const schemata = {
  type: "object",
  description: "A JSON Schema Draft 7 document that payloads must conform to.",
  examples: [
    { type: "object", properties: { email: { type: "string", format: "email" } }, required: ["email"] },
  ],
} as const;

const compatibility = {
  type: "string",
  enum: COMPATIBILITY_MODES,
  description:
    "Whom a change of the schema must not break: producers (who publish), consumers (who read), both (full), or nobody in particular.",
} as const;

const compatibilityAgainst = {
  type: "string",
  enum: COMPATIBILITY_AGAINST,
  description:
    "What a change is compared with: the schema in force (last), or every revision there was (all, which others call transitive).",
} as const;

export const NEW_ACTION: BodySchema = {
  title: "NewAction",
  type: "object",
  properties: {
    action: actionName,
    application,
    schemata,
    compatibility: { ...compatibility, default: DEFAULT_RULE.compatibility },
    compatibility_against: { ...compatibilityAgainst, default: DEFAULT_RULE.compatibility_against },
  },
  required: ["action", "application", "schemata"],
  additionalProperties: false,
};

export const ACTION_UPDATE: BodySchema = {
  title: "ActionUpdate",
  description:
    "What is to change; what is left out stays as it is. A whole Action may be sent: `action`, `rowid`, `revision` and `timestamped` must then agree with those stored.",
  type: "object",
  properties: {
    schemata,
    application,
    compatibility: {
      ...compatibility,
      description: `${compatibility.description} It holds from now on, for a schema in the same body too; protecting less than before needs the scope admin.`,
    },
    compatibility_against: compatibilityAgainst,
    deprecated: {
      type: "boolean",
      description: "True: whoever publishes is told to move on, by the header `Deprecation`.",
    },
    retired: {
      type: "boolean",
      description: "True: publishing is refused with 410. Reading and deliveries go on.",
    },
    successor: {
      type: ["string", "null"],
      minLength: 1,
      maxLength: NAME_LENGTH,
      description:
        "The action to publish to instead. Only while deprecated or retired; it is `null` again once neither is so.",
      examples: ["user.created.v2"],
    },
    action: actionName,
    rowid: { type: "integer" },
    revision: { type: "integer" },
    timestamped: { type: "string" },
  },
  additionalProperties: false,
};

export const SCHEMA_CANDIDATE: BodySchema = {
  title: "SchemaCandidate",
  type: "object",
  properties: {
    schemata,
    mode: { ...compatibility, description: "Instead of the action's own `compatibility`." },
    replay: {
      type: "integer",
      minimum: 0,
      maximum: CHECK_LIMITS.replay,
      default: 0,
      description: "Validates so many of the action's last events against the schema.",
    },
  },
  required: ["schemata"],
  additionalProperties: false,
};

export const NEW_EVENT: BodySchema = {
  title: "NewEvent",
  type: "object",
  properties: {
    action: { ...actionName, description: "Names an existing action." },
    payload: {
      type: "object",
      description: "Must conform to the action's schema. Kept byte for byte.",
      examples: [{ email: "ada@example.com" }],
    },
    idempotency_key: {
      type: "string",
      minLength: 1,
      maxLength: 255,
      pattern: "^[ -~]*$",
      description: "The same key with the same action and payload answers the first event again.",
      examples: ["order-4711-created"],
    },
  },
  required: ["action", "payload"],
  additionalProperties: false,
};

export const BATCH: BodySchema = {
  title: "Batch",
  type: "object",
  properties: { events: { type: "array", items: NEW_EVENT, minItems: 1, maxItems: EVENT_LIMITS.batchItems } },
  required: ["events"],
  additionalProperties: false,
};

const handler = {
  type: "string",
  format: "uri",
  maxLength: SUBSCRIPTION_LIMITS.handlerLength,
  description: "Absolute https: URL, without user info and not inside the operator's network.",
  examples: ["https://hooks.example.com/evreg"],
} as const;

const maxRetries = {
  type: "integer",
  minimum: 0,
  maximum: SUBSCRIPTION_LIMITS.retriesMax,
  description: "Retries after the first attempt: at once, then after 2, 4, 8, 16 seconds, and doubling on.",
} as const;

const active = { type: "boolean", description: "False pauses the subscription." } as const;

const bearer = {
  type: "string",
  enum: BEARERS,
  description:
    "What `Authorization: Bearer` of its deliveries carries: its secret, a value of its own (`bearer_token`), or there is no such header.",
} as const;

const bearerToken = {
  type: "string",
  minLength: 1,
  maxLength: SUBSCRIPTION_LIMITS.bearerTokenLength,
  pattern: "^[!-~]*$",
  writeOnly: true,
  description: "The value of its own for `bearer`, which need not be given beside it. It is never shown.",
} as const;

const settings = {
  filter: {
    type: ["object", "null"],
    description:
      "A JSON Schema Draft 7 document, held to the limits of an action's schema. Events whose payload does not conform to it are not sent; their delivery ends as `filtered`. It goes for all deliveries that have not begun.",
    examples: [{ properties: { country: { const: "FR" } }, required: ["country"] }],
  },
  rate_limit: {
    type: ["number", "null"],
    minimum: SETTINGS_LIMITS.rateMin,
    maximum: SETTINGS_LIMITS.rateMax,
    description: "Most attempts begun in a second.",
    examples: [10],
  },
  max_in_flight: {
    type: ["integer", "null"],
    minimum: 1,
    maximum: SETTINGS_LIMITS.inFlightMax,
    description: "Most attempts under way at a time; never more than the service allows to each.",
  },
  timeout_ms: {
    type: ["integer", "null"],
    minimum: SETTINGS_LIMITS.timeoutMinMs,
    maximum: SETTINGS_LIMITS.timeoutMaxMs,
    description: "How long one attempt may take, from looking the host up to the end of the answer.",
  },
  headers: {
    type: ["object", "null"],
    maxProperties: SETTINGS_LIMITS.headers,
    additionalProperties: { type: "string", maxLength: SETTINGS_LIMITS.headerValueLength },
    description:
      "Sent with each delivery beside the service's own, which they cannot replace. They are shown: a credential belongs into `bearer_token`.",
    examples: [{ "X-Team": "billing" }],
  },
  retry_schedule: {
    type: ["array", "null"],
    minItems: 1,
    maxItems: SETTINGS_LIMITS.waits,
    items: { type: "integer", minimum: 0, maximum: SETTINGS_LIMITS.waitMaxMs },
    description:
      "The waits before retry 1, 2, … in milliseconds; the last one goes for all that follow. How many retries there are is for `max_retries` to say.",
    examples: [[0, 60_000, 3_600_000]],
  },
  ordered: {
    type: "boolean",
    description: "One delivery at a time, in the order in which the events were published.",
  },
  on_exhausted: {
    enum: [...ON_EXHAUSTED, null],
    description:
      "Of an ordered one, what becomes of a delivery that has used up its retries. block: it is tried on, and those behind it wait. skip: it has failed, and the next one is sent.",
  },
} as const;

export const NEW_SUBSCRIPTION: BodySchema = {
  title: "NewSubscription",
  type: "object",
  properties: {
    application: { ...application, description: "Name of the subscribing application." },
    subscription: { ...label, description: "Name of the subscription.", examples: ["welcome-mail"] },
    action: { ...actionName, description: "The action whose events are delivered." },
    handler,
    max_retries: { ...maxRetries, default: SUBSCRIPTION_LIMITS.retriesDefault },
    active: { ...active, default: true },
    bearer: { ...bearer, default: "secret" },
    bearer_token: bearerToken,
    ...settings,
    ordered: { ...settings.ordered, default: false },
  },
  required: ["application", "subscription", "action", "handler"],
  additionalProperties: false,
};

export const SUBSCRIPTION_UPDATE: BodySchema = {
  title: "SubscriptionUpdate",
  description: "Any subset; what is left out stays as it is, and a setting that is `null` goes.",
  type: "object",
  properties: {
    handler,
    max_retries: maxRetries,
    active,
    action: { ...actionName, description: "The action whose events are delivered from now on." },
    bearer,
    bearer_token: bearerToken,
    ...settings,
  },
  additionalProperties: false,
};

export const SECRET_ROTATION: BodySchema = {
  title: "SecretRotation",
  type: "object",
  properties: {
    overlap_ms: {
      type: "integer",
      minimum: 0,
      maximum: SUBSCRIPTION_LIMITS.overlapMaxMs,
      default: SUBSCRIPTION_LIMITS.overlapDefaultMs,
      description: "How long the secret before stays valid; 0 ends it at once.",
      examples: [3_600_000],
    },
  },
  additionalProperties: false,
};

export const NEW_REPLAY: BodySchema = {
  title: "NewReplay",
  type: "object",
  properties: {
    from: {
      type: "string",
      format: "date-time",
      description: "Events published then or later; ISO 8601 with its zone.",
      examples: ["2026-01-31T00:00:00Z"],
    },
    to: {
      type: "string",
      format: "date-time",
      description:
        "Events published before then. Left out: until now. Later ones are never part of a replay.",
      examples: ["2026-02-01T00:00:00Z"],
    },
    status: {
      type: "string",
      enum: REPLAY_SELECTIONS,
      description:
        "failed: those whose delivery failed for good. missed: those without a delivery, published while the subscription was paused, before it existed or while it had another action. all: both, those that the filter kept back, and those delivered already once more; the filter in force is asked for each.",
    },
    dry_run: {
      type: "boolean",
      default: false,
      description: "Only counts what would be sent, and begins nothing.",
    },
  },
  required: ["from", "status"],
  additionalProperties: false,
};

export const NEW_TOKEN: BodySchema = {
  title: "NewToken",
  type: "object",
  properties: {
    name: { ...label, description: "For people: who uses it.", examples: ["shop backend"] },
    scopes: {
      type: "array",
      minItems: 1,
      maxItems: 100,
      items: {
        type: "string",
        pattern: "^(publish|read|write|admin)(:.+)?$",
        maxLength: NAME_LENGTH + 8,
      },
      description:
        "publish, read, write or admin; each may be limited to an application, as in publish:billing.",
      examples: [["publish:billing", "read"]],
    },
    expires_at: {
      type: "string",
      format: "date-time",
      description: "ISO 8601 with its zone, in the future. Left out: it never expires.",
      examples: ["2030-01-01T00:00:00Z"],
    },
  },
  required: ["name", "scopes"],
  additionalProperties: false,
};

const byAction: QueryProperty = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  description: "Only of this action.",
};
const byApplication: QueryProperty = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  description: "Only of this application.",
};
const from: QueryProperty = {
  type: "string",
  format: "date-time",
  description: "Start of the time range, itself included.",
  examples: ["2026-01-31T00:00:00Z"],
};
const to: QueryProperty = {
  type: "string",
  format: "date-time",
  description: "End of the time range, itself not included.",
  examples: ["2026-02-01T00:00:00Z"],
};
const rowid: QueryProperty = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER };

export const ACTION_QUERY: QuerySchema = query("ActionQuery", { application: byApplication });

export const ACTION_UPDATE_QUERY: QuerySchema = query("ActionUpdateQuery", {
  compatibility: {
    type: "string",
    enum: ["none"],
    description: "Applies a breaking change all the same, this once; needs the scope admin.",
  },
});

export const REVISION_QUERY: QuerySchema = query("RevisionQuery", {
  limit: {
    type: "integer",
    minimum: 1,
    maximum: REVISION_LIMITS.listMax,
    default: REVISION_LIMITS.listDefault,
    description: "Revisions in one answer.",
  },
  after: { ...rowid, description: "Walks on to revisions older than this one." },
});

export const BATCH_QUERY: QuerySchema = query("BatchQuery", {
  atomic: { type: "boolean", default: false, description: "All or nothing." },
});

export const EVENT_QUERY: QuerySchema = query("EventQuery", {
  action: byAction,
  from,
  to,
  order: { type: "string", enum: ["asc", "desc"], default: "desc", description: "desc is newest first." },
  page: {
    type: "integer",
    minimum: 1,
    maximum: 2 ** 31 - 1,
    default: 1,
    description: "Page number; not together with after.",
  },
  limit: {
    type: "integer",
    minimum: 1,
    maximum: EVENT_LIMITS.listMax,
    default: EVENT_LIMITS.listDefault,
    description: "Events on a page.",
  },
  after: {
    ...rowid,
    minimum: 0,
    description: "Walks on behind this rowid in the order asked for; replaces page.",
  },
});

export const SUBSCRIPTION_QUERY: QuerySchema = query("SubscriptionQuery", {
  application: byApplication,
  action: byAction,
  active: { type: "boolean", description: "Only active ones, or only paused ones." },
});

export const DELIVERY_QUERY: QuerySchema = query("DeliveryQuery", {
  event: { ...rowid, description: "Only of the event with this rowid." },
  subscription: { ...rowid, description: "Only of the subscription with this rowid." },
  action: byAction,
  status: { type: "string", enum: DELIVERY_STATUSES, description: "Only in this state." },
  from: { ...from, description: "Created then or later." },
  to: { ...to, description: "Created before then." },
  limit: {
    type: "integer",
    minimum: 1,
    maximum: DELIVERY_LIMITS.listMax,
    default: DELIVERY_LIMITS.listDefault,
    description: "Deliveries in one answer.",
  },
  after: { ...rowid, description: "Walks on to deliveries older than this rowid." },
});

export const REPLAY_QUERY: QuerySchema = query("ReplayQuery", {
  subscription: { ...rowid, description: "Only to the subscription with this rowid." },
  status: { type: "string", enum: REPLAY_STATUSES, description: "Only in this state." },
  limit: {
    type: "integer",
    minimum: 1,
    maximum: REPLAY_LIMITS.listMax,
    default: REPLAY_LIMITS.listDefault,
    description: "Replays in one answer.",
  },
  after: { ...rowid, description: "Walks on to replays older than this rowid." },
});

function query(title: string, properties: Readonly<Record<string, QueryProperty>>): QuerySchema {
  return { title, type: "object", properties, additionalProperties: false };
}
