import {
  NEW_SUBSCRIPTION,
  SECRET_ROTATION,
  SUBSCRIPTION_QUERY,
  SUBSCRIPTION_UPDATE,
} from "../domain/requests/subscriptions.ts";
import type {
  NewSubscription,
  SecretRotation,
  SubscriptionQuery,
  SubscriptionUpdate,
} from "../domain/subscription.ts";
import { parseJson } from "../json/parse.ts";
import { PAGE_BYTES, REGISTRY_BYTES } from "./answer-memory.ts";
import { WARNINGS } from "./records/actions.ts";
import { many, one } from "./records/members.ts";
import { listReply } from "./list-reply.ts";
import { CANCELLED } from "./records/subscriptions.ts";
import { reply } from "./reply.ts";
import { BODY_MAX_BYTES } from "./route.ts";
import type { Route } from "./route.ts";

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
