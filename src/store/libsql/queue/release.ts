import type { Sql } from "../thread/sql.ts";
import { dropMiddleAttempts, isPastLimit } from "./attempts.ts";
import { NORMAL } from "./delivery-state.ts";
import { keysOfDeliveries, settleKeys } from "./key-order.ts";

/**
 * Makes leased deliveries due again. Their attempt is recorded as cut short and does not count against the retries.
 * @param which those whose lease ended by `nowMs`; with `all`, as whoever sent deliveries is gone, all but those that
 * consumers have taken
 */
export function releaseLeases(sql: Sql, which: "expired" | "all", nowMs: number): number {
  const ended = which === "all" ? "(l.until_ms <= ?1 OR l.consumer IS NULL)" : "l.until_ms <= ?1";
  sql.run(
    `INSERT INTO attempt (delivery_id, attempt, started_ms, duration_ms, outcome, error_code, consumer)
      SELECT d.rowid, d.attempt + 1, l.claimed_ms, max(0, ?1 - l.claimed_ms), 'returned', 'interrupted', l.consumer
      FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id WHERE ${ended}`,
    nowMs,
  );
  sql.run(
    `UPDATE delivery SET attempt = attempt + 1, priority = ${NORMAL}, due_ms = iif(s.ordered = 1, due_ms, ?1),
        sequence = iif(s.ordered = 1 OR delivery.key IS NOT NULL, event_id, NULL)
      FROM subscription AS s
      WHERE s.rowid = subscription_id AND delivery.rowid IN (SELECT l.delivery_id FROM lease AS l WHERE ${ended})`,
    nowMs,
  );
  const attempted = sql.rows<{ id: number; attempt: number }>(
    `SELECT d.rowid AS id, d.attempt FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id
      WHERE ${ended}`,
    nowMs,
  );
  const long = attempted.filter(({ attempt }) => isPastLimit(attempt)).map(({ id }) => id);
  if (long.length > 0) dropMiddleAttempts(sql, long);
  const keys = keysOfDeliveries(
    sql,
    attempted.map(({ id }) => id),
  );
  const released = sql.run(`DELETE FROM lease AS l WHERE ${ended}`, nowMs);
  settleKeys(sql, keys, nowMs);
  return released;
}
