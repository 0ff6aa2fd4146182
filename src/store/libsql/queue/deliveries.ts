import { type Attempt, type Delivery, type DeliveryWithAttempts } from "../../../domain/delivery.ts";
import { EvregError } from "../../../domain/error.ts";
import { type WithServiceEvents, recordDeliveryEvents } from "../events/service-events.ts";
import { MOST_RESPONSE_BYTES } from "../files/row-limits.ts";
import { toIso } from "../../../runtime/clock.ts";
import { isRowid, type Sql } from "../thread/sql.ts";
import {
  DELIVERY_STATE,
  deliveryOf,
  type DeliveryRow,
  JOIN_NAMES,
  REQUESTED,
  SELECT_DELIVERY,
  statusesBefore,
} from "./delivery-state.ts";
import { clearWaits } from "./handler-health.ts";
import { firstRequestedOf, headOf, isHead } from "./order.ts";

interface AttemptRow {
  readonly attempt: number;
  readonly started_ms: number;
  readonly duration_ms: number;
  readonly outcome: Attempt["outcome"];
  readonly status_code: number | null;
  readonly error_code: Attempt["error_code"];
  /** Of `address_refused`, why. */
  readonly response: string | null;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly first_byte_ms: number | null;
}

const RETRIABLE = statusesBefore("retry requested");
const SKIPPABLE = statusesBefore("skipped");

export function findDelivery(sql: Sql, id: number): DeliveryWithAttempts | undefined {
  const row = findRow(sql, id);
  if (row === undefined) return undefined;
  const attempts = sql.rows<AttemptRow>(
    `SELECT attempt, started_ms, duration_ms, outcome, status_code, error_code,
        CAST(iif(octet_length(response) > ${MOST_RESPONSE_BYTES}, substr(response, 1, ${MOST_RESPONSE_BYTES}), response)
          AS TEXT) AS response, dns_ms, connect_ms, first_byte_ms
      FROM attempt WHERE delivery_id = ? ORDER BY attempt`,
    id,
  );
  return { ...deliveryOf(row), attempts: attempts.map(attemptOf) };
}

export function retryDelivery(sql: Sql, id: number, nowMs: number): Delivery | undefined {
  const row = findRow(sql, id);
  if (row === undefined) return undefined;
  if (row.deleted_ms !== null) {
    throw conflict(
      row,
      "retried",
      `its subscription ${row.subscription} was deleted, so it cannot be sent again`,
    );
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
  const again = findRow(sql, id);
  return again === undefined ? undefined : deliveryOf(again);
}

/**
 * Fails one for good that has failed so far, before its retries are used up or where its subscription blocks for it: what
 * waited behind it comes up.
 */
export function skipDelivery(sql: Sql, id: number, nowMs: number): WithServiceEvents<Delivery | undefined> {
  const row = findRow(sql, id);
  if (row === undefined) return { answer: undefined, serviceEvents: undefined };
  const why = whyNotSkipped(sql, row);
  if (why !== undefined) throw conflict(row, "skipped", why);
  const wasFirst = isHead(sql, id);
  sql.run(
    `UPDATE delivery SET state = ${DELIVERY_STATE.failed}, due_ms = NULL, finished_ms = ? WHERE rowid = ?`,
    nowMs,
    id,
  );
  // It was this one's retry that all of them waited for.
  if (wasFirst) clearWaits(sql, row.subscription_id);
  const serviceEvents = recordDeliveryEvents(sql, { failed: [[id, nowMs]] });
  return { answer: deliveryOf(findRow(sql, id)!), serviceEvents, failed: 1 };
}

function whyNotSkipped(sql: Sql, { id, status, last_error }: DeliveryRow): string | undefined {
  if (status === "delivering") return "an attempt of it is under way; see what becomes of that first";
  if (!SKIPPABLE.has(status)) return `it is ${status}, so nothing of it is left to be sent`;
  if (last_error !== null) return undefined;
  const before = whatGoesBefore(sql, id);
  return `no attempt of it has failed so far; ${before ?? "what has not been tried is not given up"}`;
}

function whatItWaitsFor(sql: Sql, { id, status }: DeliveryRow): string {
  if (status === "held") return "reactivate its subscription first";
  const onItsWay = "it is on its way already";
  return status === "pending" ? (whatGoesBefore(sql, id) ?? onItsWay) : onItsWay;
}

/** In the order of publication a delivery may wait behind another for long. */
function whatGoesBefore(sql: Sql, id: number): string | undefined {
  const first = sql.first<{ readonly id: number; readonly failures: number }>(
    `SELECT d.rowid AS id, d.failures FROM delivery AS own
      CROSS JOIN subscription AS s ON s.rowid = own.subscription_id
      CROSS JOIN delivery AS d
        ON d.rowid = coalesce((SELECT w.rowid ${firstRequestedOf("s.rowid")}), (SELECT w.rowid ${headOf("s.rowid")}))
      WHERE own.rowid = ? AND s.ordered = 1`,
    id,
  );
  if (first === undefined || first.id === id) return undefined;
  const why = first.failures === 0 ? "" : "has failed so far and ";
  return `its subscription is ordered, and delivery ${first.id} ${why}goes before it`;
}

function conflict(row: DeliveryRow, change: "retried" | "skipped", why: string): EvregError {
  return new EvregError("conflict", `Delivery ${row.id} cannot be ${change}: ${why}.`, {
    rowid: row.id,
    status: row.status,
  });
}

function findRow(sql: Sql, id: number): DeliveryRow | undefined {
  if (!isRowid(id)) return undefined;
  const text = `${SELECT_DELIVERY} FROM delivery AS d ${JOIN_NAMES} WHERE d.rowid = ?`;
  return sql.rows<DeliveryRow>(text, id)[0];
}

function attemptOf(row: AttemptRow): Attempt {
  const isRefused = row.error_code === "address_refused";
  return {
    attempt: row.attempt,
    started_at: toIso(row.started_ms),
    duration_ms: row.duration_ms,
    dns_ms: row.dns_ms,
    connect_ms: row.connect_ms,
    first_byte_ms: row.first_byte_ms,
    outcome: row.outcome,
    status_code: row.status_code,
    error_code: row.error_code,
    response: isRefused ? null : row.response,
    refusal: isRefused ? row.response : null,
  };
}
