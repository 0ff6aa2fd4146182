import { ATTEMPT_ERROR_WORDS, TLS_REASON_WORDS } from "../domain/words/attempts.ts";
import { field, type Fields, ofSubscription } from "./field.ts";

/**
 * pending → delivering → delivered
 *              │  └────→ waiting → delivering …
 *              ├───────→ failed
 *              └───────→ filtered
 * held: its subscription is paused; it goes on when that is reactivated.
 * cancelled: its subscription was deleted before it was delivered.
 * filtered: its subscription's filter excluded it, and nothing was sent.
 */
export const DELIVERY_STATUSES = [
  "pending",
  "delivering",
  "waiting",
  "held",
  "delivered",
  "failed",
  "filtered",
  "cancelled",
] as const;

/** Why an attempt got no usable HTTP answer. */
export const ATTEMPT_ERROR_CODES = Object.keys(ATTEMPT_ERROR_WORDS) as (keyof typeof ATTEMPT_ERROR_WORDS)[];

/** Why TLS failed. */
export const TLS_REASONS = Object.keys(TLS_REASON_WORDS) as (keyof typeof TLS_REASON_WORDS)[];

/** One event on its way to one subscription. */
export const DELIVERY = {
  rowid: { answer: field.rowid, title: "Delivery" },
  event_id: { answer: field.rowid, title: "Event" },
  ...ofSubscription,
  status: {
    answer: { type: "string", enum: DELIVERY_STATUSES },
    about: "Final are `delivered`, `failed`, `filtered` (by the subscription's filter) and `cancelled`.",
    title: "Status",
  },
  attempt: { answer: field.count, about: "Number of attempts started so far.", title: "Attempts" },
  next_attempt_at: {
    answer: field.nullableTimestamp,
    about: "`null` if no attempt is planned, or another delivery comes first in its order.",
    title: "Next attempt",
  },
  last_error: {
    answer: field.nullableText,
    about: "The error of the last finished attempt, such as `HTTP 500` or `timeout`.",
    title: "Last error",
  },
  timestamped: { answer: field.timestamp, title: "Created" },
  finished_at: { answer: field.nullableTimestamp, title: "Finished" },
} as const satisfies Fields;

/** When an attempt was made, and how long its parts took. */
export const TIMES = {
  started_at: { answer: field.timestamp, title: "Started" },
  duration_ms: { answer: field.count, title: "ms" },
  dns_ms: {
    answer: field.nullableCount,
    about: "Of the duration: looking up the host's name. `null` where nothing was looked up.",
    title: "DNS",
  },
  connect_ms: {
    answer: field.nullableCount,
    about: "Of the duration: connecting, TLS included. `null` where no connection was made.",
    title: "Connect",
  },
  first_byte_ms: {
    answer: field.nullableCount,
    about: "Of the duration, on a new connection: from the request to the start of the answer.",
    title: "First byte",
  },
} as const satisfies Fields;

/** One try to send it, or one claim of a consumer. */
export const ATTEMPT = {
  attempt: { answer: field.ordinal, title: "Attempt" },
  ...TIMES,
  outcome: { answer: { type: "string", enum: ["delivered", "failed", "returned"] }, title: "Outcome" },
  status_code: { answer: { type: ["integer", "null"] }, title: "Answer" },
  error_code: { answer: { enum: [...ATTEMPT_ERROR_CODES, null] } },
  consumer: {
    answer: field.nullableText,
    about: "Who took it from a subscription of mode `pull`; `null` for one that evreg sent.",
  },
  tls_reason: {
    answer: { enum: [...TLS_REASONS, null] },
    about: "For `tls_failed`: what is wrong with the certificate, or the handshake.",
  },
  response: {
    answer: field.nullableText,
    about: "First 1 KiB of the answer. The request's secrets in it are replaced.",
    title: "Body",
  },
  refusal: {
    answer: field.nullableText,
    about:
      "For `address_refused`: the address, and the rule that refused it. `null` for tokens without `admin` for all applications.",
  },
} as const satisfies Fields;
