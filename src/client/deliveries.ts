import type { Delivery, DeliveryWithAttempts } from "../domain/delivery.ts";
import type { Answer, DeliveriesPort } from "../evreg.ts";
import { jsonAnswer, listAnswer } from "./answers.ts";
import type { Channel } from "./channel.ts";

const DELIVERIES_PATH = "/v1/deliveries";

export function deliveriesOver(channel: Channel): DeliveriesPort {
  return {
    async list(query = {}) {
      const received = await channel.send("GET", DELIVERIES_PATH, { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly Delivery[]>;
    },
    async get(id) {
      return jsonAnswer(
        await channel.send("GET", `${DELIVERIES_PATH}/${id}`),
        "delivery",
      ) as Answer<DeliveryWithAttempts>;
    },
    async retry(id) {
      return jsonAnswer(
        await channel.send("POST", `${DELIVERIES_PATH}/${id}/retry`),
        "delivery",
      ) as Answer<Delivery>;
    },
    async skip(id) {
      return jsonAnswer(
        await channel.send("POST", `${DELIVERIES_PATH}/${id}/skip`),
        "delivery",
      ) as Answer<Delivery>;
    },
  };
}
