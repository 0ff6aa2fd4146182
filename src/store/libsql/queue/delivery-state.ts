import type { Delivery, DeliveryStatus } from "../../../domain/delivery.ts";
import { toIso } from "../../../runtime/clock.ts";
import { optionally, type Sql, textOf, timeOf, wholeOf } from "../thread/sql.ts";

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

/** `delivery.state`. What a pending one is shown as follows from its lease, its subscription and its failures. */
export const DELIVERY_STATE = { pending: 0, delivered: 2, failed: 3, filtered: 4 } as const;

type Transition = readonly [from: DeliveryStatus, to: DeliveryStatus, causes: readonly Cause[]];
type Cause =
  | "claimed"
  | "handler answered 2xx"
  | "attempt failed"
  | "attempt interrupted or never started"
  | "excluded by the filter"
  | "subscription paused"
  | "subscription resumed"
  | "subscription deleted"
  | "skipped"
  | "retries lowered"
  | "retry requested"
  | "replayed";

/** All ways from one status to another; CONTRIBUTING.md draws them. What was just made is `pending`. */
export const TRANSITIONS: readonly Transition[] = [
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
  ["waiting", "failed", ["skipped", "retries lowered"]],
  ["held", "failed", ["skipped", "retries lowered"]],
  ["waiting", "pending", ["retry requested"]],
  ["delivered", "pending", ["retry requested", "replayed"]],
  ["failed", "pending", ["retry requested", "replayed"]],
  ["filtered", "pending", ["retry requested", "replayed"]],
  // Of a paused subscription.
  ["delivered", "held", ["retry requested"]],
  ["failed", "held", ["retry requested"]],
  ["filtered", "held", ["retry requested"]],
];

/** The statuses that a cause leads away from. */
export function statusesBefore(cause: Cause): ReadonlySet<DeliveryStatus> {
  return new Set(TRANSITIONS.filter(([, , causes]) => causes.includes(cause)).map(([from]) => from));
}

const LEASED = "EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = d.rowid)";

/** What is written plus what follows from the subscription; `d` and `s` are the delivery and its subscription. */
const STATUS = `CASE d.state WHEN ${DELIVERY_STATE.delivered} THEN 'delivered' WHEN ${DELIVERY_STATE.failed} THEN 'failed'
    WHEN ${DELIVERY_STATE.filtered} THEN 'filtered' ELSE CASE WHEN ${LEASED} THEN 'delivering' WHEN s.deleted_ms IS NOT NULL THEN 'cancelled'
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
  delivered: `d.state = ${DELIVERY_STATE.delivered}`,
  failed: `d.state = ${DELIVERY_STATE.failed}`,
  filtered: `d.state = ${DELIVERY_STATE.filtered}`,
};

/** 1 for `pending`, `waiting`, `held` and `delivering`, else 0. */
export const UNFINISHED = `(d.due_ms IS NOT NULL AND (s.deleted_ms IS NULL OR ${LEASED}))`;

/** The deliveries of an ordered subscription are due in their order, from when the subscription does not wait any more. */
const DUE = `CASE WHEN s.ordered = 1 AND d.priority = 1 AND d.due_ms IS NOT NULL
    THEN max(${timeOf("d.created_ms")}, coalesce(${timeOf("s.slowed_until_ms")}, 0), coalesce(${timeOf("s.retry_wait_until_ms")}, 0))
    ELSE ${optionally("d.due_ms", timeOf("d.due_ms"))} END`;

/** Goes on with joins of or conditions on `d`, `s`, `e` and `a`. */
export const SELECT_DELIVERY = `
  SELECT d.rowid AS id, d.event_id, d.subscription_id, s.application, s.subscription, a.action, ${STATUS} AS status,
    ${wholeOf("d.attempt")} + ${LEASED} AS attempt, ${DUE} AS due_ms, ${textOf("d.last_error")} AS last_error,
    ${timeOf("d.created_ms")} AS created_ms, ${optionally("d.finished_ms", timeOf("d.finished_ms"))} AS finished_ms, s.deleted_ms`;

export const JOIN_NAMES = `
  CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
  CROSS JOIN event AS e ON e.rowid = d.event_id
  CROSS JOIN action AS a ON a.rowid = e.action_id`;

/** A delivery that a person requested is sent before all others of its subscription, whatever the clock says. */
export const REQUESTED = 0;
export const NORMAL = 1;

export function deliveryOf(row: DeliveryRow): Delivery {
  const planned = row.status === "pending" || row.status === "waiting" ? row.due_ms : null;
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

/**
 * A delivery keeps its first and its last attempts, this many of each. Retries come to 21 at most; more are sent by hand
 * or were cut short again and again, without end.
 */
export const STORED_AT_EACH_END = 50;

/** Whether a delivery has more attempts than it keeps when it comes to this one, counting from 1. */
export function isPastLimit(attempt: number): boolean {
  return attempt > 2 * STORED_AT_EACH_END;
}

/** Forgets attempts between the first and the last ones of these deliveries. Call it when `isPastLimit`: after each one. */
export function dropMiddleAttempts(sql: Sql, deliveryIds: readonly number[]): void {
  sql.run(
    `DELETE FROM attempt WHERE (delivery_id, attempt) IN (
        SELECT a.delivery_id, a.attempt FROM json_each(?1) AS g
        CROSS JOIN delivery AS d ON d.rowid = g.value
        CROSS JOIN attempt AS a ON a.delivery_id = d.rowid
        WHERE a.attempt > ?2 AND a.attempt <= d.attempt - ?2)`,
    JSON.stringify(deliveryIds),
    STORED_AT_EACH_END,
  );
}

/**
 * Makes leased deliveries due again, their attempt recorded as cut short; it does not count against the retries.
 * @param which those whose lease ended by `nowMs`, or `all` when whoever leased them is known to be gone
 */
export function releaseLeases(sql: Sql, which: "expired" | "all", nowMs: number): number {
  const ended = which === "all" ? "TRUE" : "l.until_ms <= ?1";
  const only = which === "all" ? [] : [nowMs];
  sql.run(
    `INSERT INTO attempt (delivery_id, attempt, started_ms, duration_ms, outcome, error_code)
      SELECT d.rowid, d.attempt + 1, l.claimed_ms, max(0, ?1 - l.claimed_ms), 'returned', 'interrupted'
      FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id WHERE ${ended}`,
    nowMs,
  );
  sql.run(
    `UPDATE delivery SET attempt = attempt + 1, priority = ${NORMAL}, due_ms = iif(s.ordered = 1, due_ms, ?1),
        sequence = iif(s.ordered = 1, event_id, NULL)
      FROM subscription AS s
      WHERE s.rowid = subscription_id AND delivery.rowid IN (SELECT l.delivery_id FROM lease AS l WHERE ${ended})`,
    nowMs,
  );
  const attempted = sql.rows<{ id: number; attempt: number }>(
    `SELECT d.rowid AS id, d.attempt FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id
      WHERE ${ended}`,
    ...only,
  );
  const long = attempted.filter(({ attempt }) => isPastLimit(attempt)).map(({ id }) => id);
  if (long.length > 0) dropMiddleAttempts(sql, long);
  return sql.run(`DELETE FROM lease AS l WHERE ${ended}`, ...only);
}
