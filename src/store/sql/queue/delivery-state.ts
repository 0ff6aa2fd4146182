import type { Delivery, DeliveryStatus } from "../../../domain/delivery.ts";
import type { SubscriptionSettings } from "../../../domain/subscription-settings.ts";
import { answersOf } from "../../../model/field.ts";
import { DELIVERY } from "../../../model/delivery.ts";
import { recordsOf } from "../sql.ts";

/** A delivery as `SELECT_DELIVERY` answers it, with its times in milliseconds since the epoch. */
export interface DeliveryRow extends Omit<Delivery, "next_attempt_at" | "timestamped" | "finished_at"> {
  readonly due_ms: number | null;
  readonly finished_ms: number | null;
  readonly deleted_ms: number | null;
  /** The key by which it has a place in an order, while it is unfinished or once it had one. */
  readonly key: number | null;
}

/**
 * The values of `delivery.state`. The status of an unfinished delivery follows from its lease, its subscription and its
 * failures.
 */
export const DELIVERY_STATE = {
  pending: 0,
  delivered: 2,
  failed: 3,
  filtered: 4,
  /** The delivery is unfinished and not due: another of its key comes first, see key-order.ts. */
  behind: 5,
} as const;

/** The states of unfinished deliveries, as SQL. */
export const UNFINISHED_STATES = `(${DELIVERY_STATE.pending}, ${DELIVERY_STATE.behind})`;

// SQL that follows `SELECT`: the unfinished deliveries of the subscription `?1`, which are pending or behind.
export const PENDING_OF =
  "FROM delivery AS d INDEXED BY delivery_due WHERE d.subscription_id = ?1 AND d.due_ms IS NOT NULL";
export const BEHIND_OF = `FROM delivery AS d INDEXED BY delivery_key
  WHERE d.subscription_id = ?1 AND d.key IS NOT NULL AND d.state IN ${UNFINISHED_STATES} AND d.state = ${DELIVERY_STATE.behind}`;

/** SQL that says whether a delivery is leased. */
export function LEASE_OF(delivery: string): string {
  return `EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = ${delivery}.rowid)`;
}

const LEASED = LEASE_OF("d");

/** When the delivery `d` with the subscription `s` has a status, where none of those before it is true. */
const STATUSES: Readonly<Record<DeliveryStatus, string>> = {
  delivered: `d.state = ${DELIVERY_STATE.delivered}`,
  failed: `d.state = ${DELIVERY_STATE.failed}`,
  filtered: `d.state = ${DELIVERY_STATE.filtered}`,
  delivering: LEASED,
  cancelled: "s.deleted_ms IS NOT NULL",
  held: "s.active = 0",
  waiting: "d.failures > 0",
  pending: "TRUE",
};

/** SQL of the status of the delivery `d` with the subscription `s`. */
export const STATUS = `CASE ${Object.entries(STATUSES)
  .map(([status, condition]) => `WHEN ${condition} THEN '${status}'`)
  .join(" ")} END`;

export const IS_OPEN = `(d.due_ms IS NOT NULL OR d.state = ${DELIVERY_STATE.behind})`;

/** SQL that is 1 for a delivery that is `pending`, `waiting`, `held` or `delivering`, else 0. */
export const UNFINISHED = `(${IS_OPEN} AND (s.deleted_ms IS NULL OR ${LEASED}))`;

/** SQL of a `DeliveryRow`. It goes on with joins of or conditions on `d`, `s`, `e` and `a`. */
export const SELECT_DELIVERY = `
  SELECT d.rowid AS rowid, d.event_id, d.subscription_id, s.application, s.subscription, a.action, ${STATUS} AS status,
    d.attempt + ${LEASED} AS attempt, d.due_ms, d.last_error,
    d.created_ms AS timestamped, d.finished_ms, s.deleted_ms, d.key`;

export const JOIN_NAMES = `
  CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
  CROSS JOIN event AS e ON e.rowid = d.event_id
  CROSS JOIN action AS a ON a.rowid = e.action_id`;

/** SQL of when the wait of the subscription `s` ends or ended; 0 where there was none. */
export const WAIT_END = "coalesce(s.slowed_until_ms, 0)";

/** SQL of a setting of the subscription `s`, as a value; damaged settings have none. */
export function settingOf(name: keyof SubscriptionSettings): string {
  return `iif(json_valid(s.settings), s.settings ->> '${name}', NULL)`;
}

const recordOf = recordsOf<Delivery>(answersOf(DELIVERY));

export function deliveryOf(row: DeliveryRow): Delivery {
  const { status, due_ms: dueMs } = row;
  const isPlanned = status === "pending" || status === "waiting";
  const finishedMs = status === "cancelled" ? row.deleted_ms : row.finished_ms;
  return recordOf({ ...row, next_attempt_at: isPlanned ? dueMs : null, finished_at: finishedMs });
}
