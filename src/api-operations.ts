// The operations of the port that are one request each. The server makes routes of this table, and the client its calls.

/** What an operation takes of its request, in the order of its method's parameters; `options`: a body that may be left out. */
export type RequestPart = "name" | "id" | "query" | "body" | "options" | "signal";

/** Some of what a record has, each with its `typeof`, or several: enough to tell it from what another program answers. */
export type RecordMembers = Readonly<Record<string, string>>;

export interface PortOperation {
  /** Such as `GET /v1/actions/:name`. */
  readonly target: string;
  readonly takes: readonly RequestPart[];
  /** Of the record that it answers; `undefined` for a list. */
  readonly record: RecordMembers | undefined;
  /** Statuses that are answers although they tell of a failure. */
  readonly also?: readonly number[];
}

function list(target: string, ...takes: readonly RequestPart[]): PortOperation {
  return { target, takes, record: undefined };
}

function one(record: RecordMembers, target: string, ...takes: readonly RequestPart[]): PortOperation {
  return { target, takes, record };
}

const ACTION = { rowid: "number", action: "string" };
const SUBSCRIPTION = { rowid: "number", subscription: "string" };
const WITH_STATUS = { rowid: "number", status: "string" };
const TOKEN = { rowid: "number", scopes: "object" };

export const OPERATIONS = {
  actions: {
    list: list("GET /v1/actions", "query"),
    create: one(ACTION, "POST /v1/actions", "body", "signal"),
    get: one(ACTION, "GET /v1/actions/:name", "name"),
    update: one(ACTION, "PUT /v1/actions/:name", "name", "body", "query", "signal"),
    revisions: list("GET /v1/actions/:name/revisions", "name", "query"),
    revision: one(
      { revision: "number", action: "string" },
      "GET /v1/actions/:name/revisions/:id",
      "name",
      "id",
    ),
    check: one({ compatible: "boolean" }, "POST /v1/actions/:name/check", "name", "body", "signal"),
    validate: one({ valid: "boolean" }, "POST /v1/actions/:name/validate", "name", "body", "signal"),
    sample: one({ seed: "number", payload: "object" }, "GET /v1/actions/:name/sample", "name", "query"),
    types: one({ action: "string", source: "string" }, "GET /v1/actions/:name/types", "name"),
  },
  events: {
    deliveries: list("GET /v1/events/:id/deliveries", "id"),
  },
  subscriptions: {
    list: list("GET /v1/subscriptions", "query"),
    create: one(SUBSCRIPTION, "POST /v1/subscriptions", "body", "signal"),
    get: one(SUBSCRIPTION, "GET /v1/subscriptions/:id", "id"),
    update: one(SUBSCRIPTION, "PUT /v1/subscriptions/:id", "id", "body", "signal"),
    rotateSecret: one(SUBSCRIPTION, "POST /v1/subscriptions/:id/rotate-secret", "id", "options"),
    test: one({ outcome: "string" }, "POST /v1/subscriptions/:id/test", "id", "body", "signal"),
    claim: list("POST /v1/subscriptions/:id/claims", "id", "options", "signal"),
    finish: list("POST /v1/subscriptions/:id/finishes", "id", "body"),
    attempts: list("GET /v1/subscriptions/:id/attempts", "id", "query"),
    delete: one(SUBSCRIPTION, "DELETE /v1/subscriptions/:id", "id"),
  },
  deliveries: {
    list: list("GET /v1/deliveries", "query"),
    get: one(WITH_STATUS, "GET /v1/deliveries/:id", "id"),
    retry: one(WITH_STATUS, "POST /v1/deliveries/:id/retry", "id"),
    skip: one(WITH_STATUS, "POST /v1/deliveries/:id/skip", "id"),
  },
  replays: {
    // With `dry_run` in its body.
    count: one(
      { subscription_id: "number", selection: "string" },
      "POST /v1/subscriptions/:id/replay",
      "id",
      "body",
    ),
    start: one(WITH_STATUS, "POST /v1/subscriptions/:id/replay", "id", "body"),
    list: list("GET /v1/replays", "query"),
    get: one(WITH_STATUS, "GET /v1/replays/:id", "id"),
    cancel: one(WITH_STATUS, "POST /v1/replays/:id/cancel", "id"),
  },
  tokens: {
    list: list("GET /v1/tokens"),
    create: one(TOKEN, "POST /v1/tokens", "body"),
    revoke: one(TOKEN, "DELETE /v1/tokens/:id", "id"),
    createCode: one({ code: "string|object" }, "POST /v1/tokens/codes"),
    exchangeCode: one(TOKEN, "POST /v1/tokens/exchange", "body"),
  },
  audit: {
    list: list("GET /v1/audit", "query"),
  },
  // 503 says what is wrong.
  health: { ...one({ instance: "string" }, "GET /health"), also: [503] },
  stats: one({ range: "string", step_ms: "number" }, "GET /v1/stats", "query"),
  whoami: one({ name: "string", scopes: "object" }, "GET /v1/whoami"),
  attention: list("GET /v1/attention", "query"),
  nodes: list("GET /v1/nodes"),
  doctor: list("GET /v1/doctor"),
};
