// The operations of the port that are one request each. The server makes routes of this table, and the client its calls.

/** What an operation takes of its request, in the order of its method's parameters. */
export type RequestPart = "name" | "id" | "query" | "body" | "signal";

export interface PortOperation {
  /** Such as `GET /v1/actions/:name`. */
  readonly target: string;
  readonly takes: readonly RequestPart[];
  /** Statuses that are answers although they tell of a failure. */
  readonly also?: readonly number[];
}

function to(target: string, ...takes: readonly RequestPart[]): PortOperation {
  return { target, takes };
}

export const OPERATIONS = {
  actions: {
    list: to("GET /v1/actions", "query"),
    create: to("POST /v1/actions", "body", "signal"),
    get: to("GET /v1/actions/:name", "name"),
    update: to("PUT /v1/actions/:name", "name", "body", "query", "signal"),
    revisions: to("GET /v1/actions/:name/revisions", "name", "query"),
    revision: to("GET /v1/actions/:name/revisions/:id", "name", "id"),
    check: to("POST /v1/actions/:name/check", "name", "body", "signal"),
    validate: to("POST /v1/actions/:name/validate", "name", "body", "signal"),
    sample: to("GET /v1/actions/:name/sample", "name"),
  },
  events: {
    deliveries: to("GET /v1/events/:id/deliveries", "id"),
  },
  subscriptions: {
    list: to("GET /v1/subscriptions", "query"),
    create: to("POST /v1/subscriptions", "body", "signal"),
    get: to("GET /v1/subscriptions/:id", "id"),
    update: to("PUT /v1/subscriptions/:id", "id", "body", "signal"),
    rotateSecret: to("POST /v1/subscriptions/:id/rotate-secret", "id", "body"),
    test: to("POST /v1/subscriptions/:id/test", "id", "body", "signal"),
    claim: to("POST /v1/subscriptions/:id/claims", "id", "body", "signal"),
    finish: to("POST /v1/subscriptions/:id/finishes", "id", "body"),
    attempts: to("GET /v1/subscriptions/:id/attempts", "id", "query"),
    delete: to("DELETE /v1/subscriptions/:id", "id"),
  },
  deliveries: {
    list: to("GET /v1/deliveries", "query"),
    get: to("GET /v1/deliveries/:id", "id"),
    retry: to("POST /v1/deliveries/:id/retry", "id"),
    skip: to("POST /v1/deliveries/:id/skip", "id"),
  },
  replays: {
    // With `dry_run` in its body.
    count: to("POST /v1/subscriptions/:id/replay", "id", "body"),
    start: to("POST /v1/subscriptions/:id/replay", "id", "body"),
    list: to("GET /v1/replays", "query"),
    get: to("GET /v1/replays/:id", "id"),
    cancel: to("POST /v1/replays/:id/cancel", "id"),
  },
  tokens: {
    list: to("GET /v1/tokens"),
    create: to("POST /v1/tokens", "body"),
    revoke: to("DELETE /v1/tokens/:id", "id"),
  },
  audit: {
    list: to("GET /v1/audit", "query"),
  },
  // 503 says what is wrong.
  health: { ...to("GET /health"), also: [503] },
  stats: to("GET /v1/stats", "query"),
  whoami: to("GET /v1/whoami"),
  attention: to("GET /v1/attention", "query"),
  nodes: to("GET /v1/nodes"),
  doctor: to("GET /v1/doctor"),
};
