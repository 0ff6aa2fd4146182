import { CLOCK_TOLERANCE_MS, type TimelineSegment } from "../../rules/recording.ts";
import { insertSegments, loadLastNumbers } from "../events/timeline.ts";
import type { Sql } from "../sql.ts";
import { NORMAL, REQUESTED } from "./delivery-state.ts";

/** It may be repeated at once with the same `nowMs`, where nobody knows whether it was committed. */
export async function moveWaits(sql: Sql, backMs: number, nowMs: number): Promise<number> {
  const { event, delivery } = await loadLastNumbers(sql);
  const step = { event: event + 1, delivery: delivery + 1, noticedMs: nowMs };
  if (await isStored(sql, step)) return 0;
  const deliveries = await sql.run(
    `UPDATE delivery SET due_ms = max(?1, due_ms - ?2) WHERE rowid IN (
        SELECT d.rowid FROM subscription AS s CROSS JOIN delivery AS d INDEXED BY delivery_due
        WHERE d.subscription_id = s.rowid AND d.priority IN (${REQUESTED}, ${NORMAL}) AND d.due_ms > ?1)`,
    nowMs,
    backMs,
  );
  const leases = await sql.run(
    "UPDATE lease SET claimed_ms = claimed_ms - ?1, until_ms = until_ms - ?1",
    backMs,
  );
  const subscriptions = await sql.run(
    "UPDATE subscription SET slowed_until_ms = max(?1, slowed_until_ms - ?2) WHERE slowed_until_ms > ?1",
    nowMs,
    backMs,
  );
  // The times that the file knows of the past are no later than the clock any more: otherwise all would be moved again at the
  // next start.
  await sql.run(
    `UPDATE subscription SET last_failure_ms = min(last_failure_ms, ?1), failing_since_ms = min(failing_since_ms, ?1)
      WHERE last_failure_ms > ?1 OR failing_since_ms > ?1`,
    nowMs,
  );
  await insertSegments(sql, [step]);
  return deliveries + leases + subscriptions;
}

/**
 * Says whether this very step is stored already. Steps that are stored as something is recorded have that behind them, and this
 * one has nothing yet.
 */
async function isStored(sql: Sql, { event, delivery, noticedMs }: TimelineSegment): Promise<boolean> {
  const stored = await sql.first(
    "SELECT rowid FROM clock_step WHERE first_event = ? AND first_delivery = ? AND noticed_ms = ?",
    event,
    delivery,
    noticedMs,
  );
  return stored !== undefined;
}

/**
 * Moves what waits in a file that is opened: where the clock is behind the latest time that the file knows, it was set back
 * since.
 * @returns by how much at least, and how many waits were moved
 */
export async function moveWaitsAtStart(
  sql: Sql,
  nowMs: number,
): Promise<{ readonly backMs: number; readonly waits: number } | undefined> {
  const { known_ms: knownMs } = (await sql.first<{ known_ms: number }>(
    `SELECT max(coalesce((SELECT max(last_failure_ms) FROM subscription), 0), coalesce((SELECT max(claimed_ms) FROM lease), 0))
      AS known_ms`,
  ))!;
  const backMs = Math.max(knownMs, (await loadLastNumbers(sql)).lastMs) - nowMs;
  return backMs < CLOCK_TOLERANCE_MS ? undefined : { backMs, waits: await moveWaits(sql, backMs, nowMs) };
}
