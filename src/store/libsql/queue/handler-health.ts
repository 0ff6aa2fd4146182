import { failingReason, LONGEST_WAIT_MS, longestGapMs } from "../../../domain/retry.ts";
import { SETTINGS_LIMITS } from "../../../domain/subscription-settings.ts";
import type { Deactivated } from "../../queue.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { Sql } from "../thread/sql.ts";
import { errorOf, type FinishedRow } from "./wire.ts";

/** Longer waits cannot be asked for: such a one was stored before the clock was set back, and does not count. */
const LONGEST_SLOWDOWN_MS = 4 * LONGEST_WAIT_MS;
const LONGEST_RETRY_WAIT_MS = 2 * SETTINGS_LIMITS.waitMaxMs;

/** When the wait of the subscription `s` ends or ended, at the time `?1`; 0 where there was none. */
export const WAIT_END = `max(
    iif(s.slowed_until_ms <= ?1 + ${LONGEST_SLOWDOWN_MS}, s.slowed_until_ms, 0),
    iif(s.ordered = 1 AND s.retry_wait_until_ms <= ?1 + ${LONGEST_RETRY_WAIT_MS}, s.retry_wait_until_ms, 0))`;

type Wait = readonly [subscriptionId: number, untilMs: number, handler: string];

/** What the results of one call say about handlers, by the rowids of their subscriptions. */
interface HandlerSignals {
  /** Which had a success. */
  readonly succeeded: Set<number>;
  /** Whose last result here is a failure, with its error. */
  readonly failed: Map<number, string>;
  /** What handlers asked for. */
  readonly slow: Wait[];
  /** For retries of the first deliveries of ordered ones. */
  readonly retryWaits: Wait[];
  readonly gone: Deactivated[];
}

export function noSignals(): HandlerSignals {
  return { succeeded: new Set(), failed: new Map(), slow: [], retryWaits: [], gone: [] };
}

/**
 * Adds one result.
 * @param at `handlerChanged`: the subscription has left the handler that is gone, which says nothing about the new one;
 * `isRetriedInOrder`: its ordered subscription waits for its retry
 */
export function addSignal(
  signals: HandlerSignals,
  subscriptionId: number,
  row: FinishedRow,
  { handlerChanged, isRetriedInOrder }: { handlerChanged: boolean; isRetriedInOrder: boolean },
): void {
  const { next, more } = row;
  if (next.kind === "delivered") {
    signals.succeeded.add(subscriptionId);
    // Looked at first, as nearly always there is none.
    if (signals.failed.size > 0) signals.failed.delete(subscriptionId);
  } else if (next.kind === "retry" || next.kind === "failed") {
    signals.failed.set(subscriptionId, errorOf(row));
  } else if (next.kind === "gone" && !handlerChanged) {
    signals.gone.push({ subscriptionId, reason: next.reason });
  }
  const { slow, wait } = more ?? {};
  if (slow !== undefined) signals.slow.push([subscriptionId, Math.ceil(slow.untilMs), slow.handler]);
  if (isRetriedInOrder && wait !== undefined) {
    signals.retryWaits.push([subscriptionId, Math.ceil(wait.untilMs), wait.handler]);
  }
}

/** Stores the signals, and deactivates subscriptions whose handlers are gone or have failed for too long. */
export function applySignals(
  sql: Sql,
  { succeeded, failed, slow, retryWaits, gone }: HandlerSignals,
  nowMs: number,
  disableAfterMs: number | undefined,
): Deactivated[] {
  if (succeeded.size > 0) storeSuccesses(sql, succeeded, nowMs);
  const ended = [...gone];
  if (failed.size > 0) ended.push(...storeFailures(sql, failed, nowMs, disableAfterMs));
  setWaits(sql, "slowed_until_ms", slow);
  setWaits(sql, "retry_wait_until_ms", retryWaits);
  return ended.filter((one) => deactivate(sql, one, nowMs));
}

/**
 * Nearly always nothing has to be cleared, and nothing is written. An ordered one has one attempt at a time, so its success
 * ends every wait.
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
  nowMs: number,
  disableAfterMs: number | undefined,
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
    .filter(({ total_ms }) => total_ms >= disableAfterMs)
    .map(({ id, since_ms }) => ({
      subscriptionId: id,
      reason: failingReason(toIso(since_ms), failed.get(id) ?? "network_error"),
    }));
}

/** The latest end counts: an answer that asks for less does not cut a wait short. */
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

/** For a subscription that gets another handler, or is activated by a person. */
export function resetHealth(sql: Sql, subscriptionId: number): void {
  sql.run(
    "UPDATE subscription SET failing_since_ms = NULL, last_failure_ms = NULL, failing_total_ms = 0 WHERE rowid = ?",
    subscriptionId,
  );
  clearWaits(sql, subscriptionId);
}

/** Lets the next delivery be sent at once. */
export function clearWaits(sql: Sql, subscriptionId: number): void {
  sql.run(
    "UPDATE subscription SET slowed_until_ms = NULL, retry_wait_until_ms = NULL WHERE rowid = ?",
    subscriptionId,
  );
}

/** Answers whether it was active. Its last failure is what it was deactivated for. */
function deactivate(sql: Sql, { subscriptionId, reason }: Deactivated, nowMs: number): boolean {
  const changed = sql.run(
    `UPDATE subscription SET active = 0, disabled_reason = ?1, last_failure_ms = ?3
      WHERE rowid = ?2 AND active = 1 AND deleted_ms IS NULL`,
    reason,
    subscriptionId,
    nowMs,
  );
  return changed > 0;
}
