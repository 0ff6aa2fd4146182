import type { Sql } from "./sql.ts";

/**
 * Makes leased deliveries due again, their attempt recorded as cut short; it does not count against the retries.
 * @param which those whose lease ended by `nowMs`, or `all` when whoever leased them is known to be gone
 */
export function releaseLeases(sql: Sql, which: "expired" | "all", nowMs: number): number {
  const leased = which === "all" ? "lease_until_ms IS NOT NULL" : "lease_until_ms <= ?1";
  sql.run(
    `INSERT INTO attempt (delivery_id, attempt, started_ms, duration_ms, outcome, error_code)
      SELECT rowid, attempt, claimed_ms, max(0, ?1 - claimed_ms), 'returned', 'interrupted'
      FROM delivery INDEXED BY delivery_leased WHERE ${leased}`,
    nowMs,
  );
  // Into a list first: the update changes the index it would be walking.
  return sql.run(
    `UPDATE delivery SET state = 0, due_ms = ?1, claim_id = NULL, claimed_ms = NULL, lease_until_ms = NULL
      WHERE rowid IN (SELECT rowid FROM delivery INDEXED BY delivery_leased WHERE ${leased})`,
    nowMs,
  );
}
