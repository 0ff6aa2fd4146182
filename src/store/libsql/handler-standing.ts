import { failingReason, longestGapMs } from "../../domain/failing.ts";
import { toIso } from "../../runtime/clock.ts";
import type { Deactivated } from "../finishes.ts";
import { errorOf, type ResultRow } from "./finish-call.ts";
import type { TellingLimit } from "./own-events.ts";
import type { Sql } from "./sql.ts";

/** What the results of one call tell of handlers, by the rowids of their subscriptions. */
export interface Told {
  /** Which had a success. */
  readonly succeeded: Set<number>;
  /** Whose last result here is a failure, with its error. */
  readonly failed: Map<number, string>;
  readonly slow: (readonly [subscriptionId: number, untilMs: number, handler: string])[];
  readonly gone: (readonly [subscriptionId: number, reason: string])[];
}

export function nothingTold(): Told {
  return { succeeded: new Set(), failed: new Map(), slow: [], gone: [] };
}

/**
 * Takes one result in.
 * @param at `hasLeft`: the subscription has left the handler that is gone, which tells nothing of the one it has;
 * `isKept`: it keeps its place in the order of its subscription, which waits for its retry
 */
export function tell(
  told: Told,
  subscriptionId: number,
  row: ResultRow,
  { hasLeft, isKept }: { hasLeft: boolean; isKept: boolean },
): void {
  const [, , , , statusCode, errorCode, , , next, more] = row;
  if (next.kind === "delivered") {
    told.succeeded.add(subscriptionId);
    // Looked at first, as nearly always there is none.
    if (told.failed.size > 0) told.failed.delete(subscriptionId);
  } else if (next.kind === "retry" || next.kind === "failed") {
    told.failed.set(subscriptionId, errorOf(statusCode, errorCode));
  } else if (next.kind === "gone" && !hasLeft) {
    told.gone.push([subscriptionId, next.reason]);
  }
  for (const wait of [more?.slow, isKept ? more?.wait : undefined]) {
    if (wait !== undefined) told.slow.push([subscriptionId, Math.ceil(wait.untilMs), wait.handler]);
  }
}

interface At {
  readonly nowMs: number;
  readonly disableAfterMs: number | undefined;
  /** Of those that have failed for too long; whom it does not admit is deactivated at the next failure. */
  readonly limit: TellingLimit;
}

/** Notes it with the subscriptions, and deactivates those whose handlers are gone or have failed for too long. */
export function noteStanding(sql: Sql, { succeeded, failed, slow, gone }: Told, at: At): Deactivated[] {
  if (succeeded.size > 0) noteSuccesses(sql, succeeded, at.nowMs);
  const ended = gone.map(([subscriptionId, reason]) => ({ subscriptionId, reason }));
  if (failed.size > 0) ended.push(...noteFailures(sql, failed, at));
  if (slow.length > 0) slowDown(sql, slow);
  return ended.filter((one) => deactivate(sql, one));
}

/**
 * Nearly always there is nothing to forget, and nothing is written. An ordered one has one attempt at a time: its success
 * is the last word of its handler, and ends every wait.
 */
function noteSuccesses(sql: Sql, succeeded: ReadonlySet<number>, nowMs: number): void {
  sql.run(
    `UPDATE subscription SET failing_since_ms = NULL, failed_ms = NULL, failing_ms = 0,
        slowed_until_ms = CASE WHEN slowed_until_ms > ?2 AND ordered = 0 THEN slowed_until_ms END
      WHERE rowid IN (SELECT value FROM json_each(?1))
        AND (failing_since_ms IS NOT NULL OR slowed_until_ms <= ?2 OR (ordered = 1 AND slowed_until_ms IS NOT NULL))`,
    JSON.stringify([...succeeded]),
    nowMs,
  );
}

/** Answers those that have failed for too long. */
function noteFailures(
  sql: Sql,
  failed: ReadonlyMap<number, string>,
  { nowMs, disableAfterMs, limit }: At,
): readonly Deactivated[] {
  const failing = sql.rows<{ id: number; since_ms: number; failing_ms: number }>(
    `UPDATE subscription SET failing_since_ms = min(coalesce(failing_since_ms, ?2), ?2), failed_ms = ?2,
        failing_ms = failing_ms + max(0, min(?2 - coalesce(failed_ms, ?2), ?3))
      WHERE rowid IN (SELECT value FROM json_each(?1)) AND active = 1 AND deleted_ms IS NULL
      RETURNING rowid AS id, failing_since_ms AS since_ms, failing_ms`,
    JSON.stringify([...failed.keys()]),
    nowMs,
    disableAfterMs === undefined ? 0 : longestGapMs(disableAfterMs),
  );
  if (disableAfterMs === undefined) return [];
  return failing
    .filter(
      ({ failing_ms }) => failing_ms >= disableAfterMs && limit.admits(["evreg.subscription.deactivated"]),
    )
    .map(({ id, since_ms }) => ({
      subscriptionId: id,
      reason: failingReason(toIso(since_ms), failed.get(id) ?? "network_error"),
    }));
}

/** A later end stands: what was asked for is never cut short by an answer that asks for less. */
function slowDown(sql: Sql, slow: Told["slow"]): void {
  sql.run(
    `UPDATE subscription SET slowed_until_ms = max(coalesce(slowed_until_ms, 0), r.until_ms)
      FROM (SELECT value ->> 0 AS id, value ->> 2 AS handler, max(value ->> 1) AS until_ms
        FROM json_each(?) GROUP BY 1, 2) AS r
      WHERE subscription.rowid = r.id AND subscription.handler = r.handler`,
    JSON.stringify(slow),
  );
}

/** For a subscription that a person gives a new start: with another handler, or a handler that was put right. */
export function forgetStanding(sql: Sql, subscriptionId: number): void {
  sql.run(
    `UPDATE subscription SET failing_since_ms = NULL, failed_ms = NULL, failing_ms = 0, slowed_until_ms = NULL
      WHERE rowid = ?`,
    subscriptionId,
  );
}

/** For one that is ordered no more. What its handler asked for itself goes as well, as nothing tells the two apart. */
export function forgetWait(sql: Sql, subscriptionId: number): void {
  sql.run("UPDATE subscription SET slowed_until_ms = NULL WHERE rowid = ?", subscriptionId);
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
