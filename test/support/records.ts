import type { Delivery, DeliveryQuery } from "../../src/domain/delivery.ts";
import type { Event } from "../../src/domain/event.ts";
import type { JsonSchema } from "../../src/domain/request.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../src/domain/subscription.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { until } from "./until.ts";

/** Makes an action of the application shop, which takes any object unless another schema is given. */
export const register = (evreg: Evreg, action: string, schemata: JsonSchema = { type: "object" }) =>
  evreg.actions.create({ action, application: "shop", schemata });

/** Makes a subscription to `order.created`. Nobody listens at its handler, unless another one is given. */
export async function subscribe(
  evreg: Evreg,
  subscription: string,
  more: Partial<NewSubscription> = {},
): Promise<SubscriptionWithSecret> {
  const names = { application: "billing", subscription, action: "order.created" };
  const handler = more.mode === "pull" ? {} : { handler: "http://127.0.0.1:9/hook" };
  return (await evreg.subscriptions.create({ ...names, ...handler, ...more })).data;
}

export async function publish(evreg: Evreg, action = "order.created", payload = "{}"): Promise<Event> {
  return (await evreg.events.publish({ action, payload: RawJson.fromText(payload) })).data;
}

/** Waits until the query finds so many deliveries, and answers them. */
export async function deliveriesOf(
  evreg: Evreg,
  query: DeliveryQuery,
  count = 1,
): Promise<readonly Delivery[]> {
  let found: readonly Delivery[] = [];
  await until(`${count} deliveries of ${JSON.stringify(query)}`, async () => {
    found = (await evreg.deliveries.list(query)).data;
    return found.length === count;
  });
  return found;
}
