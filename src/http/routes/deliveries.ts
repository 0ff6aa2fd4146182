import { ATTEMPT_ERROR_CODES, DELIVERY_QUERY, DELIVERY_STATUSES } from "../../domain/delivery.ts";
import { field, type JsonSchema, many, one, operation, record, ref, type Route } from "./route.ts";

const part: JsonSchema = { type: ["integer", "null"], minimum: 0 };

const delivery = {
  rowid: field.rowid,
  event_id: field.rowid,
  subscription_id: field.rowid,
  application: field.text,
  subscription: field.text,
  action: field.text,
  status: {
    type: "string",
    enum: DELIVERY_STATUSES,
    description:
      "Ends are `delivered`, `failed`, `filtered` (the subscription's filter kept it back, and nothing was sent) and `cancelled`.",
  },
  attempt: { ...field.count, description: "Attempts begun so far." },
  next_attempt_at: { ...field.nullableTimestamp, description: "`null` when nothing is planned." },
  last_error: {
    type: ["string", "null"],
    description: "Of the last finished attempt, such as `HTTP 500` or `timeout`.",
  },
  timestamped: field.timestamp,
  finished_at: field.nullableTimestamp,
} as const;

/** Deliveries and their attempts as they are answered. */
export const DELIVERY_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Delivery: record(delivery),
  Attempt: record({
    attempt: { type: "integer", minimum: 1 },
    started_at: field.timestamp,
    duration_ms: field.count,
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

export const DELIVERY_ROUTES: readonly Route[] = [
  operation({
    path: "/v1/deliveries",
    operationId: "listDeliveries",
    summary: "Deliveries, newest first",
    query: DELIVERY_QUERY,
    answer: ["The deliveries.", many("Delivery")],
    run: (evreg, { query }) => evreg.deliveries.list(query),
  }),
  operation({
    path: "/v1/deliveries/:id",
    operationId: "getDelivery",
    summary: "One delivery with its attempts",
    answer: ["The delivery.", one("DeliveryWithAttempts")],
    failures: [404],
    run: (evreg, { id }) => evreg.deliveries.get(id),
  }),
  operation({
    method: "POST",
    path: "/v1/deliveries/:id/retry",
    operationId: "retryDelivery",
    summary: "Send a delivery again now, with all its retries, also while its subscription is slowed",
    description: "The subscription's filter decides anew, also on a delivery that it excluded.",
    answer: ["The delivery, due now.", one("Delivery")],
    failures: [404, 409],
    run: (evreg, { id }) => evreg.deliveries.retry(id),
  }),
  operation({
    method: "POST",
    path: "/v1/deliveries/:id/skip",
    operationId: "skipDelivery",
    summary: "Give a delivery up that has failed so far, so that those behind it go on",
    description:
      "For the one that an ordered subscription blocks for, and for any other that waits for a retry. It ends as `failed`.",
    answer: ["The delivery, failed.", one("Delivery")],
    failures: [404, 409],
    run: (evreg, { id }) => evreg.deliveries.skip(id),
  }),
];
