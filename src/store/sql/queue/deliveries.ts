import type {
  Delivery,
  DeliveryCounts,
  DeliveryStatus,
  DeliveryWithAttempts,
} from "../../../domain/delivery.ts";
import { checkRetry, checkSkip, type RequestedDelivery } from "../../rules/requests.ts";
import { recordServiceEvents } from "../events/service-events.ts";
import { isRowid, type Sql, updateRow } from "../sql.ts";
import { attemptsOfDelivery } from "./attempts.ts";
import {
  DELIVERY_STATE,
  deliveryOf,
  type DeliveryRow,
  JOIN_NAMES,
  REQUESTED,
  SELECT_DELIVERY,
  STATUS,
} from "./delivery-state.ts";
import { findKeyText, keysOfDeliveries, placeByKey, releaseKeys } from "./key-order.ts";
import type { Work } from "../operation.ts";

export async function findDelivery(sql: Sql, id: number): Promise<DeliveryWithAttempts | undefined> {
  const row = await findRow(sql, id);
  if (row === undefined) return undefined;
  const key = await findKeyText(sql, id);
  return {
    ...deliveryOf(row),
    ...(key === undefined ? {} : { key }),
    attempts: await attemptsOfDelivery(sql, id),
  };
}

export async function retryDelivery(sql: Sql, id: number, nowMs: number): Promise<Delivery | undefined> {
  const row = await findRow(sql, id);
  if (row === undefined) return undefined;
  checkRetry(requestedOf(row));
  const due = { state: DELIVERY_STATE.pending, priority: REQUESTED, due_ms: nowMs };
  await updateRow(sql, "delivery", id, { ...due, failures: 0, finished_ms: null });
  await placeByKey(sql, row.subscription_id, [id], nowMs);
  return deliveryOf((await findRow(sql, id))!);
}

export async function skipDelivery(work: Work, id: number, nowMs: number): Promise<Delivery | undefined> {
  const row = await findRow(work, id);
  if (row === undefined) return undefined;
  checkSkip(requestedOf(row));
  await updateRow(work, "delivery", id, { state: DELIVERY_STATE.failed, due_ms: null, finished_ms: nowMs });
  await releaseKeys(work, await keysOfDeliveries(work, [id]), nowMs);
  await recordServiceEvents(work, { failed: [id] }, nowMs);
  work.changes.push({ failed: 1 });
  return deliveryOf((await findRow(work, id))!);
}

function requestedOf(row: DeliveryRow): RequestedDelivery {
  const isBehind = row.finished_at === null && row.next_attempt_at === null;
  return { ...row, isSubscriptionDeleted: row.deleted_ms !== null, isBehind };
}

async function findRow(sql: Sql, id: number): Promise<DeliveryRow | undefined> {
  if (!isRowid(id)) return undefined;
  const text = `${SELECT_DELIVERY} FROM delivery AS d ${JOIN_NAMES} WHERE d.rowid = ?`;
  return (await sql.rows<DeliveryRow>(text, id))[0];
}

export async function countDeliveries(
  sql: Sql,
  ids: readonly number[],
  applications?: readonly string[],
): Promise<readonly DeliveryCounts[]> {
  const rows = await sql.rows<{ event_id: number; status: DeliveryStatus; count: number }>(
    `SELECT d.event_id, ${STATUS} AS status, count(*) AS count
      FROM (SELECT DISTINCT id FROM list(?1: id bigint) AS ids) AS page
      CROSS JOIN delivery AS d INDEXED BY delivery_event ON d.event_id = page.id
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE ?2 IS NULL OR s.application IN list(?2: name text) GROUP BY 1, 2`,
    ids,
    applications,
  );
  const counts = Map.groupBy(rows, ({ event_id: event }) => event);
  return ids.map((id) =>
    Object.fromEntries((counts.get(id) ?? []).map(({ status, count }) => [status, count])),
  );
}
