import type { ServiceEventName } from "../../../domain/service-events.ts";
import { type Telling, TellingLimit, tellTurns, type Turned } from "../events/service-events.ts";
import type { Sql } from "../thread/sql.ts";
import { DELIVERY_STATE, dropMiddleAttempts, isPastLimit, NORMAL } from "./delivery-state.ts";
import {
  beginsToBlock,
  keepsPlace,
  loadPlaces,
  noteStanding,
  nothingTold,
  type OrderedPlace,
  tell,
} from "./subscription-state.ts";
import { DEFERRED, errorOf, FENCED, type Finished, type FinishedRow, type ResultRow } from "./wire.ts";

/**
 * Records attempts and moves their deliveries on, set-wise. A result counts while its claim is still the delivery's, and
 * once. That a subscription was paused or deleted meanwhile needs no care here: what is due again is then held or
 * cancelled by that.
 */
export function finishAttempts(
  sql: Sql,
  results: readonly FinishedRow[],
  bytes: Uint8Array,
): readonly Telling<Finished>[] {
  const rows = results.map(({ row }) => row);
  // Those that come together are some milliseconds apart.
  const nowMs = results.reduce((latest, result) => Math.max(latest, result.nowMs), -Infinity);
  const open = loadLeased(sql, rows);
  const elsewhere = loadMoved(sql, rows, open);
  const places = loadPlaces(sql, rows);
  const changes: FinishChanges = {
    ended: [],
    delivered: [],
    filtered: [],
    others: [],
    failed: [],
    blocked: [],
    attempts: [],
    connected: [],
    long: [],
  };
  const told = nothingTold();
  const limit = new TellingLimit(sql);
  /** The last result of each subscription. */
  const lastOf = new Map<number, number>();
  const states = results.map(({ row, offset }, index) => {
    const leased = open.get(row[0]);
    if (leased?.claim_id !== row[1]) return FENCED;
    const left = elsewhere.get(leased.id);
    const move = moveOf(leased, row, { nowMs, left, place: places.get(leased.id) });
    const hasLeft = left !== undefined;
    if (move !== undefined && !limit.admits(namesTold(row, move, hasLeft))) return DEFERRED;
    open.delete(leased.id);
    note(changes, leased, row, { nowMs, offset, move });
    tell(told, leased.subscription_id, row, { hasLeft, isKept: move?.isKept === true });
    lastOf.set(leased.subscription_id, index);
    const { kind } = row[7];
    return kind === "delivered" || kind === "filtered"
      ? DELIVERY_STATE[kind]
      : (move?.state ?? DELIVERY_STATE.pending);
  });
  writeChanges(sql, changes, nowMs, bytes);
  const { disableAfterMs } = results[0] ?? {};
  const deactivated = noteStanding(sql, told, { nowMs, disableAfterMs, limit: new TellingLimit(sql) });
  const { failed, blocked } = changes;
  const counts = tellTurns(sql, { failed, blocked, standing: [{ nowMs, deactivated }] });
  const byIndex = new Map(deactivated.map((one) => [lastOf.get(one.subscriptionId), one]));
  return states.map((state, index) => {
    const own = byIndex.get(index);
    const answer = own === undefined ? { state } : { state, deactivated: own };
    return { answer, told: index === 0 ? counts : undefined };
  });
}

/** The service events that applying it would make, as far as that is known before. */
function namesTold({ 7: next }: ResultRow, move: Move, hasLeft: boolean): readonly ServiceEventName[] {
  const names: ServiceEventName[] = [];
  if (move.state === DELIVERY_STATE.failed) names.push("evreg.delivery.failed");
  if (move.beginsToBlock) names.push("evreg.subscription.blocked");
  if (next.kind === "gone" && !hasLeft) names.push("evreg.subscription.deactivated");
  return names;
}

/**
 * Deliveries whose handler is gone, and whose subscription has another one by now, of which that tells nothing.
 */
function loadMoved(
  sql: Sql,
  rows: readonly ResultRow[],
  open: ReadonlyMap<number, Leased>,
): ReadonlyMap<number, Moved> {
  const gone = rows.flatMap(([id, claimId, , , , , , next]) => {
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

/** A delivery that is leased. */
interface Leased {
  readonly id: number;
  readonly claim_id: number;
  readonly subscription_id: number;
  /** The number of the attempt under way. */
  readonly attempt: number;
  readonly failures: number;
  readonly last_error: string | null;
}

/** One whose subscription has left the handler that is gone. */
interface Moved {
  readonly id: number;
  readonly max_retries: number;
}

/** Where a delivery goes that was not delivered. */
interface Move {
  readonly state: (typeof DELIVERY_STATE)["pending" | "failed"];
  readonly failures: number;
  readonly dueMs: number | null;
  /** In the order of its subscription. */
  readonly sequence: number | null;
  readonly lastError: string | null;
  /** In the order of its subscription, which waits for its retry. */
  readonly isKept: boolean;
  /** Its subscription blocks for it from now on. */
  readonly beginsToBlock: boolean;
}

interface At {
  readonly nowMs: number;
  readonly left: Moved | undefined;
  /** In the order of its subscription, if that has one. */
  readonly place: OrderedPlace | undefined;
}

type Outcome = "delivered" | "failed" | "returned";

/** `undefined` for one that was delivered, filtered or never begun. */
function moveOf(leased: Leased, row: ResultRow, at: At): Move | undefined {
  const { kind } = row[7];
  if (kind === "delivered" || kind === "filtered" || kind === "unsent") return undefined;
  if (at.place !== undefined) return movedInOrder(leased, row, { ...at, place: at.place });
  return { ...moved(leased, row, at), sequence: null, isKept: false, beginsToBlock: false };
}

function moved(
  { failures, last_error }: Leased,
  [, , , , statusCode, errorCode, , next]: ResultRow,
  { nowMs, left }: At,
): Omit<Move, "sequence" | "isKept" | "beginsToBlock"> {
  if (next.kind === "returned")
    return { state: DELIVERY_STATE.pending, failures, dueMs: nowMs, lastError: last_error };
  const failed = { failures: failures + 1, lastError: errorOf(statusCode, errorCode) };
  if (next.kind === "retry") return { ...failed, state: DELIVERY_STATE.pending, dueMs: Math.ceil(next.atMs) };
  const isTriedOn = left !== undefined && failures < left.max_retries;
  return isTriedOn
    ? { ...failed, state: DELIVERY_STATE.pending, dueMs: nowMs }
    : { ...failed, state: DELIVERY_STATE.failed, dueMs: null };
}

function movedInOrder(
  { failures, last_error }: Leased,
  [, , , , statusCode, errorCode, , next]: ResultRow,
  { left, place }: At & { readonly place: OrderedPlace },
): Move {
  const waiting = { state: DELIVERY_STATE.pending, dueMs: place.due_ms, sequence: place.event_id } as const;
  if (next.kind === "returned") {
    return { ...waiting, failures, lastError: last_error, isKept: false, beginsToBlock: false };
  }
  const isKept = keepsPlace(place, failures, { next, hasLeft: left !== undefined });
  const failed = { failures: failures + 1, lastError: errorOf(statusCode, errorCode), isKept };
  return isKept
    ? { ...waiting, ...failed, beginsToBlock: beginsToBlock(place, failures) }
    : { ...failed, state: DELIVERY_STATE.failed, dueMs: null, sequence: null, beginsToBlock: false };
}

/** @param at `offset`: where its text lies; `move`: as `moveOf` has it */
function note(
  changes: FinishChanges,
  leased: Leased,
  row: ResultRow,
  { nowMs, offset, move }: { nowMs: number; offset: number; move: Move | undefined },
): void {
  const [id, , startedAtMs, durationMs, statusCode, errorCode, textBytes, next, more] = row;
  changes.ended.push(id);
  if (next.kind === "filtered") changes.filtered.push(id);
  if (next.kind === "unsent" || next.kind === "filtered") return;
  if (next.kind === "delivered") changes.delivered.push(id);
  const outcome: Outcome = next.kind === "delivered" || next.kind === "returned" ? next.kind : "failed";
  if (move !== undefined) {
    const { state, failures, dueMs, sequence, lastError } = move;
    const finishedMs = state === DELIVERY_STATE.failed ? nowMs : null;
    changes.others.push([id, state, leased.attempt, failures, dueMs, sequence, finishedMs, lastError]);
    if (state === DELIVERY_STATE.failed) changes.failed.push([id, nowMs]);
    if (move.beginsToBlock) changes.blocked.push([id, nowMs]);
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
    textBytes === null ? null : offset + 1,
    textBytes ?? 0,
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

/** What is to be written for the results of finished attempts that count. */
interface FinishChanges {
  /** Rowids of deliveries that are not leased any more. */
  readonly ended: number[];
  readonly delivered: number[];
  readonly filtered: number[];
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

function writeChanges(sql: Sql, changes: FinishChanges, nowMs: number, bytes: Uint8Array): void {
  const { ended, delivered, filtered, others, attempts, connected, long } = changes;
  if (ended.length === 0) return;
  sql.run("DELETE FROM lease WHERE delivery_id IN (SELECT value FROM json_each(?))", JSON.stringify(ended));
  if (attempts.length > 0) insertAttempts(sql, attempts, bytes);
  if (connected.length > 0) insertConnected(sql, connected, bytes);
  endAll(
    sql,
    delivered,
    nowMs,
    `state = ${DELIVERY_STATE.delivered}, attempt = attempt + 1, last_error = NULL`,
  );
  endAll(sql, filtered, nowMs, `state = ${DELIVERY_STATE.filtered}`);
  if (others.length > 0) moveOthers(sql, others);
  if (long.length > 0) dropMiddleAttempts(sql, long);
}

function endAll(sql: Sql, ids: readonly number[], nowMs: number, as: string): void {
  if (ids.length === 0) return;
  sql.run(
    `UPDATE delivery SET ${as}, due_ms = NULL, finished_ms = ?2
      WHERE rowid IN (SELECT value FROM json_each(?1))`,
    JSON.stringify(ids),
    nowMs,
  );
}

function moveOthers(sql: Sql, others: readonly unknown[]): void {
  sql.run(
    `UPDATE delivery SET state = r.state, attempt = r.attempt, failures = r.failures, priority = ${NORMAL},
        due_ms = r.due_ms, sequence = r.sequence, finished_ms = r.finished_ms, last_error = r.last_error
      FROM (SELECT value ->> 0 AS id, value ->> 1 AS state, value ->> 2 AS attempt, value ->> 3 AS failures,
          value ->> 4 AS due_ms, value ->> 5 AS sequence, value ->> 6 AS finished_ms, value ->> 7 AS last_error
        FROM json_each(?)) AS r
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
