import type { AttemptErrorCode } from "../../domain/delivery.ts";
import type { NextStep } from "../store.ts";
import type { Span } from "./bytes-out.ts";
import type { MergedCall } from "./messages.ts";
import type { Sql } from "./sql.ts";

/** A result as it crosses the thread; the answer's text lies in the flight's bytes, so whatever it holds is kept. */
export interface WireResult {
  readonly deliveryId: number;
  readonly claimId: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly errorCode: AttemptErrorCode | null;
  readonly response: Span | null;
  readonly next: NextStep;
}

export interface FinishCall extends MergedCall {
  readonly results: readonly WireResult[];
}

interface Leased {
  readonly id: number;
  readonly subscription_id: number;
  readonly claim_id: number | null;
  readonly attempt: number;
  readonly failures: number;
  readonly last_error: string | null;
}

interface Moved {
  readonly id: number;
  readonly max_retries: number;
}

type Outcome = "delivered" | "failed" | "returned";

/**
 * Records the attempts of many calls and moves their deliveries on, set-wise. A result counts while its claim is still
 * the delivery's, and once. That a subscription was paused or deleted meanwhile needs no care here: what is due again
 * is then held or cancelled by that.
 */
export function finishAttempts(
  sql: Sql,
  calls: readonly FinishCall[],
  bytes: Uint8Array,
): readonly (readonly boolean[])[] {
  const open = loadLeased(sql, calls);
  const elsewhere = loadMoved(sql, calls, open);
  const deliveries: unknown[] = [];
  const attempts: unknown[] = [];
  const gone: [subscriptionId: number, reason: string][] = [];
  const applied = calls.map(({ results, nowMs, base = 0 }) =>
    results.map((result) => {
      const row = open.get(result.deliveryId);
      if (row?.claim_id !== result.claimId) return false;
      open.delete(row.id);
      const outcome = outcomeOf(result.next);
      const left = elsewhere.get(row.id);
      deliveries.push([row.id, ...moved(row, result, outcome, nowMs, left)]);
      attempts.push([
        row.id,
        row.attempt,
        Math.round(result.startedAtMs),
        Math.max(0, Math.round(result.durationMs)),
        outcome,
        result.statusCode,
        result.errorCode ?? (outcome === "returned" ? "interrupted" : null),
        // substr counts from 1.
        ...(result.response === null ? [null, null] : [base + result.response[0] + 1, result.response[1]]),
      ]);
      const { next } = result;
      if (next.kind === "gone" && left === undefined) gone.push([row.subscription_id, next.reason]);
      return true;
    }),
  );
  moveDeliveries(sql, deliveries);
  insertAttempts(sql, attempts, bytes);
  for (const [id, reason] of gone) {
    sql.run(
      "UPDATE subscription SET active = 0, disabled_reason = ? WHERE rowid = ? AND active = 1 AND deleted_ms IS NULL",
      reason,
      id,
    );
  }
  return applied;
}

function outcomeOf(next: NextStep): Outcome {
  if (next.kind === "delivered" || next.kind === "returned") return next.kind;
  return "failed";
}

/** state, failures, due_ms, finished_ms, last_error */
function moved(
  row: Leased,
  result: WireResult,
  outcome: Outcome,
  nowMs: number,
  left: Moved | undefined,
): readonly unknown[] {
  const { next, statusCode, errorCode } = result;
  if (outcome === "delivered") return [2, row.failures, null, nowMs, null];
  if (outcome === "returned") return [0, row.failures, nowMs, null, row.last_error];
  const error = statusCode === null ? (errorCode ?? "network_error") : (errorCode ?? `HTTP ${statusCode}`);
  if (next.kind === "retry") return [0, row.failures + 1, Math.ceil(next.atMs), null, error];
  if (left !== undefined && row.failures < left.max_retries) return [0, row.failures + 1, nowMs, null, error];
  return [3, row.failures + 1, null, nowMs, error];
}

/**
 * Deliveries whose handler is gone, and whose subscription has another one by now, of which that tells nothing.
 */
function loadMoved(
  sql: Sql,
  calls: readonly FinishCall[],
  open: ReadonlyMap<number, Leased>,
): ReadonlyMap<number, Moved> {
  const gone = calls.flatMap(({ results }) =>
    results.flatMap(({ deliveryId, claimId, next }) => {
      const row = open.get(deliveryId);
      if (next.kind !== "gone" || row?.claim_id !== claimId) return [];
      return [[row.id, row.subscription_id, next.handler]];
    }),
  );
  if (gone.length === 0) return new Map();
  const rows = sql.rows<Moved>(
    `SELECT g.value ->> 0 AS id, s.max_retries
      FROM json_each(?) AS g CROSS JOIN subscription AS s ON s.rowid = g.value ->> 1
      WHERE s.handler <> g.value ->> 2`,
    JSON.stringify(gone),
  );
  return new Map(rows.map((row) => [row.id, row]));
}

function loadLeased(sql: Sql, calls: readonly FinishCall[]): Map<number, Leased> {
  const ids = new Set(calls.flatMap(({ results }) => results.map((result) => result.deliveryId)));
  const rows = sql.rows<Leased>(
    `SELECT d.rowid AS id, d.subscription_id, d.claim_id, d.attempt, d.failures, d.last_error
      FROM json_each(?) AS r CROSS JOIN delivery AS d ON d.rowid = r.value`,
    JSON.stringify([...ids]),
  );
  return new Map(rows.map((row) => [row.id, row]));
}

function moveDeliveries(sql: Sql, deliveries: readonly unknown[]): void {
  if (deliveries.length === 0) return;
  sql.run(
    `UPDATE delivery SET state = r.state, failures = r.failures, due_ms = r.due_ms, finished_ms = r.finished_ms,
        last_error = r.last_error, claim_id = NULL, claimed_ms = NULL, lease_until_ms = NULL
      FROM (SELECT value ->> 0 AS id, value ->> 1 AS state, value ->> 2 AS failures, value ->> 3 AS due_ms,
          value ->> 4 AS finished_ms, value ->> 5 AS last_error FROM json_each(?)) AS r
      WHERE delivery.rowid = r.id`,
    JSON.stringify(deliveries),
  );
}

function insertAttempts(sql: Sql, attempts: readonly unknown[], bytes: Uint8Array): void {
  if (attempts.length === 0) return;
  sql.run(
    `INSERT INTO attempt (delivery_id, attempt, started_ms, duration_ms, outcome, status_code, error_code, response)
      SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
        CASE WHEN value ->> 7 IS NOT NULL THEN substr(?2, value ->> 7, value ->> 8) END
      FROM json_each(?1)`,
    JSON.stringify(attempts),
    bytes,
  );
}
