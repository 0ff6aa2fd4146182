import { OPERATIONS } from "../../api-operations.ts";
import { ATTEMPT_QUERY, DELIVERY_QUERY } from "../../domain/delivery.ts";
import { NEW_EVENT } from "../../domain/event.ts";
import {
  NEW_SUBSCRIPTION,
  SECRET_ROTATION,
  SUBSCRIPTION_QUERY,
  SUBSCRIPTION_UPDATE,
} from "../../domain/subscription.ts";
import { eventBodyOf } from "./events.ts";
import { META } from "../../model/meta.ts";
import { BODY_MAX_BYTES, many, one, operation, type Route, routeAt } from "./route.ts";
import { EvregError } from "../../domain/error.ts";
import { NEW_CLAIM, type NewClaim, PULL_RESULTS } from "../../domain/pull.ts";
import { jsonReply } from "../response.ts";
import { NEW_REPLAY, type NewReplay, REPLAY_QUERY } from "../../domain/replay.ts";

/** What the results of a hundred deliveries may come to, each with a long answer. */
const RESULTS_MAX_BYTES = 4 * 1024 * 1024;

const SEND_PAST_EVENTS = "Send many past events to a subscription, in the background";

/** Subscriptions with their deliveries and replays. */
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
      one("SubscriptionWithSecret", META.warnings),
    ],
    failures: [404, 409],
  }),
  operation("subscriptions.get", "getSubscription", "Get one subscription", {
    answer: ["The subscription; `meta` if its mode is `pull`.", one("Subscription", META.consumers)],
  }),
  operation("subscriptions.update", "updateSubscription", "Change, pause or reactivate a subscription", {
    description: "Pausing (`active: false`) holds its unfinished deliveries; reactivating resumes them.",
    body: SUBSCRIPTION_UPDATE,
    answer: ["The subscription; `meta` if a filter was given.", one("Subscription", META.warnings)],
    failures: [409],
  }),
  operation("subscriptions.rotateSecret", "rotateSubscriptionSecret", "Give a subscription a new secret", {
    description:
      "All subscriptions of its application and name get the same one. The previous secret stays valid for `overlap_ms`. Until then `webhook-signature` has a signature with each, and `X-Evreg-Signature` and `Authorization` use the previous one; afterwards all use the new one. During an overlap another rotation is refused (409), unless its `overlap_ms` is 0, which ends both earlier secrets at once.",
    body: SECRET_ROTATION,
    answer: ["The subscription with its new secret.", one("SubscriptionWithSecret", META.rotated)],
    failures: [409],
  }),
  operation("subscriptions.test", "testSubscription", "Send a handler one signed request as a test", {
    description:
      "The body is that of `POST /v1/events`, with the subscription's action and no `idempotency_key`. The request is like that of a delivery, with `X-Evreg-Test: true`, an `event_id` of `0` and a new `webhook-id`. It is sent once, at once, also while the subscription is paused, and is stored nowhere. A handler that fails is answered with 200: `outcome` tells. Four at a time are sent, two of one token when it is alone; more get 429.",
    body: NEW_EVENT,
    readPayload: eventBodyOf,
    answer: ["The request and its answer.", one("HandlerTest")],
  }),
  routeAt(
    OPERATIONS["subscriptions.claim"].target,
    "claimDeliveries",
    "Take deliveries of a pull subscription",
    {
      description:
        "Answers those that are due, or waits up to `wait_ms` for the first; then the list is empty. They are this consumer's until their leases end. Those who wait for deliveries of the same subscription are served in turn.",
      scope: "listen",
      body: NEW_CLAIM,
      answers: { 200: { description: "The deliveries.", schema: many("PulledDelivery") } },
      failures: [429],
      async handle(evreg, request, { responses }) {
        const id = request.id();
        const input = (await request.json(BODY_MAX_BYTES)) as NewClaim;
        const { data } = await request.untilDisconnect((signal) =>
          evreg.subscriptions.claim(id, input, signal),
        );
        const reply = responses.tryReserve(request, jsonReply(200, { data }));
        if (reply !== undefined) return reply;
        // There is no memory for it now, and these cannot be read again.
        const results = data.map(({ lease }) => ({ lease, outcome: "released" }) as const);
        await evreg.subscriptions.finish(id, { results });
        throw new EvregError(
          "unavailable",
          "Too many large answers are on their way at once. Nothing was taken; ask again in a moment, or for fewer (max).",
        );
      },
    },
  ),
  operation("subscriptions.finish", "finishDeliveries", "Say what became of deliveries that were taken", {
    description:
      "Each result is fenced by its lease, and stored once. A failed one is retried, and counts, as a failed attempt to reach a handler does.",
    scope: "listen",
    body: PULL_RESULTS,
    maxBodyBytes: RESULTS_MAX_BYTES,
    answer: ["An outcome for each, in order.", many("FinishedPull")],
  }),
  operation("subscriptions.attempts", "listSubscriptionAttempts", "List last attempts, newest first", {
    description:
      "By their start, of those that have ended. Of a subscription with a long backlog some may be left out.",
    query: ATTEMPT_QUERY,
    answer: ["The attempts, each with its delivery and event.", many("SubscriptionAttempt")],
  }),
  operation("subscriptions.delete", "deleteSubscription", "Delete a subscription, cancel its deliveries", {
    description: "An attempt under way ends as usual; if it fails, its delivery is cancelled as well.",
    answer: ["The deleted subscription.", one("Subscription", META.cancelled)],
  }),
  operation("deliveries.list", "listDeliveries", "List deliveries, newest first", {
    query: DELIVERY_QUERY,
    answer: ["The deliveries.", many("Delivery")],
  }),
  operation("deliveries.get", "getDelivery", "Get one delivery with its attempts", {
    answer: ["The delivery.", one("DeliveryWithAttempts")],
  }),
  operation("deliveries.retry", "retryDelivery", "Send a delivery again now, with all its retries", {
    description:
      "It ends a wait that its handler asked for (`slowed_until`). The subscription's filter is applied again, also to a delivery that it excluded.",
    answer: ["The delivery, due now.", one("Delivery")],
    failures: [409],
  }),
  operation("deliveries.skip", "skipDelivery", "Give up a failing delivery, so that the next ones are sent", {
    description:
      "For the delivery that blocks an ordered subscription, and for any other that waits for a retry. It ends as `failed`.",
    answer: ["The delivery, failed.", one("Delivery")],
    failures: [409],
  }),
  routeAt(OPERATIONS["replays.start"].target, "replaySubscription", SEND_PAST_EVENTS, {
    tag: "replays",
    description:
      "Only events of its present action. Live deliveries go first: a replay is as fast as the handler, and waits while the subscription is paused. Each subscription has one replay at a time.",
    body: NEW_REPLAY,
    answers: {
      200: { description: "With `dry_run`: what would be sent.", schema: one("ReplayCount") },
      201: { description: "The replay, which has started.", schema: one("Replay") },
    },
    failures: [409],
    async handle(evreg, request) {
      const id = request.id();
      const input = (await request.json(BODY_MAX_BYTES)) as (NewReplay & { dry_run?: unknown }) | null;
      // Any other value is refused either way.
      if (input?.dry_run === true) return jsonReply(200, await evreg.replays.count(id, input));
      return jsonReply(201, await evreg.replays.start(id, input as NewReplay));
    },
  }),
  operation("replays.list", "listReplays", "List replays, newest first", {
    query: REPLAY_QUERY,
    answer: ["The replays.", many("Replay")],
  }),
  operation("replays.get", "getReplay", "Get one replay and its progress", {
    answer: ["The replay.", one("Replay")],
  }),
  operation("replays.cancel", "cancelReplay", "Cancel a replay; what is due already is sent", {
    answer: ["The cancelled replay.", one("Replay")],
    failures: [409],
  }),
];
