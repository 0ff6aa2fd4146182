import { LRUCache } from "lru-cache";
import { ATTEMPT_LIMITS, type SubscriptionAttempt } from "../../../domain/delivery.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import type { Sql } from "../thread/sql.ts";
import { ATTEMPT_COLUMNS, type AttemptRow, attemptOf, ATTEMPTS } from "./attempts.ts";
import { DELIVERY_STATE, NORMAL } from "./delivery-state.ts";

// No index has attempts by subscription and time: each attempt would pay for it. Those that end while the file is open are
// remembered here by their numbers, and read when somebody asks. For what was before, the deliveries are looked at that are
// most likely to have been attempted last.

const MAX_SUBSCRIPTIONS = 1_000;
const KEPT = ATTEMPT_LIMITS.listMax;

/** The deliveries whose attempts ended last, by their subscriptions. What was rolled back may be among them. */
class LastAttempted {
  readonly #of = new LRUCache<number, number[]>({ max: MAX_SUBSCRIPTIONS });

  note(subscriptionId: number, deliveryId: number): void {
    const ids = this.#of.get(subscriptionId);
    if (ids === undefined) this.#of.set(subscriptionId, [deliveryId]);
    else if (ids.push(deliveryId) >= 2 * KEPT) ids.splice(0, KEPT);
  }

  /** Oldest first; one with several attempts is there several times. */
  of(subscriptionId: number): readonly number[] {
    return this.#of.get(subscriptionId) ?? [];
  }
}

const OF_CONNECTIONS = new WeakMap<Sql, LastAttempted>();

/** @param sql of the connection that stores the attempts */
export function lastAttempted(sql: Sql): LastAttempted {
  let lastOnes = OF_CONNECTIONS.get(sql);
  if (lastOnes === undefined) OF_CONNECTIONS.set(sql, (lastOnes = new LastAttempted()));
  return lastOnes;
}

/** Of each kind of delivery that may have been attempted last. */
const LIKELY = 200;

const OF_SUBSCRIPTION = "FROM delivery INDEXED BY delivery_subscription WHERE subscription_id = ?1";
const DUE = `FROM delivery INDEXED BY delivery_due WHERE subscription_id = ?1 AND due_ms IS NOT NULL`;

/**
 * The newest; those before the first that is due, up to which an earlier backlog has been sent; the first ones due, and the
 * last, which wait for a retry; those that failed for good.
 */
const LIKELY_DELIVERIES = [
  `SELECT rowid AS id ${OF_SUBSCRIPTION} ORDER BY rowid DESC`,
  `SELECT rowid AS id ${OF_SUBSCRIPTION} AND rowid <=
      (SELECT rowid ${DUE} AND priority = ${NORMAL} ORDER BY priority, due_ms LIMIT 1) ORDER BY rowid DESC`,
  `SELECT rowid AS id ${DUE} ORDER BY priority, due_ms`,
  `SELECT rowid AS id ${DUE} AND priority = ${NORMAL} ORDER BY priority DESC, due_ms DESC`,
  `SELECT rowid AS id FROM delivery INDEXED BY delivery_failed_event
    WHERE subscription_id = ?1 AND state = ${DELIVERY_STATE.failed} ORDER BY event_id DESC`,
]
  .map((one) => `SELECT id FROM (${one} LIMIT ${LIKELY})`)
  .join(" UNION ");

/** An attempt by its delivery and number. */
interface StartedAttempt {
  readonly id: number;
  readonly attempt: number;
  readonly started_ms: number;
}

const SLICE = 200;

/**
 * The last attempts of a subscription that have ended, newest first by their start. Those since the file was opened are
 * exact; of a subscription with a long backlog some from before may be left out.
 */
export function* listAttempts(
  sql: Sql,
  subscription: number,
  limit: number,
): Steps<readonly SubscriptionAttempt[]> {
  const lastOnes = lastAttempted(sql).of(subscription);
  const ids = new Set(lastOnes);
  if (lastOnes.length < limit) {
    for (const { id } of sql.rows<{ id: number }>(LIKELY_DELIVERIES, subscription)) ids.add(id);
    yield;
  }
  let newest: readonly StartedAttempt[] = [];
  const all = [...ids];
  for (let at = 0; at < all.length; at += SLICE) {
    const started = sql.rows<StartedAttempt>(
      `SELECT a.delivery_id AS id, a.attempt, a.started_ms
        FROM json_each(?1) AS c CROSS JOIN attempt AS a ON a.delivery_id = c.value
      UNION ALL
      SELECT d.rowid, 1, d.created_ms + d.first_start_ms
        FROM json_each(?1) AS c CROSS JOIN delivery AS d ON d.rowid = c.value WHERE d.first_start_ms IS NOT NULL`,
      JSON.stringify(all.slice(at, at + SLICE)),
    );
    newest = [...newest, ...started].toSorted(newestFirst).slice(0, limit);
    yield;
  }
  return newest.flatMap(({ id, attempt }) => loadAttempt(sql, id, attempt) ?? []);
}

function newestFirst(one: StartedAttempt, other: StartedAttempt): number {
  return other.started_ms - one.started_ms || other.id - one.id || other.attempt - one.attempt;
}

type Row = AttemptRow & Pick<SubscriptionAttempt, "delivery_id" | "event_id">;

function loadAttempt(sql: Sql, id: number, attempt: number): SubscriptionAttempt | undefined {
  const [row] = sql.rows<Row>(
    `SELECT delivery_id, (SELECT event_id FROM delivery WHERE rowid = ?1) AS event_id, ${ATTEMPT_COLUMNS}
      FROM ${ATTEMPTS} WHERE delivery_id = ?1 AND attempt = ?2`,
    id,
    attempt,
  );
  if (row === undefined) return undefined;
  const { delivery_id, event_id, ...rest } = row;
  return { delivery_id, event_id, ...attemptOf(rest) };
}
