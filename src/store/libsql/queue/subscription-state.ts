import { EvregError } from "../../../domain/error.ts";
import { failingReason, LONGEST_WAIT_MS, longestGapMs } from "../../../domain/retry.ts";
import {
  type OnExhausted,
  SETTINGS_LIMITS,
  type SubscriptionSettings,
} from "../../../domain/subscription-settings.ts";
import type { ServiceEventBudget, Transitioned } from "../events/service-events.ts";
import type { Deactivated } from "../../queue.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { Sql } from "../thread/sql.ts";
import { DELIVERY_STATE, NORMAL, REQUESTED } from "./delivery-state.ts";
import { errorOf, type FinishedRow } from "./wire.ts";

/**
 * No handler gets to ask for that long, and no retry is that far: a wait that would last longer was stored before the clock
 * was set back, and does not count.
 */
const LONGEST_SLOWDOWN_MS = 4 * LONGEST_WAIT_MS;
const LONGEST_RETRY_WAIT_MS = 2 * SETTINGS_LIMITS.waitMaxMs;

/** When the wait of the subscription `s` ends or ended, at the time `?1`; 0 where there was none. */
export const WAIT_END = `max(
    iif(s.slowed_until_ms <= ?1 + ${LONGEST_SLOWDOWN_MS}, s.slowed_until_ms, 0),
    iif(s.ordered = 1 AND s.retry_wait_until_ms <= ?1 + ${LONGEST_RETRY_WAIT_MS}, s.retry_wait_until_ms, 0))`;

// The pending deliveries of an ordered subscription are in the order of their events (`sequence`), however late they came
// in. All of them are due; the subscription as a whole waits instead. Only requested ones go before.

/** More are not put in order, as each is rewritten and nothing else is done meanwhile. */
const MAX_REORDERED = 10_000;

/** Where an ordered subscription's delivery has its place, and when it has to leave it. */
export interface OrderedDelivery {
  readonly id: number;
  readonly event_id: number;
  readonly due_ms: number;
  readonly max_retries: number;
  readonly on_exhausted: OnExhausted;
}

/** Goes on from `SELECT`: `w` is the first in the order of an ordered subscription that nobody requested. */
export function headOf(subscriptionId: string): string {
  return `FROM delivery AS w INDEXED BY delivery_sequence
    WHERE w.subscription_id = ${subscriptionId} AND w.priority = ${NORMAL} AND w.sequence IS NOT NULL
      AND w.due_ms IS NOT NULL
    ORDER BY w.sequence LIMIT 1`;
}

/** Likewise the first that a person requested. */
export function firstRequestedOf(subscriptionId: string): string {
  return `FROM delivery AS w INDEXED BY delivery_due
    WHERE w.subscription_id = ${subscriptionId} AND w.priority = ${REQUESTED} AND w.due_ms IS NOT NULL
    ORDER BY w.due_ms, w.rowid LIMIT 1`;
}

/** A setting of the subscription `s`, as a value; damaged settings have none. */
export function settingOf(name: keyof SubscriptionSettings): string {
  return `iif(json_valid(s.settings), s.settings ->> '${name}', NULL)`;
}

/**
 * The delivery that the subscription `s` blocks for, as a value: the first in its order that nobody asked for, if that has
 * used up its retries.
 */
export const BLOCKED_BY = `CASE WHEN s.ordered = 1 AND ${settingOf("on_exhausted")} = 'block' THEN (
    SELECT iif(w.failures > s.max_retries, w.rowid, NULL) ${headOf("s.rowid")}) END`;

/** Of the results that did not deliver: the places of those whose subscription is ordered by now. */
export function loadOrdered(sql: Sql, rows: readonly FinishedRow[]): ReadonlyMap<number, OrderedDelivery> {
  const ids = rows.flatMap(({ deliveryId, next: { kind } }) =>
    kind === "delivered" || kind === "filtered" || kind === "unsent" ? [] : [deliveryId],
  );
  if (ids.length === 0) return new Map();
  const found = sql.rows<OrderedDelivery>(
    `SELECT d.rowid AS id, d.event_id, d.due_ms, s.max_retries, ${settingOf("on_exhausted")} AS on_exhausted
      FROM json_each(?) AS r
      CROSS JOIN delivery AS d ON d.rowid = r.value
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE s.ordered = 1`,
    JSON.stringify(ids),
  );
  return new Map(found.map((place) => [place.id, place]));
}

/** Whether it goes on waiting at its place after an attempt that failed; otherwise it has failed for good. */
export function staysQueued(
  { max_retries, on_exhausted }: OrderedDelivery,
  failures: number,
  { next, handlerChanged }: { next: FinishedRow["next"]; handlerChanged: boolean },
): boolean {
  // With its handler gone nothing is sent at all, so one that blocks keeps its place as well.
  if (on_exhausted === "block") return true;
  return (next.kind === "retry" || handlerChanged) && failures < max_retries;
}

/** Whether its subscription blocks for it from this failed attempt on. */
export function startsBlocking({ max_retries, on_exhausted }: OrderedDelivery, failures: number): boolean {
  return on_exhausted === "block" && failures === max_retries;
}

/**
 * Puts what is pending in order. None of it waits for a time of its own from now on, also when the order ends again.
 * @throws EvregError `conflict` when that is too much at once
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
 * Lets the first go that has used up its retries, and what waits behind it come up; for a subscription that has blocked
 * for it, or gave it more retries. Answers what has failed by that.
 */
export function failExhausted(sql: Sql, subscriptionId: number, nowMs: number): readonly Transitioned[] {
  const failed = sql.rows<{ id: number }>(
    `UPDATE delivery SET state = ${DELIVERY_STATE.failed}, due_ms = NULL, finished_ms = ?2
      WHERE rowid = (SELECT w.rowid ${headOf("?1")}) AND NOT EXISTS (SELECT 1 ${firstRequestedOf("?1")})
        AND failures > (SELECT max_retries FROM subscription WHERE rowid = ?1)
        AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = delivery.rowid)
      RETURNING rowid AS id`,
    subscriptionId,
    nowMs,
  );
  if (failed.length > 0) {
    clearWaits(sql, subscriptionId);
  }
  return failed.map(({ id }) => [id, nowMs]);
}

/** Whether the delivery is what its ordered subscription waits for. */
export function isHead(sql: Sql, id: number): boolean {
  const found = sql.first<{ isFirst: number }>(
    `SELECT d.rowid = (SELECT w.rowid ${headOf("d.subscription_id")}) AS isFirst
      FROM delivery AS d CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE d.rowid = ? AND s.ordered = 1`,
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

type Wait = readonly [subscriptionId: number, untilMs: number, handler: string];

/** What the results of one call tell of handlers, by the rowids of their subscriptions. */
interface HandlerSignals {
  /** Which had a success. */
  readonly succeeded: Set<number>;
  /** Whose last result here is a failure, with its error. */
  readonly failed: Map<number, string>;
  /** What handlers asked for. */
  readonly slow: Wait[];
  /** For retries of the first deliveries of ordered ones. */
  readonly retryWaits: Wait[];
  readonly gone: (readonly [subscriptionId: number, reason: string])[];
}

export function noSignals(): HandlerSignals {
  return { succeeded: new Set(), failed: new Map(), slow: [], retryWaits: [], gone: [] };
}

/**
 * Takes one result in.
 * @param at `handlerChanged`: the subscription has left the handler that is gone, which tells nothing of the one it has;
 * `isKept`: it keeps its place in the order of its subscription, which waits for its retry
 */
export function addSignal(
  signals: HandlerSignals,
  subscriptionId: number,
  row: FinishedRow,
  { handlerChanged, isKept }: { handlerChanged: boolean; isKept: boolean },
): void {
  const { next, more } = row;
  if (next.kind === "delivered") {
    signals.succeeded.add(subscriptionId);
    // Looked at first, as nearly always there is none.
    if (signals.failed.size > 0) signals.failed.delete(subscriptionId);
  } else if (next.kind === "retry" || next.kind === "failed") {
    signals.failed.set(subscriptionId, errorOf(row));
  } else if (next.kind === "gone" && !handlerChanged) {
    signals.gone.push([subscriptionId, next.reason]);
  }
  const { slow, wait } = more ?? {};
  if (slow !== undefined) signals.slow.push([subscriptionId, Math.ceil(slow.untilMs), slow.handler]);
  if (isKept && wait !== undefined) {
    signals.retryWaits.push([subscriptionId, Math.ceil(wait.untilMs), wait.handler]);
  }
}

interface At {
  readonly nowMs: number;
  readonly disableAfterMs: number | undefined;
  /** Of those that have failed for too long; whom it does not admit is deactivated at the next failure. */
  readonly limit: ServiceEventBudget;
}

/** Notes it with the subscriptions, and deactivates those whose handlers are gone or have failed for too long. */
export function applySignals(
  sql: Sql,
  { succeeded, failed, slow, retryWaits, gone }: HandlerSignals,
  at: At,
): Deactivated[] {
  if (succeeded.size > 0) storeSuccesses(sql, succeeded, at.nowMs);
  const ended = gone.map(([subscriptionId, reason]) => ({ subscriptionId, reason }));
  if (failed.size > 0) ended.push(...storeFailures(sql, failed, at));
  setWaits(sql, "slowed_until_ms", slow);
  setWaits(sql, "retry_wait_until_ms", retryWaits);
  return ended.filter((one) => deactivate(sql, one));
}

/**
 * Nearly always there is nothing to forget, and nothing is written. An ordered one has one attempt at a time: its success
 * is the last word of its handler, and ends every wait.
 */
function storeSuccesses(sql: Sql, succeeded: ReadonlySet<number>, nowMs: number): void {
  sql.run(
    `UPDATE subscription SET failing_since_ms = NULL, last_failure_ms = NULL, failing_total_ms = 0,
        slowed_until_ms = CASE WHEN slowed_until_ms > ?2 AND ordered = 0 THEN slowed_until_ms END,
        retry_wait_until_ms = NULL
      WHERE rowid IN (SELECT value FROM json_each(?1))
        AND (failing_since_ms IS NOT NULL OR slowed_until_ms <= ?2 OR retry_wait_until_ms IS NOT NULL
          OR (ordered = 1 AND slowed_until_ms IS NOT NULL))`,
    JSON.stringify([...succeeded]),
    nowMs,
  );
}

/** Answers those that have failed for too long. */
function storeFailures(
  sql: Sql,
  failed: ReadonlyMap<number, string>,
  { nowMs, disableAfterMs, limit }: At,
): readonly Deactivated[] {
  const failing = sql.rows<{ id: number; since_ms: number; total_ms: number }>(
    `UPDATE subscription SET failing_since_ms = min(coalesce(failing_since_ms, ?2), ?2), last_failure_ms = ?2,
        failing_total_ms = failing_total_ms + max(0, min(?2 - coalesce(last_failure_ms, ?2), ?3))
      WHERE rowid IN (SELECT value FROM json_each(?1)) AND active = 1 AND deleted_ms IS NULL
      RETURNING rowid AS id, failing_since_ms AS since_ms, failing_total_ms AS total_ms`,
    JSON.stringify([...failed.keys()]),
    nowMs,
    disableAfterMs === undefined ? 0 : longestGapMs(disableAfterMs),
  );
  if (disableAfterMs === undefined) return [];
  return failing
    .filter(({ total_ms }) => total_ms >= disableAfterMs && limit.admits(["evreg.subscription.deactivated"]))
    .map(({ id, since_ms }) => ({
      subscriptionId: id,
      reason: failingReason(toIso(since_ms), failed.get(id) ?? "network_error"),
    }));
}

/** A later end stands: what was asked for is never cut short by an answer that asks for less. */
function setWaits(sql: Sql, column: "slowed_until_ms" | "retry_wait_until_ms", waits: readonly Wait[]): void {
  if (waits.length === 0) return;
  sql.run(
    `UPDATE subscription SET ${column} = max(coalesce(${column}, 0), r.until_ms)
      FROM (SELECT value ->> 0 AS id, value ->> 2 AS handler, max(value ->> 1) AS until_ms
        FROM json_each(?) GROUP BY 1, 2) AS r
      WHERE subscription.rowid = r.id AND subscription.handler = r.handler`,
    JSON.stringify(waits),
  );
}

/** For a subscription that a person gives a new start: with another handler, or a handler that was put right. */
export function resetHealth(sql: Sql, subscriptionId: number): void {
  sql.run(
    "UPDATE subscription SET failing_since_ms = NULL, last_failure_ms = NULL, failing_total_ms = 0 WHERE rowid = ?",
    subscriptionId,
  );
  clearWaits(sql, subscriptionId);
}

/** So that the next delivery is sent at once, whoever asked for the wait. */
export function clearWaits(sql: Sql, subscriptionId: number): void {
  sql.run(
    "UPDATE subscription SET slowed_until_ms = NULL, retry_wait_until_ms = NULL WHERE rowid = ?",
    subscriptionId,
  );
}

/** Answers whether it was active. */
function deactivate(sql: Sql, { subscriptionId, reason }: Deactivated): boolean {
  const changed = sql.run(
    "UPDATE subscription SET active = 0, disabled_reason = ? WHERE rowid = ? AND active = 1 AND deleted_ms IS NULL",
    reason,
    subscriptionId,
  );
  return changed > 0;
}
