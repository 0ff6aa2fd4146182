import { EvregError } from "../../domain/error.ts";
import type { OnExhausted } from "../../domain/subscription-settings.ts";
import { ASKED_BY_MS } from "./delivery-row.ts";
import type { ResultRow } from "./finish-call.ts";
import { forgetWait } from "./handler-standing.ts";
import type { Turned } from "./service-events.ts";
import type { Sql } from "./sql.ts";

/**
 * What waits for an ordered subscription has the rowid of its event for a time to be due at: the index of what is due then
 * has it in the order of publication, however late it came in. All of it counts as due; its subscription waits instead.
 * Only what a person asks for stands before it, by a time before 1970.
 */

/** More are not put in order, as each is rewritten and nothing else is done meanwhile. */
const MOST_REORDERED = 10_000;

/** Where an ordered subscription's delivery has its place, and when it has to leave it. */
export interface OrderedPlace {
  readonly id: number;
  readonly event_id: number;
  readonly max_retries: number;
  readonly on_exhausted: OnExhausted;
}

/**
 * The delivery that the subscription `s` blocks for, as a value: the first in its order that nobody asked for, if that has
 * used up its retries.
 */
export const BLOCKED_BY = `CASE WHEN s.ordered = 1 AND s.settings ->> 'on_exhausted' = 'block' THEN (
    SELECT iif(w.failures > s.max_retries, w.rowid, NULL) FROM delivery AS w INDEXED BY delivery_due
    WHERE w.subscription_id = s.rowid AND w.due_ms > ${ASKED_BY_MS} ORDER BY w.due_ms, w.rowid LIMIT 1) END`;

/** Of the results that did not deliver: the places of those whose subscription is ordered by now. */
export function loadPlaces(sql: Sql, rows: readonly ResultRow[]): ReadonlyMap<number, OrderedPlace> {
  const ids = rows.flatMap(([id, , , , , , , , next]) =>
    next.kind === "delivered" || next.kind === "filtered" || next.kind === "unsent" ? [] : [id],
  );
  if (ids.length === 0) return new Map();
  const found = sql.rows<OrderedPlace>(
    `SELECT d.rowid AS id, d.event_id, s.max_retries, s.settings ->> 'on_exhausted' AS on_exhausted
      FROM json_each(?) AS r
      CROSS JOIN delivery AS d ON d.rowid = r.value
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE s.ordered = 1`,
    JSON.stringify(ids),
  );
  return new Map(found.map((place) => [place.id, place]));
}

/** Whether it goes on waiting at its place after an attempt that failed; otherwise it has failed for good. */
export function keepsPlace(
  { max_retries, on_exhausted }: OrderedPlace,
  failures: number,
  { next, hasLeft }: { next: ResultRow[8]; hasLeft: boolean },
): boolean {
  // With its handler gone nothing is sent at all, so one that blocks keeps its place as well.
  if (on_exhausted === "block") return true;
  return (next.kind === "retry" || hasLeft) && failures < max_retries;
}

/** Whether its subscription blocks for it from this failed attempt on. */
export function beginsToBlock({ max_retries, on_exhausted }: OrderedPlace, failures: number): boolean {
  return on_exhausted === "block" && failures === max_retries;
}

/**
 * Gives what waits the places it has by publication; what a person asked for stays first.
 * @throws EvregError `conflict` when that is too much at once
 */
export function putInOrder(sql: Sql, subscriptionId: number): void {
  mustBeFew(sql, subscriptionId, { afterMs: ASKED_BY_MS, value: true });
  sql.run(
    "UPDATE delivery INDEXED BY delivery_due SET due_ms = event_id WHERE subscription_id = ? AND due_ms > ?",
    subscriptionId,
    ASKED_BY_MS,
  );
}

/**
 * The other way round. Places are times long gone, so all of it is due, and nothing is to be done but where the numbers of
 * events went on beyond today's time in milliseconds, as they may after a restore.
 * @throws EvregError as above
 */
export function takeOutOfOrder(sql: Sql, subscriptionId: number, nowMs: number): void {
  mustBeFew(sql, subscriptionId, { afterMs: nowMs, value: false });
  sql.run(
    `UPDATE delivery INDEXED BY delivery_due SET due_ms = min(created_ms, ?2)
      WHERE subscription_id = ?1 AND due_ms > ?2`,
    subscriptionId,
    nowMs,
  );
}

function mustBeFew(
  sql: Sql,
  subscriptionId: number,
  { afterMs, value }: { readonly afterMs: number; readonly value: boolean },
): void {
  const { waiting } = sql.first<{ waiting: number }>(
    `SELECT count(*) AS waiting FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
      WHERE subscription_id = ? AND due_ms > ? LIMIT ?)`,
    subscriptionId,
    afterMs,
    MOST_REORDERED + 1,
  )!;
  if (waiting <= MOST_REORDERED) return;
  const change = value ? "put in order" : "taken out of their order";
  const message = `it has more than ${MOST_REORDERED} unfinished deliveries, too many to be ${change} at once; wait until fewer are left, or create another subscription`;
  throw new EvregError("conflict", `ordered: ${message}.`, { field: "ordered", message, value });
}

/**
 * Lets the first go that has used up its retries, and what waits behind it come up; for a subscription that has blocked
 * for it, or gave it more retries. Answers what has failed by that.
 */
export function failExhausted(sql: Sql, subscriptionId: number, nowMs: number): readonly Turned[] {
  const failed = sql.rows<{ id: number }>(
    `UPDATE delivery SET state = 3, due_ms = NULL, finished_ms = ?2
      WHERE rowid = (SELECT d.rowid FROM delivery AS d INDEXED BY delivery_due
          WHERE d.subscription_id = ?1 AND d.due_ms IS NOT NULL ORDER BY d.due_ms, d.rowid LIMIT 1)
        AND due_ms > ?3 AND failures > (SELECT max_retries FROM subscription WHERE rowid = ?1)
        AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = delivery.rowid)
      RETURNING rowid AS id`,
    subscriptionId,
    nowMs,
    ASKED_BY_MS,
  );
  if (failed.length > 0) {
    forgetWait(sql, subscriptionId);
  }
  return failed.map(({ id }) => [id, nowMs]);
}

/** Whether the delivery is what its ordered subscription waits for. */
export function isFirstInOrder(sql: Sql, id: number): boolean {
  const found = sql.first<{ isFirst: number }>(
    `SELECT d.rowid = (SELECT w.rowid FROM delivery AS w INDEXED BY delivery_due
          WHERE w.subscription_id = d.subscription_id AND w.due_ms > ? ORDER BY w.due_ms, w.rowid LIMIT 1) AS isFirst
      FROM delivery AS d CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE d.rowid = ? AND s.ordered = 1`,
    ASKED_BY_MS,
    id,
  );
  return found?.isFirst === 1;
}

/** The subscriptions of which anything is leased. */
export function leasedSubscriptions(sql: Sql): ReadonlySet<number> {
  const found = sql.rows<{ id: number }>(
    `SELECT DISTINCT d.subscription_id AS id FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id`,
  );
  return new Set(found.map(({ id }) => id));
}
