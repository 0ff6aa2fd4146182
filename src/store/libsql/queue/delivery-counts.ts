import type { DeliveryCounts, DeliveryStatus } from "../../../domain/delivery.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import type { Sql } from "../thread/sql.ts";
import { STATUS } from "./delivery-state.ts";

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
  const counts = new Map(ids.map((id) => [id, {} as Partial<Record<DeliveryStatus, number>>]));
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
