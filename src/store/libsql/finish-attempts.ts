import type { FinishAnswer } from "../finishes.ts";
import { isPastLimit } from "./attempt-limit.ts";
import { errorOf, type FinishCall, type ResultRow } from "./finish-call.ts";
import { type FinishChanges, writeChanges } from "./finish-writes.ts";
import { nothingTold, noteStanding, tell } from "./handler-standing.ts";
import { keepsPlace, loadPlaces, movedInOrder, type OrderedPlace } from "./publication-order.ts";
import { type Telling, tellFinished } from "./service-events.ts";
import type { Sql } from "./sql.ts";

interface Leased {
  readonly id: number;
  readonly claim_id: number;
  readonly subscription_id: number;
  /** The number of the attempt under way. */
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
): readonly Telling<FinishAnswer>[] {
  const batches = calls.map(({ results, nowMs, base = 0, disableAfterMs }) => ({
    rows: JSON.parse(results) as ResultRow[],
    nowMs,
    base,
    disableAfterMs,
    told: nothingTold(),
  }));
  const all = batches.flatMap(({ rows }) => rows);
  const open = loadLeased(sql, all);
  const elsewhere = loadMoved(sql, all, open);
  const changes: FinishChanges = {
    ended: [],
    delivered: [],
    filtered: [],
    others: [],
    failed: [],
    attempts: [],
    connected: [],
    long: [],
  };
  const places = loadPlaces(sql, all);
  const answers = batches.map(({ rows, nowMs, base, told }) => {
    const delivered: number[] = [];
    const filtered: number[] = [];
    const failedBefore = changes.failed.length;
    changes.delivered.push({ ids: delivered, nowMs });
    changes.filtered.push({ ids: filtered, nowMs });
    const applied = rows.map((row) => {
      const leased = open.get(row[0]);
      if (leased?.claim_id !== row[1]) return false;
      open.delete(leased.id);
      const { kind } = row[8];
      if (kind === "delivered") delivered.push(leased.id);
      else if (kind === "filtered") filtered.push(leased.id);
      const left = elsewhere.get(leased.id);
      const place = places.get(leased.id);
      note(changes, leased, row, { nowMs, base, left, place });
      const hasLeft = left !== undefined;
      // Waiting for a retry that is not to be would only hold up the next.
      const hasPassed =
        row[8].kind === "retry" &&
        place !== undefined &&
        !keepsPlace(place, leased.failures, { next: row[8], hasLeft });
      tell(told, leased.subscription_id, row, { hasLeft, hasPassed });
      return true;
    });
    const failed = changes.failed.length - failedBefore;
    return { applied, ended: { delivered: delivered.length, failed, filtered: filtered.length } };
  });
  writeChanges(sql, changes, bytes);
  const standing = batches.map(({ told, nowMs, disableAfterMs }) => ({
    nowMs,
    deactivated: noteStanding(sql, told, { nowMs, disableAfterMs }),
  }));
  const told = tellFinished(sql, changes.failed, standing);
  return standing.map(({ deactivated }, index) => ({
    answer: { ...answers[index]!, deactivated },
    told: index === 0 ? told : undefined,
  }));
}

/**
 * @param at `left`: the subscription has left the handler that is gone; `base`: where the call's bytes begin; `place`: in
 * the order of its subscription, if that has one
 */
function note(
  changes: FinishChanges,
  leased: Leased,
  row: ResultRow,
  at: { nowMs: number; base: number; left: Moved | undefined; place: OrderedPlace | undefined },
): void {
  const [id, , startedAtMs, durationMs, statusCode, errorCode, responseOffset, responseBytes, next, more] =
    row;
  changes.ended.push(id);
  if (next.kind === "unsent" || next.kind === "filtered") return;
  const outcome: Outcome = next.kind === "delivered" || next.kind === "returned" ? next.kind : "failed";
  if (outcome !== "delivered") {
    const { nowMs, left, place } = at;
    const [state, ...rest] =
      place === undefined
        ? moved(leased, row, nowMs, left)
        : movedInOrder(place, leased, row, { nowMs, hasLeft: left !== undefined });
    changes.others.push([id, state, ...rest]);
    if (state === 3) changes.failed.push([id, nowMs]);
  }
  const attempt = [
    id,
    leased.attempt,
    Math.round(startedAtMs),
    Math.max(0, Math.round(durationMs)),
    outcome,
    statusCode,
    errorCode ?? (outcome === "returned" ? "interrupted" : null),
    // substr counts from 1.
    responseOffset === null ? null : at.base + responseOffset + 1,
    responseBytes,
  ];
  if (isPastLimit(leased.attempt)) changes.long.push(id);
  if (more?.connection === undefined) {
    changes.attempts.push(attempt);
    return;
  }
  const { dnsMs, connectMs, firstByteMs } = more.connection;
  changes.connected.push([...attempt, rounded(dnsMs), rounded(connectMs), rounded(firstByteMs)]);
}

function rounded(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : Math.max(0, Math.round(durationMs));
}

/** state, attempt, failures, due_ms, finished_ms, last_error of one that was not delivered */
function moved(
  { attempt, failures, last_error }: Leased,
  [, , , , statusCode, errorCode, , , next]: ResultRow,
  nowMs: number,
  left: Moved | undefined,
): readonly unknown[] {
  if (next.kind === "returned") return [0, attempt, failures, nowMs, null, last_error];
  const error = errorOf(statusCode, errorCode);
  if (next.kind === "retry") return [0, attempt, failures + 1, Math.ceil(next.atMs), null, error];
  if (left !== undefined && failures < left.max_retries)
    return [0, attempt, failures + 1, nowMs, null, error];
  return [3, attempt, failures + 1, null, nowMs, error];
}

/**
 * Deliveries whose handler is gone, and whose subscription has another one by now, of which that tells nothing.
 */
function loadMoved(
  sql: Sql,
  rows: readonly ResultRow[],
  open: ReadonlyMap<number, Leased>,
): ReadonlyMap<number, Moved> {
  const gone = rows.flatMap(([id, claimId, , , , , , , next]) => {
    const leased = open.get(id);
    if (next.kind !== "gone" || leased?.claim_id !== claimId) return [];
    return [[id, leased.subscription_id, next.handler]];
  });
  if (gone.length === 0) return new Map();
  const found = sql.rows<Moved>(
    `SELECT g.value ->> 0 AS id, s.max_retries
      FROM json_each(?) AS g CROSS JOIN subscription AS s ON s.rowid = g.value ->> 1
      WHERE s.handler <> g.value ->> 2`,
    JSON.stringify(gone),
  );
  return new Map(found.map((row) => [row.id, row]));
}

function loadLeased(sql: Sql, rows: readonly ResultRow[]): Map<number, Leased> {
  const ids = new Set(rows.map(([id]) => id));
  const found = sql.rows<Leased>(
    `SELECT d.rowid AS id, l.claim_id, d.subscription_id, d.attempt + 1 AS attempt, d.failures, d.last_error
      FROM json_each(?) AS r
      CROSS JOIN lease AS l ON l.delivery_id = r.value
      CROSS JOIN delivery AS d ON d.rowid = l.delivery_id`,
    JSON.stringify([...ids]),
  );
  return new Map(found.map((row) => [row.id, row]));
}
