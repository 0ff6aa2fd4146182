import { EVENT_LIMITS } from "../event.ts";
import { NO_NUL, type QuerySchema } from "../query.ts";
import { type BodySchema, actionName, byAction, from, querySchema, rowid, to } from "./members.ts";

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

export const BATCH_QUERY: QuerySchema = querySchema("BatchQuery", {
  atomic: { type: "boolean", default: false, description: "All or nothing." },
  data_id: {
    type: "string",
    maxLength: 64,
    pattern: NO_NUL,
    description:
      "The identity of the data that this is for, as `GET /v1/whoami` told it; 409 where it is other data.",
  },
});

/** What can be asked of the port; `minimal` is a header of the request. */
export const BATCH_OPTIONS: QuerySchema = querySchema("BatchOptions", {
  ...BATCH_QUERY.properties,
  minimal: { type: "boolean", default: false },
});

export const EVENT_QUERY: QuerySchema = querySchema("EventQuery", {
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
