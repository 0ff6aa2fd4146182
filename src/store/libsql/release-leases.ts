import { dropMiddleAttempts, isPastLimit } from "./attempt-limit.ts";
import type { Sql } from "./sql.ts";

/**
 * Makes leased deliveries due again, their attempt recorded as cut short; it does not count against the retries.
 * @param which those whose lease ended by `nowMs`, or `all` when whoever leased them is known to be gone
 */
export function releaseLeases(sql: Sql, which: "expired" | "all", nowMs: number): number {
  const ended = which === "all" ? "TRUE" : "l.until_ms <= ?1";
  const only = which === "all" ? [] : [nowMs];
  sql.run(
    `INSERT INTO attempt (delivery_id, attempt, started_ms, duration_ms, outcome, error_code)
      SELECT d.rowid, d.attempt + 1, l.claimed_ms, max(0, ?1 - l.claimed_ms), 'returned', 'interrupted'
      FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id WHERE ${ended}`,
    nowMs,
  );
  sql.run(
    `UPDATE delivery SET attempt = attempt + 1, due_ms = CASE (SELECT s.ordered FROM subscription AS s
          WHERE s.rowid = delivery.subscription_id) WHEN 1 THEN event_id ELSE ?1 END
      WHERE rowid IN (SELECT l.delivery_id FROM lease AS l WHERE ${ended})`,
    nowMs,
  );
  const attempted = sql.rows<{ id: number; attempt: number }>(
    `SELECT d.rowid AS id, d.attempt FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id
      WHERE ${ended}`,
    ...only,
  );
  const long = attempted.filter(({ attempt }) => isPastLimit(attempt)).map(({ id }) => id);
  if (long.length > 0) dropMiddleAttempts(sql, long);
  return sql.run(`DELETE FROM lease AS l WHERE ${ended}`, ...only);
}
