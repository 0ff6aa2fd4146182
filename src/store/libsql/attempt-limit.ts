import type { Sql } from "./sql.ts";

/**
 * A delivery keeps its first and its last attempts, this many of each. Retries come to 21 at most; more are sent by hand
 * or were cut short again and again, without end.
 */
export const KEPT_AT_EACH_END = 50;

/** Whether a delivery has more attempts than it keeps when it comes to this one, counting from 1. */
export function isPastLimit(attempt: number): boolean {
  return attempt > 2 * KEPT_AT_EACH_END;
}

/** Forgets attempts between the first and the last ones of these deliveries. Call it when `isPastLimit`: after each one. */
export function dropMiddleAttempts(sql: Sql, deliveryIds: readonly number[]): void {
  sql.run(
    `DELETE FROM attempt WHERE (delivery_id, attempt) IN (
        SELECT a.delivery_id, a.attempt FROM json_each(?1) AS g
        CROSS JOIN delivery AS d ON d.rowid = g.value
        CROSS JOIN attempt AS a ON a.delivery_id = d.rowid
        WHERE a.attempt > ?2 AND a.attempt <= d.attempt - ?2)`,
    JSON.stringify(deliveryIds),
    KEPT_AT_EACH_END,
  );
}
