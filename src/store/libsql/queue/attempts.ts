import { type Attempt, TLS_REASONS } from "../../../domain/delivery.ts";
import { MAX_RESPONSE_BYTES } from "../files/schema.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { StoredRecord } from "../stored-record.ts";
import type { Sql } from "../thread/sql.ts";

/** All attempts. Most are first ones that delivered, and are stored with their deliveries; see files/schema.ts. */
export const ATTEMPTS = `(
  SELECT delivery_id, attempt, started_ms, duration_ms, dns_ms, connect_ms, first_byte_ms, outcome, status_code, error_code, response, consumer
    FROM attempt
  UNION ALL
  SELECT rowid, 1, created_ms + first_start_ms, first_duration_ms, NULL, NULL, NULL, 'delivered', first_status_code, NULL, NULL, NULL
    FROM delivery WHERE first_start_ms IS NOT NULL)`;

export type AttemptRow = StoredRecord<Omit<Attempt, "refusal" | "tls_reason">, "started_at">;

/** Follows `SELECT`, of `ATTEMPTS`. */
export const ATTEMPT_COLUMNS = `attempt, started_ms AS started_at, duration_ms, dns_ms, connect_ms, first_byte_ms, outcome, status_code,
        error_code, consumer, CAST(iif(octet_length(response) > ${MAX_RESPONSE_BYTES}, substr(response, 1, ${MAX_RESPONSE_BYTES}),
          response) AS TEXT) AS response`;

/** Why an address was refused, or TLS failed, is stored in the place of the answer, which there is none of. */
export function attemptOf({ response, ...row }: AttemptRow): Attempt {
  const isRefused = row.error_code === "address_refused";
  const hasNoTls = row.error_code === "tls_failed";
  return {
    ...row,
    started_at: toIso(row.started_at),
    tls_reason: hasNoTls ? (TLS_REASONS.find((reason) => reason === response) ?? null) : null,
    response: isRefused || hasNoTls ? null : response,
    refusal: isRefused ? response : null,
  };
}

/**
 * So many of a delivery's first and last attempts are stored. There are at most 21 retries, but no limit to retries by hand
 * and to attempts that were cut short.
 */
export const STORED_AT_EACH_END = 50;

/** Whether a delivery with this attempt, counted from 1, has more than are stored. */
export function isPastLimit(attempt: number): boolean {
  return attempt > 2 * STORED_AT_EACH_END;
}

/** Deletes what is between the first and the last attempts of these deliveries; call it after each that `isPastLimit`. */
export function dropMiddleAttempts(sql: Sql, deliveryIds: readonly number[]): void {
  sql.run(
    `DELETE FROM attempt WHERE (delivery_id, attempt) IN (
        SELECT a.delivery_id, a.attempt FROM json_each(?1) AS g
        CROSS JOIN delivery AS d ON d.rowid = g.value
        CROSS JOIN attempt AS a ON a.delivery_id = d.rowid
        WHERE a.attempt > ?2 AND a.attempt <= d.attempt - ?2)`,
    JSON.stringify(deliveryIds),
    STORED_AT_EACH_END,
  );
}
