import { DELIVERY_QUERY } from "../domain/requests/deliveries.ts";
import { PAGE_BYTES } from "./answer-memory.ts";
import { many, one } from "./records/members.ts";
import { reply } from "./reply.ts";
import type { Route } from "./route.ts";

const tag = "deliveries";

export const DELIVERY_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/deliveries",
    operationId: "listDeliveries",
    tag,
    summary: "Deliveries, newest first",
    access: "token",
    scope: "read",
    query: DELIVERY_QUERY,
    answers: { 200: { description: "The deliveries.", schema: many("Delivery") } },
    failures: [],
    async handle(evreg, incoming, { memory }) {
      const query = incoming.query(DELIVERY_QUERY);
      return memory.answer(incoming, PAGE_BYTES, async () => reply(200, await evreg.deliveries.list(query)));
    },
  },
  {
    method: "GET",
    path: "/v1/deliveries/:id",
    operationId: "getDelivery",
    tag,
    summary: "One delivery with its attempts",
    access: "token",
    scope: "read",
    answers: { 200: { description: "The delivery.", schema: one("DeliveryWithAttempts") } },
    failures: [404],
    async handle(evreg, incoming, { memory }) {
      const id = incoming.id();
      return memory.answer(incoming, PAGE_BYTES, async () => reply(200, await evreg.deliveries.get(id)));
    },
  },
  {
    method: "POST",
    path: "/v1/deliveries/:id/retry",
    operationId: "retryDelivery",
    tag,
    summary: "Send a delivery again now, with all its retries, also while its subscription is slowed",
    description: "The subscription's filter is asked anew, also for a delivery that it kept back.",
    access: "token",
    scope: "write",
    answers: { 200: { description: "The delivery, due now.", schema: one("Delivery") } },
    failures: [404, 409],
    async handle(evreg, incoming) {
      return reply(200, await evreg.deliveries.retry(incoming.id()));
    },
  },
  {
    method: "POST",
    path: "/v1/deliveries/:id/skip",
    operationId: "skipDelivery",
    tag,
    summary: "Give a delivery up that has failed so far, so that those behind it go on",
    description:
      "For the one that an ordered subscription blocks for, and for any other that waits for a retry. It ends as `failed`.",
    access: "token",
    scope: "write",
    answers: { 200: { description: "The delivery, failed.", schema: one("Delivery") } },
    failures: [404, 409],
    async handle(evreg, incoming) {
      return reply(200, await evreg.deliveries.skip(incoming.id()));
    },
  },
];
