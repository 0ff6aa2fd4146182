import { type Delivery, type DeliveryWithAttempts, statusesBefore } from "../../../domain/delivery.ts";
import { EvregError } from "../../../domain/error.ts";
import { type WithServiceEvents, recordDeliveryEvents } from "../events/service-events.ts";
import { isRowid, type Sql } from "../thread/sql.ts";
import { ATTEMPT_COLUMNS, type AttemptRow, attemptOf, ATTEMPTS } from "./attempts.ts";
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
import { findKeyText, keyPointerOf, keysOfDeliveries, placeByKey, settleKeys } from "./key-order.ts";
import { firstRequestedOf, headOf, isHead } from "./order.ts";

const RETRIABLE = statusesBefore("retry requested");
const SKIPPABLE = statusesBefore("skipped");

export function findDelivery(sql: Sql, id: number): DeliveryWithAttempts | undefined {
  const row = findRow(sql, id);
  if (row === undefined) return undefined;
  const attempts = sql.rows<AttemptRow>(
    `SELECT ${ATTEMPT_COLUMNS}
      FROM ${ATTEMPTS} WHERE delivery_id = ? ORDER BY attempt`,
    id,
  );
  const key = findKeyText(sql, id);
  return { ...deliveryOf(row), ...(key === undefined ? {} : { key }), attempts: attempts.map(attemptOf) };
}

export function retryDelivery(sql: Sql, id: number, nowMs: number): Delivery | undefined {
  const row = findRow(sql, id);
  if (row === undefined) return undefined;
  if (row.deleted_ms !== null) {
    const why = `its subscription ${row.subscription} was deleted, so it cannot be sent again`;
    throw conflict(row, "retried", why);
  }
  if (!RETRIABLE.has(row.status)) {
    throw conflict(row, "retried", `it is ${row.status}; ${whatItWaitsFor(sql, row)}`);
  }
  sql.run(
    `UPDATE delivery SET state = ${DELIVERY_STATE.pending}, priority = ${REQUESTED}, due_ms = ?, failures = 0, finished_ms = NULL
      WHERE rowid = ?`,
    nowMs,
    id,
  );
  placeByKey(sql, row.subscription_id, [id], keyPointerOf(sql, row.subscription_id), nowMs);
  return deliveryOf(findRow(sql, id)!);
}

/** Fails one for good that has failed so far; what waited behind it comes up. */
export function skipDelivery(sql: Sql, id: number, nowMs: number): WithServiceEvents<Delivery | undefined> {
  const row = findRow(sql, id);
  if (row === undefined) return { answer: undefined };
  const why = whyNotSkipped(sql, row);
  if (why !== undefined) throw conflict(row, "skipped", why);
  const wasHead = isHead(sql, id);
  sql.run(
    `UPDATE delivery SET state = ${DELIVERY_STATE.failed}, due_ms = NULL, finished_ms = ? WHERE rowid = ?`,
    nowMs,
    id,
  );
  settleKeys(sql, keysOfDeliveries(sql, [id]), nowMs);
  // The subscription waited for this one's retry.
  if (wasHead) clearWaits(sql, row.subscription_id);
  const serviceEvents = recordDeliveryEvents(sql, { failed: [id] }, nowMs);
  return { answer: deliveryOf(findRow(sql, id)!), serviceEvents, failed: 1 };
}

function whyNotSkipped(sql: Sql, { rowid, status, last_error }: DeliveryRow): string | undefined {
  if (status === "delivering") return "an attempt of it is under way; wait for its result first";
  if (!SKIPPABLE.has(status)) return `it is ${status}, so nothing of it is left to be sent`;
  if (last_error !== null) return undefined;
  const before = whatGoesBefore(sql, rowid);
  return `no attempt of it has failed so far; ${before ?? "only one that failed can be skipped"}`;
}

function whatItWaitsFor(sql: Sql, { rowid, status }: DeliveryRow): string {
  if (status === "held") return "reactivate its subscription first";
  const before = status === "pending" ? whatGoesBefore(sql, rowid) : undefined;
  return before ?? "it is on its way already";
}

/** The delivery that an ordered subscription sends before this one, in words. */
function whatGoesBefore(sql: Sql, id: number): string | undefined {
  const first = sql.first<{ readonly id: number; readonly failures: number }>(
    `SELECT d.rowid AS id, d.failures FROM delivery AS own
      CROSS JOIN subscription AS s ON s.rowid = own.subscription_id
      CROSS JOIN delivery AS d
        ON d.rowid = coalesce((SELECT w.rowid ${firstRequestedOf("s.rowid")}), (SELECT w.rowid ${headOf("s.rowid")}))
      WHERE own.rowid = ? AND s.ordered = 1`,
    id,
  );
  if (first === undefined) return whatGoesBeforeInKey(sql, id);
  if (first.id === id) return undefined;
  const why = first.failures === 0 ? "" : "has failed so far and ";
  return `its subscription is ordered, and delivery ${first.id} ${why}goes before it`;
}

function whatGoesBeforeInKey(sql: Sql, id: number): string | undefined {
  const first = sql.first<{ readonly id: number }>(
    `SELECT d.rowid AS id FROM delivery AS own CROSS JOIN delivery AS d INDEXED BY delivery_key
      WHERE own.rowid = ? AND own.state = ${DELIVERY_STATE.behind} AND d.subscription_id = own.subscription_id
        AND d.key = own.key AND d.state = ${DELIVERY_STATE.pending} AND d.state IN ${UNFINISHED_STATES}`,
    id,
  );
  return (
    first && `its subscription is ordered by key, and delivery ${first.id} of the same key goes before it`
  );
}

function conflict({ rowid, status }: DeliveryRow, change: "retried" | "skipped", why: string): EvregError {
  return new EvregError("conflict", `Delivery ${rowid} cannot be ${change}: ${why}.`, { rowid, status });
}

function findRow(sql: Sql, id: number): DeliveryRow | undefined {
  if (!isRowid(id)) return undefined;
  const text = `${SELECT_DELIVERY} FROM delivery AS d ${JOIN_NAMES} WHERE d.rowid = ?`;
  return sql.rows<DeliveryRow>(text, id)[0];
}
