import { checkHandlerUrl } from "../domain/handler-url.ts";
import { checkActionName, checkLabel } from "../domain/names.ts";
import { checkQuery } from "../domain/query.ts";
import { NEW_SUBSCRIPTION, SUBSCRIPTION_QUERY, SUBSCRIPTION_UPDATE } from "../domain/requests.ts";
import { SUBSCRIPTION_LIMITS } from "../domain/subscription.ts";
import type { NewSubscription, Subscription, SubscriptionUpdate } from "../domain/subscription.ts";
import type { SubscriptionsPort } from "../evreg.ts";
import type { Random } from "../runtime/random.ts";
import type { Access } from "./access.ts";
import { checkId, given, notFound } from "./answers.ts";
import { readBody } from "./bodies.ts";
import type { ServiceContext } from "./context.ts";

export function subscriptionsPort(context: ServiceContext, access: Access): SubscriptionsPort {
  const { store, clock, random, delivery, wake, wakeReplays } = context;
  const checkHandler = (field: string, value: string): string => checkHandlerUrl(field, value, delivery);

  /**
   * Subscribing hands an action's events over, so it takes the right to read them, or to write where they belong: an
   * action outside both is as good as none.
   */
  async function checkSubscribable(name: string): Promise<void> {
    const action = await store.findAction(name);
    const open =
      action !== undefined &&
      (access.allows("read", action.application) || access.allows("write", action.application));
    if (!open) throw notFound("action", name, "action");
  }

  async function writable(id: number): Promise<Subscription> {
    access.requireSome("write");
    const subscription = await store.findSubscription(checkId(id));
    if (subscription === undefined) throw notFound("subscription", id);
    access.require("write", subscription.application);
    return subscription;
  }

  return {
    async list(query = {}) {
      const applications = access.readable();
      const { application, action, active } = checkQuery(SUBSCRIPTION_QUERY, query);
      return { data: await store.listSubscriptions(given({ application, action, active, applications })) };
    },
    async create(input) {
      access.requireSome("write");
      const body = readBody(NEW_SUBSCRIPTION, input, {
        application: checkLabel,
        subscription: checkLabel,
        action: checkActionName,
        handler: checkHandler,
      }) as NewSubscription;
      access.require("write", body.application);
      await checkSubscribable(body.action);
      const { application, subscription, action, handler } = body;
      const { max_retries: maxRetries = SUBSCRIPTION_LIMITS.retriesDefault, active = true } = body;
      const secret = mintSecret(random);
      const record = { application, subscription, action, handler, maxRetries, active, secret };
      return { data: { ...(await store.createSubscription(record, clock.now())), secret } };
    },
    async get(id) {
      access.requireSome("read");
      const subscription = await store.findSubscription(checkId(id));
      if (subscription === undefined || !access.allows("read", subscription.application)) {
        throw notFound("subscription", id);
      }
      return { data: subscription };
    },
    async update(id, input) {
      const before = await writable(id);
      const body = readBody(SUBSCRIPTION_UPDATE, input, {
        action: checkActionName,
        handler: checkHandler,
      }) as SubscriptionUpdate;
      // Nothing to change is a change like any other that was made already.
      if (Object.keys(body).length === 0) return { data: before };
      const { handler, max_retries: maxRetries, active, action } = body;
      if (action !== undefined && action !== before.action) await checkSubscribable(action);
      const patch = given<Parameters<typeof store.updateSubscription>[1]>({
        handler,
        maxRetries,
        active,
        action,
      });
      const after = await store.updateSubscription(id, patch, clock.now());
      if (after === undefined) throw notFound("subscription", id);
      if (after.active) {
        wake();
        wakeReplays();
      }
      return { data: after };
    },
    async delete(id) {
      await writable(id);
      const deleted = await store.deleteSubscription(id, clock.now());
      if (deleted === undefined) throw notFound("subscription", id);
      return { data: deleted };
    },
  };
}

/** In the form of Standard Webhooks, so that receivers can hand it to the libraries they have. */
function mintSecret(random: Random): string {
  return `whsec_${Buffer.from(random.bytes(32)).toString("base64")}`;
}
