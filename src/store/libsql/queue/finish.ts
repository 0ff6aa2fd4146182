import type { OnExhausted } from "../../../domain/subscription-settings.ts";
import type { Deactivated, FinishOutcome, NextStep } from "../../queue.ts";
import { type WithServiceEvents, recordDeliveryEvents } from "../events/service-events.ts";
import { StatsCounts } from "../history/stats-counts.ts";
import { columns } from "../thread/columns.ts";
import type { Sql } from "../thread/sql.ts";
import { dropMiddleAttempts, isPastLimit } from "./attempts.ts";
import { DELIVERY_STATE, NORMAL } from "./delivery-state.ts";
import { applySignals, noSignals, addSignal } from "./handler-health.ts";
import { type OrderKey, settleKeys } from "./key-order.ts";
import { settingOf } from "./order.ts";
import { errorOf, type FinishedRow } from "./wire.ts";

/**
 * Records attempts and moves their deliveries on, set-wise. A result counts once, while its claim is still the delivery's.
 * A subscription that was paused or deleted meanwhile needs no care: what is due again is then held or cancelled.
 */
export function finishAttempts(
  sql: Sql,
  results: readonly FinishedRow[],
  bytes: Uint8Array,
): WithServiceEvents<readonly FinishOutcome[]> {
  // Those that come together are some milliseconds apart.
  const nowMs = results.reduce((latest, result) => Math.max(latest, result.nowMs), -Infinity);
  const leases = loadLeased(sql, results);
  const constraints = loadConstraints(sql, results, leases);
  const writes: FinishWrites = {
    ended: [],
    first: [],
    delivered: [],
    filtered: [],
    moved: [],
    failed: [],
    blocked: [],
    attempts: [],
    connected: [],
    pulled: [],
    long: [],
    keys: [],
  };
  const counts = new StatsCounts();
  const signals = noSignals();
  /** The last result of each subscription. */
  const lastOf = new Map<number, number>();
  const outcomes = results.map((row, index): FinishOutcome => {
    const leased = leases.get(row.deliveryId);
    if (leased?.claim_id !== row.claimId) return { kind: "fenced" };
    const constraint = constraints.get(leased.id);
    const transition = transitionOf(leased, row, constraint, nowMs);
    const handlerChanged = constraint?.has_other_handler === 1;
    leases.delete(leased.id);
    collect(writes, leased, row, transition, nowMs);
    if (row.next.kind !== "unsent" && row.next.kind !== "filtered" && row.next.kind !== "returned") {
      counts.attempted(leased.action_id, leased.subscription_id, row, nowMs);
    }
    if (leased.key !== null) writes.keys.push([leased.subscription_id, leased.key]);
    addSignal(signals, leased.subscription_id, row, {
      handlerChanged,
      isRetriedInOrder: transition?.isRetriedInOrder === true,
    });
    lastOf.set(leased.subscription_id, index);
    const { kind } = row.next;
    if (kind === "delivered" || kind === "filtered") return { kind: "stored", state: kind };
    return { kind: "stored", state: transition?.state === DELIVERY_STATE.failed ? "failed" : "pending" };
  });
  writeChanges(sql, writes, nowMs, bytes);
  counts.write(sql);
  const { disableAfterMs } = results[0] ?? {};
  const deactivated = applySignals(sql, signals, nowMs, disableAfterMs);
  // What was leased of a key is not any more.
  const isNextDue = settleKeys(sql, writes.keys, nowMs) > 0;
  const { failed, blocked } = writes;
  const serviceEvents = recordDeliveryEvents(sql, { failed, blocked, deactivated }, nowMs);
  const byIndex = new Map(deactivated.map((one) => [lastOf.get(one.subscriptionId), one]));
  const firstStored = outcomes.findIndex(({ kind }) => kind === "stored");
  const answer = outcomes.map((outcome, index) =>
    withEffects(outcome, byIndex.get(index), isNextDue && index === firstStored),
  );
  return { answer, serviceEvents };
}

function withEffects(
  outcome: FinishOutcome,
  deactivated: Deactivated | undefined,
  isNextDue: boolean,
): FinishOutcome {
  if (outcome.kind !== "stored" || (deactivated === undefined && !isNextDue)) return outcome;
  const subscription = deactivated === undefined ? {} : { deactivated };
  return { ...outcome, ...subscription, ...(isNextDue ? { isNextDue } : {}) };
}

/** A delivery that is leased. */
interface Leased {
  readonly id: number;
  readonly claim_id: number;
  readonly subscription_id: number;
  /** Of its event; 0 where that is damaged. */
  readonly action_id: number;
  /** The number of the attempt under way. */
  readonly attempt: number;
  readonly failures: number;
  readonly last_error: string | null;
  /** Who took it; `null` for one that evreg sent. */
  readonly consumer: string | null;
  /** Of one that has a place in an order by key. */
  readonly key: number | null;
}

function loadLeased(sql: Sql, rows: readonly FinishedRow[]): Map<number, Leased> {
  const ids = new Set(rows.map(({ deliveryId }) => deliveryId));
  const found = sql.rows<Leased>(
    `SELECT d.rowid AS id, l.claim_id, d.subscription_id, d.attempt + 1 AS attempt, d.failures, d.last_error, l.consumer, d.key,
        coalesce((SELECT e.action_id FROM event AS e WHERE e.rowid = d.event_id), 0) AS action_id
      FROM json_each(?) AS r
      CROSS JOIN lease AS l ON l.delivery_id = r.value
      CROSS JOIN delivery AS d ON d.rowid = l.delivery_id`,
    JSON.stringify([...ids]),
  );
  return new Map(found.map((row) => [row.id, row]));
}

/** What decides on a delivery that was not delivered: the order of its subscription, or another handler by now. */
interface Constraint {
  readonly id: number;
  readonly ordered: number;
  /** 1 if its subscription is ordered by key. */
  readonly is_keyed: number;
  readonly event_id: number;
  readonly due_ms: number;
  readonly max_retries: number;
  readonly on_exhausted: OnExhausted;
  /** 1 if the handler that is gone is no longer the subscription's, about whose handler that says nothing. */
  readonly has_other_handler: number;
}

/** Most deliveries have no constraint. */
function loadConstraints(
  sql: Sql,
  results: readonly FinishedRow[],
  leases: ReadonlyMap<number, Leased>,
): ReadonlyMap<number, Constraint> {
  const undelivered = results.flatMap(({ deliveryId, claimId, next }) =>
    isUndelivered(next) && leases.get(deliveryId)?.claim_id === claimId
      ? [[deliveryId, next.kind === "gone" ? next.handler : null]]
      : [],
  );
  if (undelivered.length === 0) return new Map();
  const found = sql.rows<Constraint>(
    `SELECT d.rowid AS id, s.ordered, s.order_key IS NOT NULL AS is_keyed, d.event_id, d.due_ms, s.max_retries, ${settingOf("on_exhausted")} AS on_exhausted,
        coalesce(s.handler <> r.value ->> 1, 0) AS has_other_handler
      FROM json_each(?) AS r
      CROSS JOIN delivery AS d ON d.rowid = r.value ->> 0
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE s.ordered = 1 OR s.order_key IS NOT NULL OR d.key IS NOT NULL OR s.handler <> r.value ->> 1`,
    JSON.stringify(undelivered),
  );
  return new Map(found.map((row) => [row.id, row]));
}

type Undelivered = Exclude<NextStep, { kind: "delivered" | "filtered" | "unsent" }>;

function isUndelivered(next: NextStep): next is Undelivered {
  return next.kind !== "delivered" && next.kind !== "filtered" && next.kind !== "unsent";
}

/** Where a delivery goes that was not delivered. */
interface Transition {
  readonly state: (typeof DELIVERY_STATE)["pending" | "failed"];
  readonly failures: number;
  readonly dueMs: number | null;
  /** Its place in the order of its subscription. */
  readonly sequence: number | null;
  readonly lastError: string | null;
  /** Its ordered subscription waits for its retry. */
  readonly isRetriedInOrder: boolean;
  /** Its subscription blocks for it from now on. */
  readonly startsBlocking: boolean;
}

/** `undefined` for one that was delivered, filtered or never started. */
function transitionOf(
  { failures, last_error, key }: Leased,
  row: FinishedRow,
  constraint: Constraint | undefined,
  nowMs: number,
): Transition | undefined {
  const { next } = row;
  if (!isUndelivered(next)) return undefined;
  const isOrdered = constraint?.ordered === 1;
  const pending = {
    state: DELIVERY_STATE.pending,
    // An ordered one keeps its place, and its subscription as a whole waits.
    dueMs: isOrdered ? constraint.due_ms : nowMs,
    sequence: constraint !== undefined && (isOrdered || key !== null) ? constraint.event_id : null,
    isRetriedInOrder: false,
    startsBlocking: false,
  };
  if (next.kind === "returned") return { ...pending, failures, lastError: last_error };
  const failed = { failures: failures + 1, lastError: errorOf(row) };
  // With its handler gone nothing is sent at all, so one that blocks keeps its place then too.
  const isKeyed = constraint?.is_keyed === 1;
  const isBlocking = (isOrdered || isKeyed) && constraint.on_exhausted === "block";
  if (isBlocking || mayRetry(next, failures, constraint)) {
    // One that blocks its key by now waits as long as it would have, had it done so before.
    const atMs = next.kind === "retry" ? next.atMs : isKeyed ? (row.more?.wait?.untilMs ?? nowMs) : nowMs;
    const dueMs = isOrdered ? pending.dueMs : Math.ceil(atMs);
    const startsBlocking = isBlocking && failures === constraint.max_retries;
    return { ...pending, ...failed, dueMs, isRetriedInOrder: isOrdered, startsBlocking };
  }
  return { ...pending, ...failed, state: DELIVERY_STATE.failed, dueMs: null, sequence: null };
}

/** Not if it only has its place in an order that has ended. */
function isConstrained({ ordered, is_keyed, has_other_handler }: Constraint): boolean {
  return ordered === 1 || is_keyed === 1 || has_other_handler === 1;
}

/** The engine counted the retries of one without constraint. */
function mayRetry(next: Undelivered, failures: number, constraint: Constraint | undefined): boolean {
  if (constraint === undefined || !isConstrained(constraint)) return next.kind === "retry";
  const isRequested = next.kind === "retry" || constraint.has_other_handler === 1;
  return isRequested && failures < constraint.max_retries;
}

type Outcome = "delivered" | "failed" | "returned";

function collect(
  writes: FinishWrites,
  leased: Leased,
  row: FinishedRow,
  transition: Transition | undefined,
  nowMs: number,
): void {
  const { deliveryId: id, startedAtMs, durationMs, statusCode, errorCode, textBytes, next, more } = row;
  writes.ended.push(id);
  if (next.kind === "filtered") writes.filtered.push(id);
  if (next.kind === "unsent" || next.kind === "filtered") return;
  const startedMs = Math.round(startedAtMs);
  const attemptMs = Math.max(0, Math.round(durationMs));
  if (isPlainFirst(leased, row)) {
    writes.first.push(FIRST.pack({ id, startedMs, durationMs: attemptMs, statusCode }));
    return;
  }
  if (next.kind === "delivered") writes.delivered.push(id);
  const outcome: Outcome = next.kind === "delivered" || next.kind === "returned" ? next.kind : "failed";
  if (transition !== undefined) {
    const { state, failures, dueMs: due_ms, sequence, lastError: last_error } = transition;
    const finished_ms = state === DELIVERY_STATE.failed ? nowMs : null;
    const { attempt } = leased;
    writes.moved.push(
      MOVED.pack({ id, state, attempt, failures, due_ms, sequence, finished_ms, last_error }),
    );
    if (state === DELIVERY_STATE.failed) writes.failed.push(id);
    if (transition.startsBlocking) writes.blocked.push(id);
  }
  if (isPastLimit(leased.attempt)) writes.long.push(id);
  const { dnsMs, connectMs, firstByteMs } = more?.connection ?? {};
  // In the order of `ATTEMPT`, as each attempt is packed.
  const attempt = [
    id,
    leased.attempt,
    startedMs,
    attemptMs,
    outcome,
    statusCode,
    errorCode ?? (outcome === "returned" ? "interrupted" : null),
    // substr counts from 1.
    textBytes === null ? null : row.textOffset + 1,
    textBytes ?? 0,
  ];
  const { consumer } = leased;
  if (consumer !== null) writes.pulled.push([...attempt, null, null, null, consumer]);
  else if (more?.connection === undefined) writes.attempts.push(attempt);
  else writes.connected.push([...attempt, rounded(dnsMs), rounded(connectMs), rounded(firstByteMs)]);
}

/** Whether it is a first attempt that delivered, with nothing to be stored but what its delivery has columns for. */
function isPlainFirst(
  { attempt, consumer }: Leased,
  { next, errorCode, textBytes, more }: FinishedRow,
): boolean {
  const isBare = errorCode === null && textBytes === null && more?.connection === undefined;
  return attempt === 1 && consumer === null && next.kind === "delivered" && isBare;
}

function rounded(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : Math.max(0, Math.round(durationMs));
}

/** What is to be written for the results of finished attempts that count. */
interface FinishWrites {
  /** Rowids of deliveries that are not leased any more. */
  readonly ended: number[];
  /** First attempts that delivered, and are stored with their deliveries. */
  readonly first: unknown[];
  readonly delivered: number[];
  readonly filtered: number[];
  readonly moved: unknown[];
  /** Those moved that failed for good. */
  readonly failed: number[];
  /** Those moved that their subscriptions block for from now on. */
  readonly blocked: number[];
  readonly attempts: unknown[];
  /** Those that had a connection made for them. */
  readonly connected: unknown[];
  /** Those that consumers made. */
  readonly pulled: unknown[];
  /** Rowids of deliveries that have more attempts than are stored. */
  readonly long: number[];
  /** Of which something has ended, or goes on waiting. */
  readonly keys: OrderKey[];
}

function writeChanges(sql: Sql, writes: FinishWrites, nowMs: number, bytes: Uint8Array): void {
  const { ended, first, delivered, filtered, moved, attempts, connected, pulled, long } = writes;
  if (ended.length === 0) return;
  sql.run("DELETE FROM lease WHERE delivery_id IN (SELECT value FROM json_each(?))", JSON.stringify(ended));
  insertAttempts(sql, STORED, attempts, bytes);
  // Few have connection times, and each value that is taken out of the JSON costs something.
  insertAttempts(sql, [...STORED, ...CONNECTION_TIMES], connected, bytes);
  insertAttempts(sql, [...STORED, "consumer"], pulled, bytes);
  const asDelivered = `state = ${DELIVERY_STATE.delivered}, attempt = attempt + 1, last_error = NULL`;
  if (first.length > 0) endFirst(sql, first, nowMs, asDelivered);
  endAll(sql, delivered, nowMs, asDelivered);
  endAll(sql, filtered, nowMs, `state = ${DELIVERY_STATE.filtered}`);
  if (moved.length > 0) moveAll(sql, moved);
  if (long.length > 0) dropMiddleAttempts(sql, long);
}

function endAll(sql: Sql, ids: readonly number[], nowMs: number, assignments: string): void {
  if (ids.length === 0) return;
  sql.run(
    `UPDATE delivery SET ${assignments}, due_ms = NULL, finished_ms = ?2
      WHERE rowid IN (SELECT value FROM json_each(?1))`,
    JSON.stringify(ids),
    nowMs,
  );
}

const FIRST = columns("id", "startedMs", "durationMs", "statusCode");

function endFirst(sql: Sql, first: readonly unknown[], nowMs: number, assignments: string): void {
  sql.run(
    `UPDATE delivery SET ${assignments}, due_ms = NULL, finished_ms = ?2, first_start_ms = r.startedMs - created_ms,
        first_duration_ms = r.durationMs, first_status_code = r.statusCode
      FROM (SELECT ${FIRST.values} FROM json_each(?1)) AS r WHERE delivery.rowid = r.id`,
    JSON.stringify(first),
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

function moveAll(sql: Sql, moved: readonly unknown[]): void {
  sql.run(
    `UPDATE delivery SET state = r.state, attempt = r.attempt, failures = r.failures, priority = ${NORMAL},
        due_ms = r.due_ms, sequence = r.sequence, finished_ms = r.finished_ms, last_error = r.last_error
      FROM (SELECT ${MOVED.values} FROM json_each(?)) AS r
      WHERE delivery.rowid = r.id`,
    JSON.stringify(moved),
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
const ATTEMPT = columns(...STORED, "text_start", "text_bytes", ...CONNECTION_TIMES, "consumer");

function insertAttempts(
  sql: Sql,
  stored: readonly ((typeof STORED | typeof CONNECTION_TIMES)[number] | "consumer")[],
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
