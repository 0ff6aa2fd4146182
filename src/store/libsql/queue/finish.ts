import type { ServiceEventName } from "../../../domain/service-events.ts";
import {
  type WithServiceEvents,
  ServiceEventBudget,
  recordDeliveryEvents,
  type Transitioned,
} from "../events/service-events.ts";
import { columns } from "../thread/columns.ts";
import type { Sql } from "../thread/sql.ts";
import { DELIVERY_STATE, dropMiddleAttempts, isPastLimit, NORMAL } from "./delivery-state.ts";
import { applySignals, noSignals, addSignal } from "./handler-health.ts";
import { startsBlocking, staysQueued, loadOrdered, type OrderedDelivery } from "./order.ts";
import { DEFERRED, errorOf, FENCED, type Finished, type FinishedRow } from "./wire.ts";

/**
 * Records attempts and moves their deliveries on, set-wise. A result counts while its claim is still the delivery's, and
 * once. That a subscription was paused or deleted meanwhile needs no care here: what is due again is then held or
 * cancelled by that.
 */
export function finishAttempts(
  sql: Sql,
  results: readonly FinishedRow[],
  bytes: Uint8Array,
): readonly WithServiceEvents<Finished>[] {
  // Those that come together are some milliseconds apart.
  const nowMs = results.reduce((latest, result) => Math.max(latest, result.nowMs), -Infinity);
  const open = loadLeased(sql, results);
  const rehomedById = loadRehomed(sql, results, open);
  const ordered = loadOrdered(sql, results);
  const changes: FinishWrites = {
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
  const signals = noSignals();
  const limit = new ServiceEventBudget(sql);
  /** The last result of each subscription. */
  const lastOf = new Map<number, number>();
  const states = results.map((row, index) => {
    const leased = open.get(row.deliveryId);
    if (leased?.claim_id !== row.claimId) return FENCED;
    const rehomed = rehomedById.get(leased.id);
    const move = transitionOf(leased, row, { nowMs, rehomed, place: ordered.get(leased.id) });
    const handlerChanged = rehomed !== undefined;
    if (move !== undefined && !limit.admits(serviceEventsOf(row, move, handlerChanged))) return DEFERRED;
    open.delete(leased.id);
    collect(changes, leased, row, { nowMs, move });
    addSignal(signals, leased.subscription_id, row, { handlerChanged, isKept: move?.isKept === true });
    lastOf.set(leased.subscription_id, index);
    const { kind } = row.next;
    return kind === "delivered" || kind === "filtered"
      ? DELIVERY_STATE[kind]
      : (move?.state ?? DELIVERY_STATE.pending);
  });
  writeChanges(sql, changes, nowMs, bytes);
  const { disableAfterMs } = results[0] ?? {};
  const deactivated = applySignals(sql, signals, {
    nowMs,
    disableAfterMs,
    limit: new ServiceEventBudget(sql),
  });
  const { failed, blocked } = changes;
  const counts = recordDeliveryEvents(sql, { failed, blocked, deactivations: [{ nowMs, deactivated }] });
  const byIndex = new Map(deactivated.map((one) => [lastOf.get(one.subscriptionId), one]));
  return states.map((state, index) => {
    const own = byIndex.get(index);
    const answer = own === undefined ? { state } : { state, deactivated: own };
    return { answer, serviceEvents: index === 0 ? counts : undefined };
  });
}

/** The service events that applying it would make, as far as that is known before. */
function serviceEventsOf(
  { next }: FinishedRow,
  move: Transition,
  handlerChanged: boolean,
): readonly ServiceEventName[] {
  const names: ServiceEventName[] = [];
  if (move.state === DELIVERY_STATE.failed) names.push("evreg.delivery.failed");
  if (move.startsBlocking) names.push("evreg.subscription.blocked");
  if (next.kind === "gone" && !handlerChanged) names.push("evreg.subscription.deactivated");
  return names;
}

const GONE = columns("id", "subscriptionId", "handler");

/**
 * Deliveries whose handler is gone, and whose subscription has another one by now, about which that says nothing.
 */
function loadRehomed(
  sql: Sql,
  rows: readonly FinishedRow[],
  open: ReadonlyMap<number, Leased>,
): ReadonlyMap<number, Rehomed> {
  const gone = rows.flatMap(({ deliveryId, claimId, next }) => {
    const leased = open.get(deliveryId);
    if (next.kind !== "gone" || leased?.claim_id !== claimId) return [];
    return [GONE.pack({ id: deliveryId, subscriptionId: leased.subscription_id, handler: next.handler })];
  });
  if (gone.length === 0) return new Map();
  const found = sql.rows<Rehomed>(
    `SELECT ${GONE.value("id")} AS id, s.max_retries
      FROM json_each(?) CROSS JOIN subscription AS s ON s.rowid = ${GONE.value("subscriptionId")}
      WHERE s.handler <> ${GONE.value("handler")}`,
    JSON.stringify(gone),
  );
  return new Map(found.map((row) => [row.id, row]));
}

function loadLeased(sql: Sql, rows: readonly FinishedRow[]): Map<number, Leased> {
  const ids = new Set(rows.map(({ deliveryId }) => deliveryId));
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

/** One whose subscription has another handler than the one that is gone. */
interface Rehomed {
  readonly id: number;
  readonly max_retries: number;
}

/** Where a delivery goes that was not delivered. */
interface Transition {
  readonly state: (typeof DELIVERY_STATE)["pending" | "failed"];
  readonly failures: number;
  readonly dueMs: number | null;
  /** In the order of its subscription. */
  readonly sequence: number | null;
  readonly lastError: string | null;
  /** In the order of its subscription, which waits for its retry. */
  readonly isKept: boolean;
  /** Its subscription blocks for it from now on. */
  readonly startsBlocking: boolean;
}

interface At {
  readonly nowMs: number;
  readonly rehomed: Rehomed | undefined;
  /** In the order of its subscription, if that has one. */
  readonly place: OrderedDelivery | undefined;
}

type Outcome = "delivered" | "failed" | "returned";

/** `undefined` for one that was delivered, filtered or never started. */
function transitionOf(leased: Leased, row: FinishedRow, at: At): Transition | undefined {
  const { kind } = row.next;
  if (kind === "delivered" || kind === "filtered" || kind === "unsent") return undefined;
  if (at.place !== undefined) return transitionInOrder(leased, row, { ...at, place: at.place });
  return { ...transitionOutOfOrder(leased, row, at), sequence: null, isKept: false, startsBlocking: false };
}

function transitionOutOfOrder(
  { failures, last_error }: Leased,
  row: FinishedRow,
  { nowMs, rehomed }: At,
): Omit<Transition, "sequence" | "isKept" | "startsBlocking"> {
  const { next } = row;
  if (next.kind === "returned")
    return { state: DELIVERY_STATE.pending, failures, dueMs: nowMs, lastError: last_error };
  const failed = { failures: failures + 1, lastError: errorOf(row) };
  if (next.kind === "retry") return { ...failed, state: DELIVERY_STATE.pending, dueMs: Math.ceil(next.atMs) };
  const isTriedOn = rehomed !== undefined && failures < rehomed.max_retries;
  return isTriedOn
    ? { ...failed, state: DELIVERY_STATE.pending, dueMs: nowMs }
    : { ...failed, state: DELIVERY_STATE.failed, dueMs: null };
}

function transitionInOrder(
  { failures, last_error }: Leased,
  row: FinishedRow,
  { rehomed, place }: At & { readonly place: OrderedDelivery },
): Transition {
  const { next } = row;
  const waiting = { state: DELIVERY_STATE.pending, dueMs: place.due_ms, sequence: place.event_id } as const;
  if (next.kind === "returned") {
    return { ...waiting, failures, lastError: last_error, isKept: false, startsBlocking: false };
  }
  const isKept = staysQueued(place, failures, { next, handlerChanged: rehomed !== undefined });
  const failed = { failures: failures + 1, lastError: errorOf(row), isKept };
  return isKept
    ? { ...waiting, ...failed, startsBlocking: startsBlocking(place, failures) }
    : { ...failed, state: DELIVERY_STATE.failed, dueMs: null, sequence: null, startsBlocking: false };
}

/** @param move as `transitionOf` has it */
function collect(
  changes: FinishWrites,
  leased: Leased,
  row: FinishedRow,
  { nowMs, move }: { nowMs: number; move: Transition | undefined },
): void {
  const { deliveryId: id, startedAtMs, durationMs, statusCode, errorCode, textBytes, next, more } = row;
  changes.ended.push(id);
  if (next.kind === "filtered") changes.filtered.push(id);
  if (next.kind === "unsent" || next.kind === "filtered") return;
  if (next.kind === "delivered") changes.delivered.push(id);
  const outcome: Outcome = next.kind === "delivered" || next.kind === "returned" ? next.kind : "failed";
  if (move !== undefined) {
    const { state, failures, dueMs: due_ms, sequence, lastError: last_error } = move;
    const finished_ms = state === DELIVERY_STATE.failed ? nowMs : null;
    const { attempt } = leased;
    changes.others.push(
      MOVED.pack({ id, state, attempt, failures, due_ms, sequence, finished_ms, last_error }),
    );
    if (state === DELIVERY_STATE.failed) changes.failed.push([id, nowMs]);
    if (move.startsBlocking) changes.blocked.push([id, nowMs]);
  }
  if (isPastLimit(leased.attempt)) changes.long.push(id);
  const { dnsMs, connectMs, firstByteMs } = more?.connection ?? {};
  // In the order of `ATTEMPT`, as each attempt is packed.
  const attempt = [
    id,
    leased.attempt,
    Math.round(startedAtMs),
    Math.max(0, Math.round(durationMs)),
    outcome,
    statusCode,
    errorCode ?? (outcome === "returned" ? "interrupted" : null),
    // substr counts from 1.
    textBytes === null ? null : row.textOffset + 1,
    textBytes ?? 0,
  ];
  if (more?.connection === undefined) changes.attempts.push(attempt);
  else changes.connected.push([...attempt, rounded(dnsMs), rounded(connectMs), rounded(firstByteMs)]);
}

function rounded(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : Math.max(0, Math.round(durationMs));
}

/** What is to be written for the results of finished attempts that count. */
interface FinishWrites {
  /** Rowids of deliveries that are not leased any more. */
  readonly ended: number[];
  readonly delivered: number[];
  readonly filtered: number[];
  readonly others: unknown[];
  /** Those of the others that failed for good. */
  readonly failed: Transitioned[];
  /** Those of the others that their subscriptions block for from now on. */
  readonly blocked: Transitioned[];
  readonly attempts: unknown[];
  /** Those that had a connection made for them. */
  readonly connected: unknown[];
  /** Rowids of deliveries that have more attempts than are stored. */
  readonly long: number[];
}

function writeChanges(sql: Sql, changes: FinishWrites, nowMs: number, bytes: Uint8Array): void {
  const { ended, delivered, filtered, others, attempts, connected, long } = changes;
  if (ended.length === 0) return;
  sql.run("DELETE FROM lease WHERE delivery_id IN (SELECT value FROM json_each(?))", JSON.stringify(ended));
  insertAttempts(sql, STORED, attempts, bytes);
  // Apart from the others, as each value that is taken out of the JSON costs something, and few have these.
  insertAttempts(sql, [...STORED, ...CONNECTION_TIMES], connected, bytes);
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

const MOVED = columns(
  "id",
  "state",
  "attempt",
  "failures",
  "due_ms",
  "sequence",
  "finished_ms",
  "last_error",
);

function moveOthers(sql: Sql, others: readonly unknown[]): void {
  sql.run(
    `UPDATE delivery SET state = r.state, attempt = r.attempt, failures = r.failures, priority = ${NORMAL},
        due_ms = r.due_ms, sequence = r.sequence, finished_ms = r.finished_ms, last_error = r.last_error
      FROM (SELECT ${MOVED.values} FROM json_each(?)) AS r
      WHERE delivery.rowid = r.id`,
    JSON.stringify(others),
  );
}

const STORED = [
  "delivery_id",
  "attempt",
  "started_ms",
  "duration_ms",
  "outcome",
  "status_code",
  "error_code",
] as const;
const CONNECTION_TIMES = ["dns_ms", "connect_ms", "first_byte_ms"] as const;
const ATTEMPT = columns(...STORED, "text_start", "text_bytes", ...CONNECTION_TIMES);

function insertAttempts(
  sql: Sql,
  stored: readonly (typeof STORED | typeof CONNECTION_TIMES)[number][],
  attempts: readonly unknown[],
  bytes: Uint8Array,
): void {
  if (attempts.length === 0) return;
  const start = ATTEMPT.value("text_start");
  sql.run(
    `INSERT INTO attempt (${stored.join(", ")}, response)
      SELECT ${stored.map((name) => ATTEMPT.value(name)).join(", ")},
        CASE WHEN ${start} IS NOT NULL THEN substr(?2, ${start}, ${ATTEMPT.value("text_bytes")}) END
      FROM json_each(?1)`,
    JSON.stringify(attempts),
    bytes,
  );
}
