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

/** By the name of the method in the port. */
export const OPERATIONS = {
  "actions.list": to("GET /v1/actions", "query"),
  "actions.create": to("POST /v1/actions", "body", "signal"),
  "actions.get": to("GET /v1/actions/:name", "name"),
  "actions.update": to("PUT /v1/actions/:name", "name", "body", "query", "signal"),
  "actions.revisions": to("GET /v1/actions/:name/revisions", "name", "query"),
  "actions.revision": to("GET /v1/actions/:name/revisions/:id", "name", "id"),
  "actions.check": to("POST /v1/actions/:name/check", "name", "body", "signal"),
  "actions.validate": to("POST /v1/actions/:name/validate", "name", "body", "signal"),
  "actions.sample": to("GET /v1/actions/:name/sample", "name"),
  "events.deliveries": to("GET /v1/events/:id/deliveries", "id"),
  "subscriptions.list": to("GET /v1/subscriptions", "query"),
  "subscriptions.create": to("POST /v1/subscriptions", "body", "signal"),
  "subscriptions.get": to("GET /v1/subscriptions/:id", "id"),
  "subscriptions.update": to("PUT /v1/subscriptions/:id", "id", "body", "signal"),
  "subscriptions.rotateSecret": to("POST /v1/subscriptions/:id/rotate-secret", "id", "body"),
  "subscriptions.test": to("POST /v1/subscriptions/:id/test", "id", "body"),
  "subscriptions.claim": to("POST /v1/subscriptions/:id/claims", "id", "body", "signal"),
  "subscriptions.finish": to("POST /v1/subscriptions/:id/finishes", "id", "body"),
  "subscriptions.attempts": to("GET /v1/subscriptions/:id/attempts", "id", "query"),
  "subscriptions.delete": to("DELETE /v1/subscriptions/:id", "id"),
  "deliveries.list": to("GET /v1/deliveries", "query"),
  "deliveries.get": to("GET /v1/deliveries/:id", "id"),
  "deliveries.retry": to("POST /v1/deliveries/:id/retry", "id"),
  "deliveries.skip": to("POST /v1/deliveries/:id/skip", "id"),
  // With `dry_run` in its body.
  "replays.count": to("POST /v1/subscriptions/:id/replay", "id", "body"),
  "replays.start": to("POST /v1/subscriptions/:id/replay", "id", "body"),
  "replays.list": to("GET /v1/replays", "query"),
  "replays.get": to("GET /v1/replays/:id", "id"),
  "replays.cancel": to("POST /v1/replays/:id/cancel", "id"),
  "tokens.list": to("GET /v1/tokens"),
  "tokens.create": to("POST /v1/tokens", "body"),
  "tokens.revoke": to("DELETE /v1/tokens/:id", "id"),
  "audit.list": to("GET /v1/audit", "query"),
  // 503 says what is wrong.
  health: { ...to("GET /health"), also: [503] },
  stats: to("GET /v1/stats", "query"),
  whoami: to("GET /v1/whoami"),
  attention: to("GET /v1/attention", "query"),
  nodes: to("GET /v1/nodes"),
  doctor: to("GET /v1/doctor"),
} as const satisfies Readonly<Record<string, PortOperation>>;
