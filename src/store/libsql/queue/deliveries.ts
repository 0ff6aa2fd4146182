import type { Delivery, DeliveryWithAttempts } from "../../../domain/delivery.ts";
import { checkRetry, checkSkip, type DeliveryBefore, type RequestedDelivery } from "../../rules/requests.ts";
import { recordServiceEvents } from "../events/service-events.ts";
import { WHOLE_KEY, WHOLE_ORDER } from "../../../domain/order-key.ts";
import { isRowid, type Sql } from "../thread/sql.ts";
import { attemptsOfDelivery } from "./attempts.ts";
import {
  DELIVERY_STATE,
  deliveryOf,
  type DeliveryRow,
  JOIN_NAMES,
  REQUESTED,
  SELECT_DELIVERY,
  UNFINISHED_STATES,
} from "./delivery-state.ts";
import { clearWaits } from "./handler-health.ts";
import { findKeyText, keyPointerOf, keysOfDeliveries, placeByKey, releaseKeys } from "./key-order.ts";
import type { Work } from "../thread/operation.ts";

export function findDelivery(sql: Sql, id: number): DeliveryWithAttempts | undefined {
  const row = findRow(sql, id);
  if (row === undefined) return undefined;
  const key = findKeyText(sql, id);
  return { ...deliveryOf(row), ...(key === undefined ? {} : { key }), attempts: attemptsOfDelivery(sql, id) };
}

export function retryDelivery(sql: Sql, id: number, nowMs: number): Delivery | undefined {
  const row = findRow(sql, id);
  if (row === undefined) return undefined;
  checkRetry(requestedOf(row), (delivery) => findBefore(sql, delivery));
  sql.run(
    `UPDATE delivery SET state = ${DELIVERY_STATE.pending}, priority = ${REQUESTED}, due_ms = ?, failures = 0, finished_ms = NULL
      WHERE rowid = ?`,
    nowMs,
    id,
  );
  placeByKey(sql, row.subscription_id, [id], keyPointerOf(sql, row.subscription_id), nowMs);
  return deliveryOf(findRow(sql, id)!);
}

/** Fails a delivery for good that has failed so far; what waited behind it comes up. */
export function skipDelivery(work: Work, id: number, nowMs: number): Delivery | undefined {
  const row = findRow(work, id);
  if (row === undefined) return undefined;
  checkSkip(requestedOf(row), (delivery) => findBefore(work, delivery));
  const isFirst = findBefore(work, id) === undefined;
  work.run(
    `UPDATE delivery SET state = ${DELIVERY_STATE.failed}, due_ms = NULL, finished_ms = ? WHERE rowid = ?`,
    nowMs,
    id,
  );
  releaseKeys(work, keysOfDeliveries(work, [id]), nowMs);
  const isOneOrder = keyPointerOf(work, row.subscription_id) === WHOLE_ORDER;
  if (isOneOrder && isFirst) clearWaits(work, row.subscription_id, nowMs);
  recordServiceEvents(work, { failed: [id] }, nowMs);
  work.changes.push({ failed: 1 });
  return deliveryOf(findRow(work, id)!);
}

function requestedOf({ deleted_ms: deletedMs, ...row }: DeliveryRow): RequestedDelivery {
  return { ...row, isSubscriptionDeleted: deletedMs !== null };
}

/** Answers the delivery that the order sends before this one. */
function findBefore(sql: Sql, id: number): DeliveryBefore | undefined {
  const first = sql.first<{ readonly id: number; readonly failures: number; readonly key: number }>(
    `SELECT d.rowid AS id, d.failures, d.key FROM delivery AS own CROSS JOIN delivery AS d INDEXED BY delivery_key
      WHERE own.rowid = ? AND own.state = ${DELIVERY_STATE.behind} AND d.subscription_id = own.subscription_id
        AND d.key = own.key AND d.state = ${DELIVERY_STATE.pending} AND d.state IN ${UNFINISHED_STATES}`,
    id,
  );
  return first && { id: first.id, hasFailed: first.failures > 0, isOfKey: first.key !== WHOLE_KEY };
}

function findRow(sql: Sql, id: number): DeliveryRow | undefined {
  if (!isRowid(id)) return undefined;
  const text = `${SELECT_DELIVERY} FROM delivery AS d ${JOIN_NAMES} WHERE d.rowid = ?`;
  return sql.rows<DeliveryRow>(text, id)[0];
}
