import { ON_EXHAUSTED } from "../../domain/subscription-settings.ts";
import {
  BEARERS,
  NEW_SUBSCRIPTION,
  type NewSubscription,
  SECRET_ROTATION,
  type SecretRotation,
  SUBSCRIPTION_QUERY,
  SUBSCRIPTION_UPDATE,
  type SubscriptionQuery,
  type SubscriptionUpdate,
} from "../../domain/subscription.ts";
import { parseJson } from "../../json/raw-json.ts";
import { PAGE_BYTES, REGISTRY_BYTES } from "../response-budget.ts";
import { listReply, reply } from "../response.ts";
import { WARNINGS } from "./actions.ts";
import {
  BODY_MAX_BYTES,
  count,
  type JsonSchema,
  many,
  nullableTimestamp,
  one,
  record,
  type Route,
  rowid,
  text,
  timestamp,
} from "./route.ts";

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

/** Subscriptions as they are answered. */
export const SUBSCRIPTION_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Subscription: record(subscription),
  SubscriptionWithSecret: record({
    ...subscription,
    secret: { ...text, description: "Only ever in this answer: deliveries are signed with it." },
  }),
};

const CANCELLED: JsonSchema = record({
  cancelled: {
    ...count,
    description:
      "How many deliveries waited and were cancelled. One under way ends as usual, and is cancelled as well if it fails.",
  },
});

const tag = "subscriptions";

export const SUBSCRIPTION_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/subscriptions",
    operationId: "listSubscriptions",
    tag,
    summary: "Subscriptions",
    access: "token",
    scope: "read",
    query: SUBSCRIPTION_QUERY,
    answers: { 200: { description: "The subscriptions.", schema: many("Subscription") } },
    failures: [],
    async handle(evreg, incoming, { memory }) {
      const query = incoming.query(SUBSCRIPTION_QUERY) as SubscriptionQuery;
      return memory.answer(incoming, REGISTRY_BYTES, async () => {
        const { data } = await evreg.subscriptions.list(query);
        return listReply(200, data);
      });
    },
  },
  {
    method: "POST",
    path: "/v1/subscriptions",
    operationId: "createSubscription",
    tag,
    summary: "Send an action's events to a handler",
    access: "token",
    scope: "write",
    body: NEW_SUBSCRIPTION,
    answers: {
      201: {
        description: "The subscription with its secret; `meta` where it has a filter.",
        schema: one("SubscriptionWithSecret", WARNINGS),
      },
    },
    failures: [404, 409],
    async handle(evreg, incoming) {
      const input = parseJson(await incoming.body(BODY_MAX_BYTES)) as NewSubscription;
      return reply(201, await incoming.whileThere((gone) => evreg.subscriptions.create(input, gone)));
    },
  },
  {
    method: "GET",
    path: "/v1/subscriptions/:id",
    operationId: "getSubscription",
    tag,
    summary: "One subscription",
    access: "token",
    scope: "read",
    answers: { 200: { description: "The subscription.", schema: one("Subscription") } },
    failures: [404],
    async handle(evreg, incoming, { memory }) {
      const id = incoming.id();
      return memory.answer(incoming, PAGE_BYTES, async () => reply(200, await evreg.subscriptions.get(id)));
    },
  },
  {
    method: "PUT",
    path: "/v1/subscriptions/:id",
    operationId: "updateSubscription",
    tag,
    summary: "Change a subscription, pause it or reactivate it",
    description: "Pausing (`active: false`) holds its unfinished deliveries; reactivating resumes them.",
    access: "token",
    scope: "write",
    body: SUBSCRIPTION_UPDATE,
    answers: {
      200: {
        description: "The subscription; `meta` where a filter was given.",
        schema: one("Subscription", WARNINGS),
      },
    },
    failures: [404, 409],
    async handle(evreg, incoming) {
      const id = incoming.id();
      const input = parseJson(await incoming.body(BODY_MAX_BYTES)) as SubscriptionUpdate;
      return reply(200, await incoming.whileThere((gone) => evreg.subscriptions.update(id, input, gone)));
    },
  },
  {
    method: "POST",
    path: "/v1/subscriptions/:id/rotate-secret",
    operationId: "rotateSubscriptionSecret",
    tag,
    summary: "Give a subscription a new secret",
    description:
      "The secret before stays valid for `overlap_ms`. Until then `webhook-signature` holds a signature by each, and `X-Evreg-Signature` and `Authorization` go by the one before; afterwards all go by the new one. While an overlap lasts, another rotation is refused (409) unless its `overlap_ms` is 0, which ends both secrets before at once.",
    access: "token",
    scope: "write",
    body: SECRET_ROTATION,
    answers: {
      200: { description: "The subscription with its new secret.", schema: one("SubscriptionWithSecret") },
    },
    failures: [404, 409],
    async handle(evreg, incoming) {
      const id = incoming.id();
      const input = parseJson(await incoming.body(BODY_MAX_BYTES)) as SecretRotation;
      return reply(200, await evreg.subscriptions.rotateSecret(id, input));
    },
  },
  {
    method: "DELETE",
    path: "/v1/subscriptions/:id",
    operationId: "deleteSubscription",
    tag,
    summary: "Delete a subscription; its unfinished deliveries are cancelled",
    access: "token",
    scope: "write",
    answers: {
      200: { description: "The deleted subscription.", schema: one("Subscription", CANCELLED) },
    },
    failures: [404],
    async handle(evreg, incoming) {
      return reply(200, await evreg.subscriptions.delete(incoming.id()));
    },
  },
];
