import { type ATTEMPT, type DELIVERY, DELIVERY_STATUSES } from "../model/delivery.ts";
import type { RecordOf } from "../model/field.ts";
import { BACKLOG_CAUSES } from "./stats/stats.ts";
import { byAction, from, inputSchema, NO_NUL, pageLimit, rowid, to, type ValueOf } from "./request.ts";

export type DeliveryStatus = Delivery["status"];

/** Whether nothing more happens by itself. */
export function isFinal(status: DeliveryStatus): boolean {
  return ["delivered", "failed", "filtered", "cancelled"].includes(status);
}

type DeliveryTransition = readonly [
  from: DeliveryStatus,
  to: DeliveryStatus,
  causes: readonly TransitionCause[],
];
type TransitionCause =
  | "claimed"
  | "handler answered 2xx"
  | "attempt failed"
  | "attempt interrupted or never started"
  | "excluded by the filter"
  | "subscription paused"
  | "subscription resumed"
  | "subscription deleted"
  | "skipped"
  | "retry requested"
  | "replayed";

/** All ways from one status to another; a new delivery is `pending`. CONTRIBUTING.md draws them. */
export const DELIVERY_TRANSITIONS: readonly DeliveryTransition[] = [
  ["pending", "delivering", ["claimed"]],
  ["waiting", "delivering", ["claimed"]],
  ["delivering", "delivered", ["handler answered 2xx"]],
  ["delivering", "filtered", ["excluded by the filter"]],
  ["delivering", "failed", ["attempt failed"]],
  ["delivering", "waiting", ["attempt failed", "attempt interrupted or never started"]],
  ["delivering", "pending", ["attempt interrupted or never started"]],
  // Paused or deleted during its attempt.
  ["delivering", "held", ["attempt failed", "attempt interrupted or never started"]],
  ["delivering", "cancelled", ["attempt failed", "attempt interrupted or never started"]],
  ["pending", "held", ["subscription paused"]],
  ["waiting", "held", ["subscription paused"]],
  ["held", "pending", ["subscription resumed"]],
  ["held", "waiting", ["subscription resumed"]],
  ["pending", "cancelled", ["subscription deleted"]],
  ["waiting", "cancelled", ["subscription deleted"]],
  ["held", "cancelled", ["subscription deleted"]],
  // A pending one has failed before where its retry was requested.
  ["pending", "failed", ["skipped"]],
  ["waiting", "failed", ["skipped"]],
  ["held", "failed", ["skipped"]],
  ["waiting", "pending", ["retry requested", "replayed"]],
  ["delivered", "pending", ["retry requested", "replayed"]],
  ["failed", "pending", ["retry requested", "replayed"]],
  ["filtered", "pending", ["retry requested", "replayed"]],
  // A retry that is requested of a paused subscription waits.
  ["delivered", "held", ["retry requested"]],
  ["failed", "held", ["retry requested"]],
  ["filtered", "held", ["retry requested"]],
];

/** The statuses that a cause leads away from. */
export function statusesBefore(cause: TransitionCause): ReadonlySet<DeliveryStatus> {
  return new Set(
    DELIVERY_TRANSITIONS.filter(([, , causes]) => causes.includes(cause)).map(([status]) => status),
  );
}

/** Deliveries of one event by their state; states without any are left out. */
export type DeliveryCounts = Readonly<Partial<Record<DeliveryStatus, number>>>;

/** One event on its way to one subscription. */
export interface Delivery extends RecordOf<typeof DELIVERY> {}

export interface Attempt extends RecordOf<typeof ATTEMPT> {}

/**
 * The attempt as those see it who may only name handlers, and must not learn what names stand for inside the operator's
 * network.
 */
export function withoutRefusal<T extends Attempt>(attempt: T): T {
  return { ...attempt, refusal: null };
}

/** An attempt among those of its subscription. */
export interface SubscriptionAttempt extends Attempt {
  readonly delivery_id: number;
  readonly event_id: number;
}

export const ATTEMPT_LIMITS = { listDefault: 50, listMax: 100 } as const;

export const ATTEMPT_QUERY = inputSchema("AttemptQuery", {
  limit: pageLimit(ATTEMPT_LIMITS, "Attempts in the answer."),
});
export type AttemptQuery = ValueOf<typeof ATTEMPT_QUERY>;

export type AttemptErrorCode = NonNullable<Attempt["error_code"]>;

export type TlsReason = NonNullable<Attempt["tls_reason"]>;

export interface DeliveryWithAttempts extends Delivery {
  readonly attempts: readonly Attempt[];
}

export const DELIVERY_LIMITS = {
  listDefault: 50,
  listMax: 500,
  responseBytes: 1_024,
  keyLength: 1_024,
} as const;

export const DELIVERY_QUERY = inputSchema("DeliveryQuery", {
  event: { ...rowid, description: "Only of the event with this rowid." },
  subscription: { ...rowid, description: "Only of the subscription with this rowid." },
  action: byAction,
  status: { type: "string", enum: DELIVERY_STATUSES, description: "Only in this state." },
  cause: {
    type: "string",
    enum: BACKLOG_CAUSES,
    description:
      "Only those that are unfinished for this cause, as the backlog of `GET /v1/stats` counts them. due: to be sent next; busy: their handler has others; paced: by a rate limit, or for consumers; waiting: for their next attempt, or behind another; blocked: behind one that has used up its retries; delivering: an attempt is under way; held: their subscription is paused.",
  },
  key: {
    type: "string",
    maxLength: DELIVERY_LIMITS.keyLength,
    pattern: NO_NUL,
    description:
      "Only with this key, in subscriptions that are ordered by key: the text that stands at the pointer or, as JSON, another value such as `42`. Both are meant where both can be.",
    examples: ["C-17", "42"],
  },
  from: { ...from, description: "Created then or later." },
  to: { ...to, description: "Created before then." },
  limit: pageLimit(DELIVERY_LIMITS, "Deliveries in one answer."),
  after: { ...rowid, description: "Walks on to deliveries older than this rowid." },
});
export type DeliveryQuery = ValueOf<typeof DELIVERY_QUERY>;
