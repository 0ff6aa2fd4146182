import type { RawJson } from "../json/raw-json.ts";
import type { EVENT } from "../model/event.ts";
import type { RecordOf } from "../model/field.ts";
import type { META } from "../model/meta.ts";
import type { DeliveryCounts } from "./delivery.ts";
import type { ErrorBody } from "./error.ts";
import {
  actionName,
  byAction,
  from,
  inputSchema,
  NO_NUL,
  pageLimit,
  rowid,
  to,
  type ValueOf,
} from "./request.ts";

/** One occurrence of an action. */
export interface Event extends Omit<RecordOf<typeof EVENT>, "payload" | "deliveries"> {
  /** Exactly as published, byte for byte; `null` in a listing without payloads, or whose `meta.damaged` names the event. */
  readonly payload: RawJson;
  /** Its deliveries that the caller may read, counted, in a listing that was asked for them. */
  readonly deliveries?: DeliveryCounts;
}

export interface NewEvent extends Omit<ValueOf<typeof NEW_EVENT>, "payload"> {
  readonly payload: RawJson;
}

export interface PageMeta extends ValueOf<(typeof META)["page"]> {}

export interface BatchItemError extends ErrorBody {
  /** Place of the refused item in the batch, from 0. */
  readonly index: number;
}

/** What is said of a publish to a deprecated action. */
export interface DeprecatedMeta extends ValueOf<(typeof META)["deprecated"]> {}

export interface BatchResult {
  /** The events in the order sent; `null` where the item was refused. Empty with `minimal`. */
  readonly data: readonly (Event | null)[];
  readonly errors: readonly BatchItemError[];
  readonly meta: ValueOf<(typeof META)["batch"]>;
}

export const EVENT_LIMITS = {
  /** Items in one batch. */
  batchItems: 1_000,
  /** Bytes in the body of one batch. */
  batchBytes: 16 * 1024 * 1024,
  /** Deliveries that one batch makes which goes in whole or not at all: nothing else is stored meanwhile. */
  atomicDeliveries: 20_000,
  /** The most that `limits.payloadBytes` can be set to. */
  payloadMaxBytes: 16 * 1024 * 1024,
  listDefault: 50,
  listMax: 500,
} as const;

/** What one list with `where` may take. */
export const SEARCH_LIMITS = {
  whereLength: 4_096,
  /** Events looked at, and for how long. */
  events: 100_000,
  searchMs: 2_000,
  /** Bytes of the payloads that are read at once, and of those found, after which a list ends as well. */
  bytes: 16 * 1024 * 1024,
} as const;

export const NEW_EVENT = inputSchema(
  "NewEvent",
  {
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
      description:
        "The same key with the same action and payload answers the first event again. It belongs to the application of the action: another application's key is another one.",
      examples: ["order-4711-created"],
    },
  },
  ["action", "payload"],
);

export const BATCH = inputSchema(
  "Batch",
  { events: { type: "array", items: NEW_EVENT, minItems: 1, maxItems: EVENT_LIMITS.batchItems } },
  ["events"],
);

export const BATCH_QUERY = inputSchema("BatchQuery", {
  atomic: { type: "boolean", default: false, description: "All or nothing." },
  minimal: {
    type: "boolean",
    default: false,
    description: "Leaves the events out of the answer: `data` is empty.",
  },
});
export type BatchOptions = ValueOf<typeof BATCH_QUERY>;

export const EVENT_QUERY = inputSchema("EventQuery", {
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
  limit: pageLimit(EVENT_LIMITS, "Events on a page."),
  after: {
    ...rowid,
    minimum: 0,
    description: "Walks on behind this rowid in the order asked for; replaces page.",
  },
  where: {
    type: "string",
    minLength: 1,
    maxLength: SEARCH_LIMITS.whereLength,
    pattern: NO_NUL,
    description: `A JSON Schema Draft 7 document, held to the limits of an action's schema: only events whose payloads conform to it. Not together with page. A list ends early once ${SEARCH_LIMITS.events.toLocaleString("en")} events were looked at or ${SEARCH_LIMITS.searchMs / 1_000} s have passed; \`meta.next\` is the \`after\` with which it goes on.`,
    examples: ['{"properties":{"country":{"const":"FR"}},"required":["country"]}'],
  },
  idempotency_key: {
    type: "string",
    minLength: 1,
    maxLength: 255,
    pattern: NO_NUL,
    description: "Only what was published under this idempotency key: one event of each application.",
    examples: ["order-4711-created"],
  },
  deliveries: {
    type: "boolean",
    default: false,
    description:
      "Each event with the number of its deliveries in each state, of those that the token may read.",
  },
  payloads: {
    type: "boolean",
    default: true,
    description:
      "false: events without their payloads, which are `null`. `meta.damaged` is then absent, as none was read.",
  },
});
export type EventQuery = ValueOf<typeof EVENT_QUERY>;
