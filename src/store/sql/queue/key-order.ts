import { orderKeysOf, WHOLE_KEY, WHOLE_ORDER } from "../../../domain/order-key.ts";
import { pointerSteps } from "../../../json/field-path.ts";
import { receiversOf } from "../catalog/matching.ts";
import { loadPayloads, PAYLOAD_COLUMNS, type PayloadRequest } from "../events/payloads.ts";
import type { Sql } from "../sql.ts";
import { DELIVERY_STATE, LEASE_OF, settingOf, UNFINISHED_STATES } from "./delivery-state.ts";

// Each unfinished delivery of an ordered subscription has the key of its event, and one of each key is pending: to claims it is
// like any other. Those behind it are of the state `behind`, and not due. What ends that one, or puts another before it, releases
// the key: a look-up or two in an index, however many are behind. Where a subscription has one order, all have one key.
//
// A subscription's order counts for what is made while it is in force: where it changes, what is unfinished keeps the key that it
// has, or none.

export type OrderKey = readonly [subscriptionId: number, key: number];

const { pending: PENDING, behind: BEHIND } = DELIVERY_STATE;

/** SQL that is true of the unfinished deliveries of the key `p`. */
function ofKey(delivery: string): string {
  return `${delivery}.subscription_id = p.subscription AND ${delivery}.key = p.key AND ${delivery}.state IN ${UNFINISHED_STATES}`;
}

const FROM_KEYS = (delivery: string): string => `FROM delivery AS ${delivery} INDEXED BY delivery_key`;

/**
 * Makes the delivery of the first event of each key due, and none of a key while one of it is leased. It counts as due since it was
 * made: so long it has waited.
 * @returns how many are due now that were not
 */
export async function releaseKeys(sql: Sql, keys: readonly OrderKey[], nowMs: number): Promise<number> {
  if (keys.length === 0) return 0;
  // One of a key is pending. If it is not leased yet, it goes behind what comes before it.
  await sql.run(
    `UPDATE delivery SET state = ${BEHIND}, due_ms = NULL WHERE rowid IN (
        SELECT r.rowid FROM list(?: subscription bigint, key bigint) AS p CROSS JOIN delivery AS r INDEXED BY delivery_key
        WHERE ${ofKey("r")} AND r.state = ${PENDING} AND NOT ${LEASE_OF("r")} AND r.event_id >
          (SELECT o.event_id ${FROM_KEYS("o")} WHERE ${ofKey("o")} AND o.state = ${BEHIND} ORDER BY o.event_id LIMIT 1))`,
    keys,
  );
  return await sql.run(
    `UPDATE delivery SET state = ${PENDING}, due_ms = min(created_ms, ?2) WHERE rowid IN (
        SELECT (SELECT w.rowid ${FROM_KEYS("w")} WHERE ${ofKey("w")} AND w.state = ${BEHIND}
          ORDER BY w.event_id LIMIT 1)
        FROM list(?1: subscription bigint, key bigint) AS p
        WHERE NOT EXISTS (SELECT 1 ${FROM_KEYS("r")} WHERE ${ofKey("r")} AND r.state = ${PENDING}))`,
    keys,
    nowMs,
  );
}

/** The active subscriptions of an action that are ordered, with the steps of their pointers. */
export type KeyedReceivers = readonly (readonly [subscriptionId: number, steps: readonly string[]])[];

export async function keyedReceivers(sql: Sql, actionId: number): Promise<KeyedReceivers> {
  return (
    await sql.rows<{ id: number; pointer: string }>(
      `SELECT s.rowid AS id, s.order_key AS pointer FROM ${receiversOf("?")} AND s.order_key IS NOT NULL`,
      actionId,
    )
  ).map(({ id, pointer }) => [id, pointerSteps(pointer)]);
}

/** The key of an event that is being recorded, in a subscription. */
export type EventKey = readonly [eventId: number, subscriptionId: number, key: number];

export function keysOfEvent(
  eventId: number,
  payload: Uint8Array,
  receivers: KeyedReceivers,
): readonly EventKey[] {
  const keys = orderKeysOf(
    payload,
    receivers.map(([, steps]) => steps),
  );
  return receivers.map(([id], index) => [eventId, id, keys[index]!]);
}

/**
 * SQL of what a delivery to the subscription `s` is as it is recorded: in an order, until `placeRecorded`, behind all others.
 * Where all have one key, it has it already, as to give it one takes longer than to make it.
 */
export const STATE_WHEN_RECORDED = `iif(s.order_key IS NULL, ${PENDING}, ${BEHIND})`;
export const KEY_WHEN_RECORDED = `iif(s.order_key = '${WHOLE_ORDER}', ${WHOLE_KEY}, NULL)`;

/** Gives deliveries that were just made their keys; the first of each is due. */
export async function placeRecorded(sql: Sql, keys: readonly EventKey[], nowMs: number): Promise<void> {
  if (keys.length === 0) return;
  // The rowids are read apart. In one statement with the update, the engine would read all deliveries there are.
  const rows = await sql.rows<{ readonly id: number; readonly key: number }>(
    `SELECT d.rowid AS id, g.key FROM list(?: event bigint, subscription bigint, key bigint) AS g
      CROSS JOIN delivery AS d INDEXED BY delivery_event
        ON d.event_id = g.event AND d.subscription_id = g.subscription`,
    keys.filter(([, , key]) => key !== WHOLE_KEY),
  );
  await place(
    sql,
    rows.map(({ id, key }) => [id, key]),
    keys.map(([, subscription, key]) => [subscription, key]),
    nowMs,
  );
}

/** Gives deliveries keys. They are behind others of these, but the first of each, which is due. */
async function place(
  sql: Sql,
  deliveries: readonly (readonly [id: number, key: number])[],
  keys: readonly OrderKey[],
  nowMs: number,
): Promise<void> {
  await sql.run(
    `UPDATE delivery SET key = r.key, state = ${BEHIND}, due_ms = NULL
      FROM list(?: id bigint, key bigint) AS r WHERE delivery.rowid = r.id`,
    deliveries,
  );
  const distinct = new Map(keys.map((one) => [one.join(), one]));
  await releaseKeys(sql, [...distinct.values()], nowMs);
}

interface Placed extends PayloadRequest {
  readonly id: number;
}

/** Gives unfinished deliveries of a subscription that is ordered, none of them leased, the keys of their events. */
export async function placeByKey(
  sql: Sql,
  subscriptionId: number,
  deliveryIds: readonly number[],
  nowMs: number,
): Promise<void> {
  const pointer = await sql.value<string | null>(
    "SELECT order_key FROM subscription WHERE rowid = ?",
    subscriptionId,
  );
  if (pointer === null) return;
  const placed = await sql.rows<Placed>(
    `SELECT d.rowid AS id, d.event_id AS eventId, ${PAYLOAD_COLUMNS} FROM list(?: id bigint) AS g
      CROSS JOIN delivery AS d ON d.rowid = g.id LEFT JOIN event AS e ON e.rowid = d.event_id`,
    deliveryIds,
  );
  const steps = pointerSteps(pointer);
  const payloads = steps.length === 0 ? undefined : await loadPayloads(sql, placed);
  const keys = placed.flatMap(({ eventId }) => orderKeysOf(payloads?.get(eventId) ?? undefined, [steps]));
  await place(
    sql,
    placed.map(({ id }, index) => [id, keys[index]!]),
    keys.map((key) => [subscriptionId, key]),
    nowMs,
  );
}

/** SQL of `f`, the pending deliveries in an order of the subscription `s` that have used up their retries. */
export const FAILING = "delivery AS f INDEXED BY delivery_waiting_event";
export const IS_EXHAUSTED = `f.subscription_id = s.rowid AND f.key IS NOT NULL AND f.due_ms IS NOT NULL
  AND f.failures > 0 AND f.failures > s.max_retries`;

/** SQL that says whether the subscription `s` waits for a person where a delivery has used up its retries. */
export const BLOCKS = `(s.order_key IS NOT NULL AND coalesce(${settingOf("on_exhausted")}, '') = 'block')`;

/** SQL of the delivery that the subscription `s` blocks for, that of the first event. */
export const BLOCKED_BY = `iif(${BLOCKS}, (SELECT f.rowid FROM ${FAILING} WHERE ${IS_EXHAUSTED} ORDER BY f.event_id LIMIT 1), NULL)`;
