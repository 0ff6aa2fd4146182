import type { Delivery, DeliveryStatus } from "../../domain/delivery.ts";
import { toIso } from "../../runtime/clock.ts";
import { LAST_MS, optionally, textOf, timeOf, wholeOf } from "./sql.ts";

export interface DeliveryRow {
  readonly id: number;
  readonly event_id: number;
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly status: DeliveryStatus;
  readonly attempt: number;
  readonly due_ms: number | null;
  readonly last_error: string | null;
  readonly created_ms: number;
  readonly finished_ms: number | null;
  readonly deleted_ms: number | null;
}

const LEASED = "EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = d.rowid)";

/** What is written plus what follows from the subscription; `d` and `s` are the delivery and its subscription. */
const STATUS = `CASE d.state WHEN 2 THEN 'delivered' WHEN 3 THEN 'failed' WHEN 4 THEN 'filtered'
    ELSE CASE WHEN ${LEASED} THEN 'delivering' WHEN s.deleted_ms IS NOT NULL THEN 'cancelled'
      WHEN s.active = 0 THEN 'held' WHEN d.failures > 0 THEN 'waiting' ELSE 'pending' END
  END`;

const WAITS = `d.due_ms IS NOT NULL AND NOT ${LEASED}`;

/** The same as a condition, the other way round. */
export const STATUS_IS: Readonly<Record<DeliveryStatus, string>> = {
  pending: `${WAITS} AND s.deleted_ms IS NULL AND s.active = 1 AND d.failures = 0`,
  waiting: `${WAITS} AND s.deleted_ms IS NULL AND s.active = 1 AND d.failures > 0`,
  held: `${WAITS} AND s.deleted_ms IS NULL AND s.active = 0`,
  cancelled: `${WAITS} AND s.deleted_ms IS NOT NULL`,
  delivering: LEASED,
  delivered: "d.state = 2",
  failed: "d.state = 3",
  filtered: "d.state = 4",
};

/** 1 for `pending`, `waiting`, `held` and `delivering`, else 0. */
export const UNFINISHED = `(d.due_ms IS NOT NULL AND (s.deleted_ms IS NULL OR ${LEASED}))`;

/**
 * With an ordered subscription what waits has a place instead of a time: the rowid of its event, see publication-order.ts.
 * Its turn may come once its subscription is not slowed.
 */
const DUE = `CASE WHEN d.due_ms = d.event_id THEN max(${timeOf("d.created_ms")}, coalesce(${timeOf("s.slowed_until_ms")}, 0))
    ELSE ${optionally("d.due_ms", `iif(d.due_ms BETWEEN -${Number.MAX_SAFE_INTEGER} AND ${LAST_MS}, d.due_ms, 0)`)} END`;

/** Goes on with joins of or conditions on `d`, `s`, `e` and `a`. */
export const SELECT_DELIVERY = `
  SELECT d.rowid AS id, d.event_id, d.subscription_id, s.application, s.subscription, a.action, ${STATUS} AS status,
    ${wholeOf("d.attempt")} + ${LEASED} AS attempt, ${DUE} AS due_ms, ${textOf("d.last_error")} AS last_error,
    ${timeOf("d.created_ms")} AS created_ms, ${optionally("d.finished_ms", timeOf("d.finished_ms"))} AS finished_ms, s.deleted_ms`;

export const JOIN_NAMES = `
  CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
  CROSS JOIN event AS e ON e.rowid = d.event_id
  CROSS JOIN action AS a ON a.rowid = e.action_id`;

/**
 * A delivery that a person asks for is due so much before its time: in the order in which deliveries come due it comes
 * before all others of its subscription, and is known from them by being due before 1970.
 */
const ASKED_LEAD_MS = 2 ** 50;

export function askedDueMs(nowMs: number): number {
  return nowMs - ASKED_LEAD_MS;
}

/** Deliveries due by this are those that persons asked for. */
export const ASKED_BY_MS = -1;

export function deliveryOf(row: DeliveryRow): Delivery {
  const planned = row.status === "pending" || row.status === "waiting" ? plannedMs(row.due_ms) : null;
  const finished = row.status === "cancelled" ? row.deleted_ms : row.finished_ms;
  return {
    rowid: row.id,
    event_id: row.event_id,
    subscription_id: row.subscription_id,
    application: row.application,
    subscription: row.subscription,
    action: row.action,
    status: row.status,
    attempt: row.attempt,
    next_attempt_at: planned === null ? null : toIso(planned),
    last_error: row.last_error,
    timestamped: toIso(row.created_ms),
    finished_at: finished === null ? null : toIso(finished),
  };
}

/** When one with this `due_ms` is due. */
export function plannedMs(dueMs: number | null): number | null {
  return dueMs !== null && dueMs <= ASKED_BY_MS ? dueMs + ASKED_LEAD_MS : dueMs;
}
