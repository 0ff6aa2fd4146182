import { type Delivery, DELIVERY_LIMITS, type DeliveryWithAttempts } from "../domain/delivery.ts";
import { checkQuery } from "../domain/query.ts";
import { DELIVERY_QUERY } from "../domain/requests/deliveries.ts";
import type { DeliveriesPort } from "../evreg.ts";
import type { DeliverySelection } from "../store/deliveries.ts";
import type { Access } from "./access.ts";
import { checkId, given, notFound, timeRange } from "./answers.ts";
import type { ServiceContext } from "./context.ts";

/** A delivery belongs to the application of its subscription. */
export function deliveriesPort(
  { store, clock, wake, counts }: ServiceContext,
  access: Access,
): DeliveriesPort {
  async function writable(id: number): Promise<Delivery> {
    access.requireSome("write");
    const delivery = await store.findDelivery(checkId(id));
    if (delivery === undefined) throw notFound("delivery", id);
    access.require("write", delivery.application);
    return delivery;
  }

  return {
    async list(query = {}) {
      const applications = access.readable();
      const {
        event,
        subscription,
        action,
        status,
        limit = DELIVERY_LIMITS.listDefault,
        after,
      } = checkQuery(DELIVERY_QUERY, query);
      const filters = { event, subscription, action, status, applications };
      const selection = { ...filters, ...timeRange(query), limit, after };
      return { data: await store.listDeliveries(given<DeliverySelection>(selection)) };
    },
    async get(id) {
      access.requireSome("read");
      const delivery = await store.findDelivery(checkId(id));
      if (delivery === undefined || !access.allows("read", delivery.application)) {
        throw notFound("delivery", id);
      }
      return { data: access.allows("admin") ? delivery : withoutRefusals(delivery) };
    },
    async retry(id) {
      const delivery = await writable(id);
      const retried = await store.retryDelivery(id, clock.now());
      if (retried === undefined) throw notFound("delivery", id);
      if (delivery.finished_at !== null) counts.retriedDeliveries += 1;
      wake();
      return { data: retried };
    },
    async skip(id) {
      await writable(id);
      const skipped = await store.skipDelivery(id, clock.now());
      if (skipped === undefined) throw notFound("delivery", id);
      wake();
      return { data: skipped };
    },
  };
}

/** Whoever may name handlers could else ask what any name stands for inside the operator's network. */
function withoutRefusals(delivery: DeliveryWithAttempts): DeliveryWithAttempts {
  return { ...delivery, attempts: delivery.attempts.map((attempt) => ({ ...attempt, refusal: null })) };
}
