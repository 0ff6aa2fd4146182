import { CLOCK_SLACK_MS, insertSteps } from "./clock-steps.ts";
import { loadEnds } from "./record-lookups.ts";
import type { Sql } from "./sql.ts";

/**
 * Makes deliveries, due now, of events that were published before. They are created now, not when their events were, so
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
      SELECT value, ?2, ?3, ?4 FROM json_each(?1)`,
    JSON.stringify(eventIds),
    subscriptionId,
    isSetBack ? nowMs : Math.max(nowMs, lastMs),
    nowMs,
  );
}
