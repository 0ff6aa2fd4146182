import type {
  Attempt,
  Delivery,
  DeliveryCounts,
  DeliveryStatus,
  DeliveryWithAttempts,
  SubscriptionAttempt,
} from "../../../domain/delivery.ts";
import { MEASURE } from "../../../domain/stats/tally.ts";
import { answersOf } from "../../../model/field.ts";
import { ATTEMPT, TLS_REASONS } from "../../../model/delivery.ts";
import { checkRetry, checkSkip } from "../../rules/retries.ts";
import { recordServiceEvents } from "../events/service-events.ts";
import { StatsCounts } from "../history/stats.ts";
import { recordsOf, type Sql, updateRow } from "../sql.ts";
import {
  DELIVERY_STATE,
  deliveryOf,
  type DeliveryRow,
  JOIN_NAMES,
  PENDING_OF,
  SELECT_DELIVERY,
  STATUS,
} from "./delivery-state.ts";
import { type OrderKey, releaseKeys } from "./key-order.ts";
import type { Work } from "../operation.ts";

export async function findDelivery(sql: Sql, id: number): Promise<DeliveryWithAttempts | undefined> {
  const row = await findRow(sql, id);
  if (row === undefined) return undefined;
  const attempts = await sql.rows<AttemptRow>(
    `WITH chosen (id) AS (SELECT ?) SELECT ${COLUMNS} FROM (${ATTEMPTS}) AS attempts ORDER BY attempt`,
    id,
  );
  return { ...deliveryOf(row), attempts: attempts.map(attemptOf) };
}

export async function retryDelivery(sql: Sql, id: number, nowMs: number): Promise<Delivery | undefined> {
  const row = await findRow(sql, id);
  if (row === undefined) return undefined;
  checkRetry(row);
  const { subscription_id: subscription } = row;
  const firstMs = await sql.value<number | undefined>(
    `SELECT d.due_ms ${PENDING_OF} ORDER BY d.due_ms LIMIT 1`,
    subscription,
  );
  const due =
    row.key === null
      ? { state: DELIVERY_STATE.pending, due_ms: Math.min(firstMs ?? nowMs, nowMs) }
      : { state: DELIVERY_STATE.behind, due_ms: null };
  await updateRow(sql, "delivery", id, { ...due, failures: 0, finished_ms: null });
  await updateRow(sql, "subscription", subscription, { slowed_until_ms: null });
  await releaseKeys(sql, keysOf(row), nowMs);
  return deliveryOf((await findRow(sql, id))!);
}

export async function skipDelivery(work: Work, id: number, nowMs: number): Promise<Delivery | undefined> {
  const row = await findRow(work, id);
  if (row === undefined) return undefined;
  checkSkip(row);
  await updateRow(work, "delivery", id, { state: DELIVERY_STATE.failed, due_ms: null, finished_ms: nowMs });
  await releaseKeys(work, keysOf(row), nowMs);
  const action = await work.value<number>("SELECT action_id FROM event WHERE rowid = ?", row.event_id);
  const counts = new StatsCounts();
  counts.add(nowMs, [action, row.subscription_id], MEASURE.failed);
  await counts.write(work);
  await recordServiceEvents(work, { failed: [id] }, nowMs);
  work.changes.push({ failed: 1 });
  return deliveryOf((await findRow(work, id))!);
}

function keysOf({ subscription_id: subscription, key }: DeliveryRow): readonly OrderKey[] {
  return key === null ? [] : [[subscription, key]];
}

async function findRow(sql: Sql, id: number): Promise<DeliveryRow | undefined> {
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

/** The columns of `ATTEMPTS`. */
const COLUMNS =
  "attempt, started_at, duration_ms, dns_ms, connect_ms, first_byte_ms, outcome, status_code, error_code, consumer, response";

type AttemptRow = Pick<Attempt, "error_code" | "response">;

/**
 * The attempts of the deliveries of `chosen (id)`. Most are first ones that delivered, and are stored with their deliveries; see
 * `tables.ts`.
 */
export const ATTEMPTS = `
  SELECT delivery_id, attempt, started_ms AS started_at, duration_ms, dns_ms, connect_ms, first_byte_ms, outcome, status_code, error_code,
    consumer, iif(response IS NULL, NULL, hex(response)) AS response
  FROM chosen CROSS JOIN attempt ON delivery_id = chosen.id
  UNION ALL
  SELECT delivery.rowid, 1, created_ms + first_start_ms, first_duration_ms, NULL, NULL, NULL, 'delivered', first_status_code, NULL, NULL, NULL
  FROM chosen CROSS JOIN delivery ON delivery.rowid = chosen.id WHERE first_start_ms IS NOT NULL`;

// No index has attempts by subscription and time: each attempt would pay for it. So those deliveries of a subscription are looked
// at that are most likely to have been attempted last.

/** How many of each kind are looked at, and the most attempts that are asked for. */
const LIKELY = 100;

const OF_SUBSCRIPTION = "FROM delivery INDEXED BY delivery_subscription WHERE subscription_id = ?1";

/**
 * SQL of the deliveries that are most likely to have been attempted last: the newest; those before the first that is due, up to
 * which an earlier backlog has been sent; those that have failed so far, and those that failed for good.
 */
const LIKELY_DELIVERIES = [
  `SELECT rowid AS id ${OF_SUBSCRIPTION} ORDER BY rowid DESC`,
  `SELECT rowid AS id ${OF_SUBSCRIPTION} AND rowid <=
      (SELECT rowid ${PENDING_OF} ORDER BY due_ms LIMIT 1) ORDER BY rowid DESC`,
  `SELECT rowid AS id FROM delivery INDEXED BY delivery_waiting_event
    WHERE subscription_id = ?1 AND failures > 0 AND due_ms IS NOT NULL ORDER BY event_id DESC`,
  `SELECT rowid AS id FROM delivery INDEXED BY delivery_failed_event
    WHERE subscription_id = ?1 AND state = ${DELIVERY_STATE.failed} ORDER BY event_id DESC`,
]
  .map((one) => `SELECT id FROM (${one} LIMIT ${LIKELY}) AS likely`)
  .join(" UNION ");

export async function listAttempts(
  sql: Sql,
  subscription: number,
  limit: number,
): Promise<readonly SubscriptionAttempt[]> {
  const rows = await sql.rows<AttemptRow & Pick<SubscriptionAttempt, "delivery_id" | "event_id">>(
    `WITH chosen (id) AS MATERIALIZED (${LIKELY_DELIVERIES})
      SELECT delivery_id, (SELECT event_id FROM delivery WHERE rowid = delivery_id) AS event_id, ${COLUMNS}
      FROM (${ATTEMPTS} ORDER BY started_at DESC, delivery_id DESC, attempt DESC LIMIT ?2) AS attempts`,
    subscription,
    limit,
  );
  return rows.map((row) => {
    const { delivery_id, event_id } = row;
    return Object.assign({ delivery_id, event_id }, attemptOf(row));
  });
}

const recordOf = recordsOf<Attempt>(answersOf(ATTEMPT));

/**
 * Makes an attempt of its row. Why an address was refused, or TLS failed, is stored in the place of the answer, which there is
 * none of.
 */
function attemptOf(row: AttemptRow): Attempt {
  const { response: hex, error_code: error } = row;
  // A text of the engines cannot hold each character that an answer may have.
  const response = hex === null ? null : Buffer.from(hex, "hex").toString();
  const tlsReason = error === "tls_failed" && TLS_REASONS.find((reason) => reason === response);
  return recordOf({
    ...row,
    tls_reason: tlsReason || null,
    response: error === "address_refused" || error === "tls_failed" ? null : response,
    refusal: error === "address_refused" ? response : null,
  });
}
