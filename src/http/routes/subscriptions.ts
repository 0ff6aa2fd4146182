import { ATTEMPT_QUERY } from "../../domain/delivery.ts";
import { NEW_EVENT } from "../../domain/event.ts";
import {
  NEW_SUBSCRIPTION,
  SECRET_ROTATION,
  SUBSCRIPTION_QUERY,
  SUBSCRIPTION_UPDATE,
} from "../../domain/subscription.ts";
import { WARNINGS } from "./actions.ts";
import { eventBodyOf } from "./events.ts";
import { PULL_ROUTES } from "./pull.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { about, field, record } from "../../model/field.ts";
import { many, one, operation, type Route } from "./route.ts";

const ROTATED: JsonSchema = record({
  rotated: about(
    field.count,
    "Number of subscriptions with the new secret: all of this application and name.",
  ),
});

const CONSUMERS: JsonSchema = record({
  consumers: about(field.count, "Number of consumers that wait for its deliveries now."),
});

const CANCELLED: JsonSchema = record({
  cancelled: about(
    field.count,
    "Number of waiting deliveries that were cancelled. An attempt under way ends as usual; if it fails, its delivery is cancelled as well.",
  ),
});

export const SUBSCRIPTION_ROUTES: readonly Route[] = [
  operation("subscriptions.list", "listSubscriptions", "List subscriptions", {
    query: SUBSCRIPTION_QUERY,
    answer: ["The subscriptions.", many("Subscription")],
    run: ({ parts }, { query }) => parts.subscriptions(query),
  }),
  operation("subscriptions.create", "createSubscription", "Subscribe a handler, or consumers, to an action", {
    body: NEW_SUBSCRIPTION,
    status: 201,
    answer: [
      "The subscription with its secret; `meta` if it has a filter.",
      one("SubscriptionWithSecret", WARNINGS),
    ],
    failures: [404, 409],
  }),
  operation("subscriptions.get", "getSubscription", "Get one subscription", {
    answer: ["The subscription; `meta` if its mode is `pull`.", one("Subscription", CONSUMERS)],
  }),
  operation("subscriptions.update", "updateSubscription", "Change, pause or reactivate a subscription", {
    description: "Pausing (`active: false`) holds its unfinished deliveries; reactivating resumes them.",
    body: SUBSCRIPTION_UPDATE,
    answer: ["The subscription; `meta` if a filter was given.", one("Subscription", WARNINGS)],
    failures: [409],
  }),
  operation("subscriptions.rotateSecret", "rotateSubscriptionSecret", "Give a subscription a new secret", {
    description:
      "All subscriptions of its application and name get the same one. The previous secret stays valid for `overlap_ms`. Until then `webhook-signature` has a signature with each, and `X-Evreg-Signature` and `Authorization` use the previous one; afterwards all use the new one. During an overlap another rotation is refused (409), unless its `overlap_ms` is 0, which ends both earlier secrets at once.",
    body: SECRET_ROTATION,
    answer: ["The subscription with its new secret.", one("SubscriptionWithSecret", ROTATED)],
    failures: [409],
  }),
  operation("subscriptions.test", "testSubscription", "Send a handler one signed request as a test", {
    description:
      "The body is that of `POST /v1/events`, with the subscription's action and no `idempotency_key`. The request is like that of a delivery, with `X-Evreg-Test: true`, an `event_id` of `0` and a new `webhook-id`. It is sent once, at once, also while the subscription is paused, and is stored nowhere. A handler that fails is answered with 200: `outcome` tells. Four at a time are sent, two of one token when it is alone; more get 429.",
    body: NEW_EVENT,
    readPayload: eventBodyOf,
    answer: ["The request and its answer.", one("HandlerTest")],
  }),
  ...PULL_ROUTES,
  operation("subscriptions.attempts", "listSubscriptionAttempts", "List last attempts, newest first", {
    description:
      "By their start, of those that have ended. Of a subscription with a long backlog some may be left out.",
    query: ATTEMPT_QUERY,
    answer: ["The attempts, each with its delivery and event.", many("SubscriptionAttempt")],
  }),
  operation("subscriptions.delete", "deleteSubscription", "Delete a subscription, cancel its deliveries", {
    answer: ["The deleted subscription.", one("Subscription", CANCELLED)],
  }),
];
