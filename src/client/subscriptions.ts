import type { WarningMeta } from "../domain/action.ts";
import type { CancelledMeta, Subscription, SubscriptionWithSecret } from "../domain/subscription.ts";
import type { Answer, SubscriptionsPort } from "../evreg.ts";
import { jsonAnswer, listAnswer } from "./answers.ts";
import { requestBody } from "./channel.ts";
import type { Channel } from "./channel.ts";

const SUBSCRIPTIONS_PATH = "/v1/subscriptions";

export function subscriptionsOver(channel: Channel): SubscriptionsPort {
  return {
    async list(query = {}) {
      const received = await channel.send("GET", SUBSCRIPTIONS_PATH, { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly Subscription[]>;
    },
    async create(input, signal) {
      const received = await channel.send("POST", SUBSCRIPTIONS_PATH, { body: requestBody(input), signal });
      return jsonAnswer(received, "subscription") as Answer<SubscriptionWithSecret, WarningMeta>;
    },
    async get(id) {
      return jsonAnswer(
        await channel.send("GET", `${SUBSCRIPTIONS_PATH}/${id}`),
        "subscription",
      ) as Answer<Subscription>;
    },
    async update(id, input, signal) {
      const received = await channel.send("PUT", `${SUBSCRIPTIONS_PATH}/${id}`, {
        body: requestBody(input),
        signal,
      });
      return jsonAnswer(received, "subscription") as Answer<Subscription, WarningMeta>;
    },
    async rotateSecret(id, input = {}) {
      const received = await channel.send("POST", `${SUBSCRIPTIONS_PATH}/${id}/rotate-secret`, {
        body: requestBody(input),
      });
      return jsonAnswer(received, "subscription") as Answer<SubscriptionWithSecret>;
    },
    async delete(id) {
      const received = await channel.send("DELETE", `${SUBSCRIPTIONS_PATH}/${id}`);
      return jsonAnswer(received, "subscription") as Answer<Subscription, CancelledMeta>;
    },
  };
}
