import { EvregError } from "../../../domain/error.ts";
import type { Sql } from "../thread/sql.ts";
import { DELIVERY_STATE, NORMAL, REQUESTED, settingOf } from "./delivery-state.ts";
import { clearWaits } from "./handler-health.ts";
import { FIRST_BLOCKED } from "./key-order.ts";

// The pending deliveries of an ordered subscription are in the order of their events (`sequence`), however late they were made.
// All of them are due; the subscription as a whole waits instead. Only requested ones go before.

/** More are not put in order, as each is rewritten in one transaction. */
const MAX_REORDERED = 10_000;

/** Follows `SELECT`: `w` is the first in the order of an ordered subscription that nobody requested. */
export function headOf(subscriptionId: string): string {
  return `FROM delivery AS w INDEXED BY delivery_sequence
    WHERE w.subscription_id = ${subscriptionId} AND w.priority = ${NORMAL} AND w.sequence IS NOT NULL
      AND w.due_ms IS NOT NULL
    ORDER BY w.sequence LIMIT 1`;
}

/** Follows `SELECT`: `w` is the first that a person requested. */
export function firstRequestedOf(subscriptionId: string): string {
  return `FROM delivery AS w INDEXED BY delivery_due
    WHERE w.subscription_id = ${subscriptionId} AND w.priority = ${REQUESTED} AND w.due_ms IS NOT NULL
    ORDER BY w.due_ms, w.rowid LIMIT 1`;
}

/**
 * The delivery that the subscription `s` blocks for, as a value: the first in its order, or of its keys, that has used up its
 * retries.
 */
export const BLOCKED_BY = `CASE WHEN s.ordered = 1 AND ${settingOf("on_exhausted")} = 'block' THEN (
    SELECT iif(w.failures > s.max_retries, w.rowid, NULL) ${headOf("s.rowid")})
  WHEN s.order_key IS NOT NULL AND ${settingOf("on_exhausted")} = 'block' THEN ${FIRST_BLOCKED} END`;

/**
 * Puts what is pending in order. From then on none has a due time of its own, even when the order ends again.
 * @throws EvregError `conflict` when that is too much
 */
export function assignSequence(sql: Sql, subscriptionId: number, nowMs: number): void {
  const { pending } = sql.first<{ pending: number }>(
    `SELECT count(*) AS pending FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
      WHERE subscription_id = ? AND priority = ${NORMAL} AND due_ms IS NOT NULL LIMIT ?)`,
    subscriptionId,
    MAX_REORDERED + 1,
  )!;
  if (pending > MAX_REORDERED) {
    const message = `it has more than ${MAX_REORDERED} unfinished deliveries, too many to be put in order at once; wait until fewer are left, or create another subscription`;
    throw new EvregError("conflict", `ordered: ${message}.`, { field: "ordered", message, value: true });
  }
  sql.run(
    `UPDATE delivery INDEXED BY delivery_due SET sequence = event_id, due_ms = min(due_ms, ?2)
      WHERE subscription_id = ?1 AND due_ms IS NOT NULL AND sequence IS NULL`,
    subscriptionId,
    nowMs,
  );
}

/**
 * Fails the first delivery if it has used up its retries, for a subscription that blocks no more or has fewer retries now.
 * Answers what has failed.
 */
export function failExhausted(sql: Sql, subscriptionId: number, nowMs: number): readonly number[] {
  const failed = sql.rows<{ id: number }>(
    `UPDATE delivery SET state = ${DELIVERY_STATE.failed}, due_ms = NULL, finished_ms = ?2
      WHERE rowid = (SELECT w.rowid ${headOf("?1")}) AND NOT EXISTS (SELECT 1 ${firstRequestedOf("?1")})
        AND failures > (SELECT max_retries FROM subscription WHERE rowid = ?1)
        AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = delivery.rowid)
      RETURNING rowid AS id`,
    subscriptionId,
    nowMs,
  );
  if (failed.length > 0) clearWaits(sql, subscriptionId);
  return failed.map(({ id }) => id);
}

/** Whether the delivery is the first of its ordered subscription. */
export function isHead(sql: Sql, id: number): boolean {
  const found = sql.first<{ isFirst: number }>(
    `SELECT d.rowid = (SELECT w.rowid ${headOf("d.subscription_id")}) AS isFirst
      FROM delivery AS d CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE d.rowid = ? AND s.ordered = 1`,
    id,
  );
  return found?.isFirst === 1;
}

/** The subscriptions with leased deliveries. */
export function leasedSubscriptions(sql: Sql): ReadonlySet<number> {
  const found = sql.rows<{ id: number }>(
    `SELECT DISTINCT d.subscription_id AS id FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id`,
  );
  return new Set(found.map(({ id }) => id));
}
