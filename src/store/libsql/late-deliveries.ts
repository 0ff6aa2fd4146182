import { CLOCK_SLACK_MS, insertSteps } from "./clock-steps.ts";
import { loadEnds } from "./record-lookups.ts";
import type { Sql } from "./sql.ts";

/**
 * Makes deliveries, due now or at their places in the order, of events that were published before. They are created now, not when their events were, so
 * that the rowids of deliveries go on rising with their times.
 */
export function insertLateDeliveries(
  sql: Sql,
  subscriptionId: number,
  eventIds: readonly number[],
  nowMs: number,
): void {
  if (eventIds.length === 0) return;
  const { event, delivery, lastMs } = loadEnds(sql);
  const isSetBack = nowMs < lastMs - CLOCK_SLACK_MS;
  if (isSetBack) insertSteps(sql, [{ event: event + 1, delivery: delivery + 1, noticedMs: nowMs }]);
  sql.run(
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms)
      SELECT value, s.rowid, ?3, CASE s.ordered WHEN 1 THEN value ELSE ?4 END
      FROM json_each(?1) CROSS JOIN subscription AS s WHERE s.rowid = ?2`,
    JSON.stringify(eventIds),
    subscriptionId,
    isSetBack ? nowMs : Math.max(nowMs, lastMs),
    nowMs,
  );
}
