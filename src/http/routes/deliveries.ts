import { ATTEMPT_ERROR_CODES, DELIVERY_QUERY, DELIVERY_STATUSES } from "../../domain/delivery.ts";
import { PAGE_BYTES } from "../response-budget.ts";
import { reply } from "../response.ts";
import {
  count,
  type JsonSchema,
  many,
  nullableTimestamp,
  one,
  record,
  ref,
  type Route,
  rowid,
  text,
  timestamp,
} from "./route.ts";

const part: JsonSchema = { type: ["integer", "null"], minimum: 0 };

const delivery = {
  rowid,
  event_id: rowid,
  subscription_id: rowid,
  application: text,
  subscription: text,
  action: text,
  status: {
    type: "string",
    enum: DELIVERY_STATUSES,
    description:
      "Ends are `delivered`, `failed`, `filtered` (the subscription's filter kept it back, and nothing was sent) and `cancelled`.",
  },
  attempt: { ...count, description: "Attempts begun so far." },
  next_attempt_at: { ...nullableTimestamp, description: "`null` when nothing is planned." },
  last_error: {
    type: ["string", "null"],
    description: "Of the last finished attempt, such as `HTTP 500` or `timeout`.",
  },
  timestamped: timestamp,
  finished_at: nullableTimestamp,
} as const;

/** Deliveries and their attempts as they are answered. */
export const DELIVERY_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Delivery: record(delivery),
  Attempt: record({
    attempt: { type: "integer", minimum: 1 },
    started_at: timestamp,
    duration_ms: count,
    dns_ms: {
      ...part,
      description:
        "Of the duration, for looking up the host's name; `null` where there was a connection already, or none came about, or the host is an address.",
    },
    connect_ms: {
      ...part,
      description:
        "Likewise for connecting, TLS included; `null` where there was a connection, or none came about.",
    },
    first_byte_ms: {
      ...part,
      description: "Likewise from the request to the beginning of the answer, where the connection was new.",
    },
    outcome: { type: "string", enum: ["delivered", "failed", "returned"] },
    status_code: { type: ["integer", "null"] },
    error_code: { enum: [...ATTEMPT_ERROR_CODES, null] },
    response: {
      type: ["string", "null"],
      description: "First 1 KiB of the answer, its request's secrets replaced.",
    },
    refusal: {
      type: ["string", "null"],
      description:
        "Of `address_refused`: which address was refused, and by which rule. Told to tokens that hold `admin` for all applications; others get `null`.",
    },
  }),
  DeliveryWithAttempts: record({
    ...delivery,
    attempts: {
      type: "array",
      items: ref("Attempt"),
      description: "In order; of more than 100, the first 50 and the last 50.",
    },
  }),
};

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
