import {
  ATTEMPT_ERROR_CODES,
  DELIVERY_QUERY,
  DELIVERY_STATUSES,
  TLS_REASONS,
} from "../../domain/delivery.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { field } from "../../model/field.ts";
import { record } from "../../model/schemas.ts";
import { many, one, operation, ref, type Route } from "./route.ts";

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
      "Final states are `delivered`, `failed`, `filtered` (the subscription's filter excluded it, and nothing was sent) and `cancelled`.",
  },
  attempt: { ...field.count, description: "Number of attempts started so far." },
  next_attempt_at: {
    ...field.nullableTimestamp,
    description: "`null` if no attempt is planned, or another delivery comes first in its order.",
  },
  last_error: {
    ...field.nullableText,
    description: "The error of the last finished attempt, such as `HTTP 500` or `timeout`.",
  },
  timestamped: field.timestamp,
  finished_at: field.nullableTimestamp,
} as const;

const attempt = {
  attempt: { type: "integer", minimum: 1 },
  consumer: {
    ...field.nullableText,
    description: "Who took it from a subscription of mode `pull`; `null` for one that evreg sent.",
  },
  started_at: field.timestamp,
  duration_ms: field.count,
  dns_ms: {
    ...field.nullableCount,
    description:
      "Part of the duration: looking up the host's name. `null` if there was a connection already, or none was made, or the host is an address.",
  },
  connect_ms: {
    ...field.nullableCount,
    description:
      "Part of the duration: connecting, TLS included. `null` if there was a connection already, or none was made.",
  },
  first_byte_ms: {
    ...field.nullableCount,
    description: "Part of the duration, on a new connection: from the request to the start of the answer.",
  },
  outcome: { type: "string", enum: ["delivered", "failed", "returned"] },
  status_code: { type: ["integer", "null"] },
  error_code: { enum: [...ATTEMPT_ERROR_CODES, null] },
  tls_reason: {
    enum: [...TLS_REASONS, null],
    description: "For `tls_failed`: what is wrong with the certificate, or the handshake.",
  },
  response: {
    ...field.nullableText,
    description: "First 1 KiB of the answer. The request's secrets in it are replaced.",
  },
  refusal: {
    ...field.nullableText,
    description:
      "For `address_refused`: the address, and the rule that refused it. `null` for tokens without `admin` for all applications.",
  },
} as const;

/** Deliveries and their attempts as they are answered. */
export const DELIVERY_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Delivery: record(delivery),
  Attempt: record(attempt),
  SubscriptionAttempt: record({ delivery_id: field.rowid, event_id: field.rowid, ...attempt }),
  DeliveryWithAttempts: record(
    {
      ...delivery,
      key: {
        ...field.text,
        description:
          "Of a subscription that is ordered by key: its key, by which `key` finds it. Absent without one, and for one of more than 1,024 characters.",
      },
      attempts: {
        type: "array",
        items: ref("Attempt"),
        description: "In order; of more than 100, the first 50 and the last 50.",
      },
    },
    ["key"],
  ),
};

export const DELIVERY_ROUTES: readonly Route[] = [
  operation("GET /v1/deliveries", "listDeliveries", "List deliveries, newest first", {
    query: DELIVERY_QUERY,
    answer: ["The deliveries.", many("Delivery")],
    run: (evreg, { query }) => evreg.deliveries.list(query),
  }),
  operation("GET /v1/deliveries/:id", "getDelivery", "Get one delivery with its attempts", {
    answer: ["The delivery.", one("DeliveryWithAttempts")],
    failures: [404],
    run: (evreg, { id }) => evreg.deliveries.get(id),
  }),
  operation(
    "POST /v1/deliveries/:id/retry",
    "retryDelivery",
    "Send a delivery again now, with all its retries",
    {
      description:
        "It is sent even while its subscription is slowed. The subscription's filter is applied again, also to a delivery that it excluded.",
      answer: ["The delivery, due now.", one("Delivery")],
      failures: [404, 409],
      run: (evreg, { id }) => evreg.deliveries.retry(id),
    },
  ),
  operation(
    "POST /v1/deliveries/:id/skip",
    "skipDelivery",
    "Give up a failing delivery, so that the next ones are sent",
    {
      description:
        "For the delivery that blocks an ordered subscription, and for any other that waits for a retry. It ends as `failed`.",
      answer: ["The delivery, failed.", one("Delivery")],
      failures: [404, 409],
      run: (evreg, { id }) => evreg.deliveries.skip(id),
    },
  ),
];
