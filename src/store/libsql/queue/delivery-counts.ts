import type { DeliveryCounts, DeliveryStatus } from "../../../domain/delivery.ts";
import { keysOfText } from "../../../domain/order-key.ts";
import type { WantedDeliveries } from "../../events.ts";
import type { Sql } from "../thread/sql.ts";
import { DELIVERY_STATE, STATUS } from "./delivery-state.ts";

/** Counts the deliveries of each of these events by their state, in the order of the events. */
export function countDeliveries(
  sql: Sql,
  ids: readonly number[],
  applications?: readonly string[],
): readonly DeliveryCounts[] {
  const rows = sql.rows<{ event_id: number; status: DeliveryStatus; count: number }>(
    `SELECT d.event_id, ${STATUS} AS status, count(*) AS count
      FROM (SELECT DISTINCT value AS id FROM json_each(?1)) AS page
      CROSS JOIN delivery AS d INDEXED BY delivery_event ON d.event_id = page.id
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE ?2 IS NULL OR s.application IN (SELECT value FROM json_each(?2)) GROUP BY 1, 2`,
    JSON.stringify(ids),
    applications === undefined ? null : JSON.stringify(applications),
  );
  const counts = Map.groupBy(rows, ({ event_id: event }) => event);
  return ids.map((id) =>
    Object.fromEntries((counts.get(id) ?? []).map(({ status, count }) => [status, count])),
  );
}

/** SQL that says whether the event `value` has a delivery of which the condition is true, to the applications `?2`. */
function hasDelivery(condition: string): string {
  return `EXISTS (
      SELECT 1 FROM delivery AS d INDEXED BY delivery_event CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE d.event_id = value AND ${condition}
        AND (?2 IS NULL OR s.application IN (SELECT value FROM json_each(?2))))`;
}

/** Answers those of the events whose deliveries are so; `unreceived` has none that was delivered. */
export function eventsWithDeliveries(
  sql: Sql,
  ids: readonly number[],
  { outcome, key }: WantedDeliveries,
  applications?: readonly string[],
): readonly number[] {
  const rows = sql.rows<{ id: number }>(
    `SELECT value AS id FROM json_each(?1)
      WHERE (?3 IS NOT 'unreceived' OR NOT ${hasDelivery(`d.state = ${DELIVERY_STATE.delivered}`)})
        AND (?3 IS NOT 'failed' OR ${hasDelivery(`d.state = ${DELIVERY_STATE.failed}`)})
        AND (?4 IS NULL OR ${hasDelivery("d.key IN (SELECT value FROM json_each(?4))")})`,
    JSON.stringify(ids),
    applications === undefined ? null : JSON.stringify(applications),
    outcome ?? null,
    key === undefined ? null : JSON.stringify(keysOfText(key)),
  );
  return rows.map(({ id }) => id);
}
