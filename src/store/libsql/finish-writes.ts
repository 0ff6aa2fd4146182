import { dropMiddleAttempts } from "./attempt-limit.ts";
import type { Turned } from "./service-events.ts";
import type { Sql } from "./sql.ts";

/** Rowids of the deliveries of one call that came to the same end. */
interface EndedAt {
  readonly ids: number[];
  readonly nowMs: number;
}

/** What is to be written for the results of finished attempts that count. */
export interface FinishChanges {
  /** Rowids of deliveries that are not leased any more. */
  readonly ended: number[];
  readonly delivered: EndedAt[];
  readonly filtered: EndedAt[];
  readonly others: unknown[];
  /** Those of the others that failed for good. */
  readonly failed: Turned[];
  /** Those of the others that their subscriptions block for from now on. */
  readonly blocked: Turned[];
  readonly attempts: unknown[];
  /** Those that had a connection made for them. */
  readonly connected: unknown[];
  /** Rowids of deliveries that have more attempts than are kept. */
  readonly long: number[];
}

export function writeChanges(sql: Sql, changes: FinishChanges, bytes: Uint8Array): void {
  const { ended, delivered, filtered, others, attempts, connected, long } = changes;
  if (ended.length === 0) return;
  sql.run("DELETE FROM lease WHERE delivery_id IN (SELECT value FROM json_each(?))", JSON.stringify(ended));
  if (attempts.length > 0) insertAttempts(sql, attempts, bytes);
  if (connected.length > 0) insertConnected(sql, connected, bytes);
  endAll(sql, delivered, "state = 2, attempt = attempt + 1, last_error = NULL");
  endAll(sql, filtered, "state = 4");
  if (others.length > 0) moveOthers(sql, others);
  if (long.length > 0) dropMiddleAttempts(sql, long);
}

function endAll(sql: Sql, calls: readonly EndedAt[], as: string): void {
  for (const { ids, nowMs } of calls) {
    if (ids.length === 0) continue;
    sql.run(
      `UPDATE delivery SET ${as}, due_ms = NULL, finished_ms = ?2
        WHERE rowid IN (SELECT value FROM json_each(?1))`,
      JSON.stringify(ids),
      nowMs,
    );
  }
}

function moveOthers(sql: Sql, others: readonly unknown[]): void {
  sql.run(
    `UPDATE delivery SET state = r.state, attempt = r.attempt, failures = r.failures, due_ms = r.due_ms,
        finished_ms = r.finished_ms, last_error = r.last_error
      FROM (SELECT value ->> 0 AS id, value ->> 1 AS state, value ->> 2 AS attempt, value ->> 3 AS failures,
          value ->> 4 AS due_ms, value ->> 5 AS finished_ms, value ->> 6 AS last_error FROM json_each(?)) AS r
      WHERE delivery.rowid = r.id`,
    JSON.stringify(others),
  );
}

const COLUMNS = "delivery_id, attempt, started_ms, duration_ms, outcome, status_code, error_code, response";
const VALUES = `value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
  CASE WHEN value ->> 7 IS NOT NULL THEN substr(?2, value ->> 7, value ->> 8) END`;

function insertAttempts(sql: Sql, attempts: readonly unknown[], bytes: Uint8Array): void {
  sql.run(
    `INSERT INTO attempt (${COLUMNS}) SELECT ${VALUES} FROM json_each(?1)`,
    JSON.stringify(attempts),
    bytes,
  );
}

/** Apart from the others, as each value that is taken out of the JSON costs something, and most have none of these. */
function insertConnected(sql: Sql, attempts: readonly unknown[], bytes: Uint8Array): void {
  sql.run(
    `INSERT INTO attempt (${COLUMNS}, dns_ms, connect_ms, first_byte_ms)
      SELECT ${VALUES}, value ->> 9, value ->> 10, value ->> 11 FROM json_each(?1)`,
    JSON.stringify(attempts),
    bytes,
  );
}
