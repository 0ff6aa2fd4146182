import type { SubscriptionAttempt } from "../../../domain/delivery.ts";
import type { Sql } from "../thread/sql.ts";
import { ATTEMPT_COLUMNS, type AttemptRow, attemptOf, ATTEMPTS } from "./attempts.ts";
import { DELIVERY_STATE, NORMAL } from "./delivery-state.ts";

// No index has attempts by subscription and time: each attempt would pay for it. So the deliveries are looked at that are most
// likely to have been attempted last.

/** How many of each kind are looked at. */
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
}

/** The last attempts of a subscription that have ended, newest first by their start. Of a long backlog some may be left out. */
export function listAttempts(sql: Sql, subscription: number, limit: number): readonly SubscriptionAttempt[] {
  const newest = sql.rows<StartedAttempt>(
    `WITH likely (id) AS MATERIALIZED (${LIKELY_DELIVERIES})
      SELECT a.delivery_id AS id, a.attempt, a.started_ms FROM likely CROSS JOIN attempt AS a ON a.delivery_id = likely.id
      UNION ALL
      SELECT d.rowid, 1, d.created_ms + d.first_start_ms
        FROM likely CROSS JOIN delivery AS d ON d.rowid = likely.id WHERE d.first_start_ms IS NOT NULL
      ORDER BY 3 DESC, 1 DESC, 2 DESC LIMIT ?2`,
    subscription,
    limit,
  );
  return newest.flatMap(({ id, attempt }) => loadAttempt(sql, id, attempt) ?? []);
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
