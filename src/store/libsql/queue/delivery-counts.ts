import type { DeliveryCounts, DeliveryStatus } from "../../../domain/delivery.ts";
import { keysOfText } from "../../../domain/order-key.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import type { WantedDeliveries } from "../../events.ts";
import type { Sql } from "../thread/sql.ts";
import { DELIVERY_STATE, STATUS } from "./delivery-state.ts";

/** Deliveries of a step, each of which takes a microsecond or two. */
const SLICE = 500;

interface CountedDelivery {
  readonly event_id: number;
  readonly subscription_id: number;
  /** `null` for one that the caller may not read. */
  readonly status: DeliveryStatus | null;
}

/** The deliveries of each of these events by their state, in the order of the events. An event may be named once. */
export function* countDeliveries(
  sql: Sql,
  ids: readonly number[],
  applications?: readonly string[],
): Steps<readonly DeliveryCounts[]> {
  const counts = new Map<number, Partial<Record<DeliveryStatus, number>>>(ids.map((id) => [id, {}]));
  const readable = applications === undefined ? null : JSON.stringify(applications);
  const rising = [...ids].toSorted((one, other) => one - other);
  for (let [at, after] = [0, 0]; at < rising.length;) {
    const slice = sql.rows<CountedDelivery>(
      `SELECT d.event_id, d.subscription_id,
          CASE WHEN ?3 IS NULL OR s.application IN (SELECT value FROM json_each(?3)) THEN ${STATUS} END AS status
        FROM json_each(?1) AS page
        CROSS JOIN delivery AS d INDEXED BY delivery_event
          ON d.event_id = page.value AND d.subscription_id > iif(page.key = 0, ?2, 0)
        CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
        LIMIT ${SLICE}`,
      JSON.stringify(rising.slice(at)),
      after,
      readable,
    );
    for (const { event_id: event, status } of slice) {
      const own = counts.get(event);
      if (own !== undefined && status !== null) own[status] = (own[status] ?? 0) + 1;
    }
    const last = slice.at(-1);
    if (last === undefined || slice.length < SLICE) break;
    at = rising.indexOf(last.event_id, at);
    after = last.subscription_id;
    yield;
  }
  return ids.map((id) => counts.get(id) ?? {});
}

/** Whether the event `value` has a delivery of which the condition is true, to the applications `?2`. */
function hasDelivery(condition: string): string {
  return `EXISTS (
      SELECT 1 FROM delivery AS d INDEXED BY delivery_event CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE d.event_id = value AND ${condition}
        AND (?2 IS NULL OR s.application IN (SELECT value FROM json_each(?2))))`;
}

/** Those of the events whose deliveries are so; `unreceived` has none that was delivered. */
export function eventsWithDeliveries(
  sql: Sql,
  ids: readonly number[],
  { outcome, key }: WantedDeliveries,
  applications?: readonly string[],
): readonly number[] {
  const readable = applications === undefined ? null : JSON.stringify(applications);
  const keys = key === undefined ? null : JSON.stringify(keysOfText(key));
  // Each statement has all of its values.
  const conditions = ["?2 IS NULL OR ?3 IS NULL OR TRUE"];
  if (outcome === "unreceived")
    conditions.push(`NOT ${hasDelivery(`d.state = ${DELIVERY_STATE.delivered}`)}`);
  if (outcome === "failed") conditions.push(hasDelivery(`d.state = ${DELIVERY_STATE.failed}`));
  if (keys !== null) conditions.push(hasDelivery("d.key IN (SELECT value FROM json_each(?3))"));
  const rows = sql.rows<{ id: number }>(
    `SELECT value AS id FROM json_each(?1) WHERE (${conditions.join(") AND (")})`,
    JSON.stringify(ids),
    readable,
    keys,
  );
  return rows.map(({ id }) => id);
}
