import { ON_EXHAUSTED } from "../../domain/subscription-settings.ts";
import {
  BEARERS,
  NEW_SUBSCRIPTION,
  SECRET_ROTATION,
  SUBSCRIPTION_QUERY,
  SUBSCRIPTION_UPDATE,
} from "../../domain/subscription.ts";
import { REGISTRY_BYTES } from "../response-budget.ts";
import { WARNINGS } from "./actions.ts";
import { field, type JsonSchema, many, one, operation, record, type Route } from "./route.ts";

const subscription = {
  rowid: field.rowid,
  application: field.text,
  subscription: field.text,
  action: field.text,
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
    ...field.nullableTimestamp,
    description: "While its secret is being rotated: until when the one before is signed with as well.",
  },
  failing_since: {
    ...field.nullableTimestamp,
    description: "When the first attempt after the last success failed; `null` when the last one went well.",
  },
  slowed_until: {
    ...field.nullableTimestamp,
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
  headers: { type: ["object", "null"], additionalProperties: field.text },
  retry_schedule: { type: ["array", "null"], items: field.count },
  ordered: {
    type: "boolean",
    description: "One delivery at a time, in the order in which the events were published.",
  },
  on_exhausted: {
    enum: [...ON_EXHAUSTED, null],
    description:
      "Of an ordered one, when a delivery has used up its retries: `block` tries on and sends nothing past it, `skip` fails it and sends the next.",
  },
  timestamped: field.timestamp,
} as const;

/** Subscriptions as they are answered. */
export const SUBSCRIPTION_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Subscription: record(subscription),
  SubscriptionWithSecret: record({
    ...subscription,
    secret: { ...field.text, description: "Only ever in this answer: deliveries are signed with it." },
  }),
};

const CANCELLED: JsonSchema = record({
  cancelled: {
    ...field.count,
    description:
      "How many deliveries waited and were cancelled. One under way ends as usual, and is cancelled as well if it fails.",
  },
});

export const SUBSCRIPTION_ROUTES: readonly Route[] = [
  operation({
    path: "/v1/subscriptions",
    operationId: "listSubscriptions",
    summary: "Subscriptions",
    query: SUBSCRIPTION_QUERY,
    answer: ["The subscriptions.", many("Subscription")],
    maxBytes: REGISTRY_BYTES,
    run: (evreg, { query }) => evreg.subscriptions.list(query),
  }),
  operation({
    path: "/v1/subscriptions",
    operationId: "createSubscription",
    summary: "Send an action's events to a handler",
    body: NEW_SUBSCRIPTION,
    status: 201,
    answer: [
      "The subscription with its secret; `meta` where it has a filter.",
      one("SubscriptionWithSecret", WARNINGS),
    ],
    failures: [404, 409],
    run: (evreg, { body, signal }) => evreg.subscriptions.create(body, signal),
  }),
  operation({
    path: "/v1/subscriptions/:id",
    operationId: "getSubscription",
    summary: "One subscription",
    answer: ["The subscription.", one("Subscription")],
    failures: [404],
    run: (evreg, { id }) => evreg.subscriptions.get(id),
  }),
  operation({
    method: "PUT",
    path: "/v1/subscriptions/:id",
    operationId: "updateSubscription",
    summary: "Change a subscription, pause it or reactivate it",
    description: "Pausing (`active: false`) holds its unfinished deliveries; reactivating resumes them.",
    body: SUBSCRIPTION_UPDATE,
    answer: ["The subscription; `meta` where a filter was given.", one("Subscription", WARNINGS)],
    failures: [404, 409],
    run: (evreg, { id, body, signal }) => evreg.subscriptions.update(id, body, signal),
  }),
  operation({
    path: "/v1/subscriptions/:id/rotate-secret",
    operationId: "rotateSubscriptionSecret",
    summary: "Give a subscription a new secret",
    description:
      "The secret before stays valid for `overlap_ms`. Until then `webhook-signature` holds a signature by each, and `X-Evreg-Signature` and `Authorization` go by the one before; afterwards all go by the new one. While an overlap lasts, another rotation is refused (409) unless its `overlap_ms` is 0, which ends both secrets before at once.",
    body: SECRET_ROTATION,
    answer: ["The subscription with its new secret.", one("SubscriptionWithSecret")],
    failures: [404, 409],
    run: (evreg, { id, body }) => evreg.subscriptions.rotateSecret(id, body),
  }),
  operation({
    method: "DELETE",
    path: "/v1/subscriptions/:id",
    operationId: "deleteSubscription",
    summary: "Delete a subscription; its unfinished deliveries are cancelled",
    answer: ["The deleted subscription.", one("Subscription", CANCELLED)],
    failures: [404],
    run: (evreg, { id }) => evreg.subscriptions.delete(id),
  }),
];
