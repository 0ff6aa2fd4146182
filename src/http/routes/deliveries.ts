import { DELIVERY_QUERY } from "../../domain/delivery.ts";
import { many, one, operation, type Route } from "./route.ts";

export const DELIVERY_ROUTES: readonly Route[] = [
  operation("deliveries.list", "listDeliveries", "List deliveries, newest first", {
    query: DELIVERY_QUERY,
    answer: ["The deliveries.", many("Delivery")],
  }),
  operation("deliveries.get", "getDelivery", "Get one delivery with its attempts", {
    answer: ["The delivery.", one("DeliveryWithAttempts")],
  }),
  operation("deliveries.retry", "retryDelivery", "Send a delivery again now, with all its retries", {
    description:
      "It is sent even while its subscription is slowed. The subscription's filter is applied again, also to a delivery that it excluded.",
    answer: ["The delivery, due now.", one("Delivery")],
    failures: [409],
  }),
  operation("deliveries.skip", "skipDelivery", "Give up a failing delivery, so that the next ones are sent", {
    description:
      "For the delivery that blocks an ordered subscription, and for any other that waits for a retry. It ends as `failed`.",
    answer: ["The delivery, failed.", one("Delivery")],
    failures: [409],
  }),
];
