import type { BacklogCause } from "../../../domain/stats/stats.ts";
import type { Backlog, BacklogOf } from "../../queue.ts";
import { earliestOf } from "../../rules/fair-share.ts";
import { matchOf } from "../catalog/matching.ts";
import { type Sql, type SqlValue, timeOf } from "../thread/sql.ts";
import {
  DELIVERY_STATE,
  IS_OPEN,
  LEASE_OF,
  NORMAL,
  REQUESTED,
  settingOf,
  UNFINISHED_STATES,
} from "./delivery-state.ts";
import { WAIT_END } from "./handler-health.ts";

// This file says why deliveries are unfinished: each for one cause, by which they are counted here and listed in
// delivery-list.ts.

/** One answer counts so many deliveries, which takes some 20 ms of the thread that reads. */
const MAX_COUNTED = 200_000;
/** So many deliveries of a subscription are counted even where others have very many. */
const LEAST_EACH = 50;
/** A time before all times: nothing is due before it. */
const NEVER_MS = Number.MIN_SAFE_INTEGER;

/** A subscription with unfinished deliveries, and what decides about their causes. */
interface Receiver {
  readonly id: number;
  readonly isActive: boolean;
  /** When the subscription's wait ends or ended; 0 where there was none. */
  readonly waitEndMs: number;
  /** Whether the subscription waits, so that only what persons requested is sent. */
  readonly isWaiting: boolean;
  /** The cause of what is to be sent now. */
  readonly nowCause: BacklogCause;
  readonly leased: LeasedCount;
}

/** How much of a subscription is leased. */
interface LeasedCount {
  readonly deliveries: number;
  /** How many of them persons requested. */
  readonly requested: number;
  readonly sinceMs: number | undefined;
}

const NONE_LEASED: LeasedCount = { deliveries: 0, requested: 0, sinceMs: undefined };

function loadLeased(sql: Sql): ReadonlyMap<number, LeasedCount> {
  const rows = sql.rows<LeasedCount & { id: number }>(
    `SELECT d.subscription_id AS id, count(*) AS deliveries, count(*) FILTER (WHERE d.priority = ${REQUESTED}) AS requested,
        min(l.claimed_ms) AS sinceMs
      FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id GROUP BY 1`,
  );
  return new Map(rows.map((row) => [row.id, row]));
}

interface ReceiverRow {
  readonly id: number;
  readonly active: number;
  readonly wait_end_ms: number;
  readonly is_paced: number;
}

/** Reads the subscriptions that have something unfinished, without deleted ones. */
function loadReceivers(
  sql: Sql,
  nowMs: number,
  { applications, subscription, action }: BacklogOf = {},
  leased = loadLeased(sql),
): readonly Receiver[] {
  const match = matchOf(action ?? "*", "a.action");
  const rows = sql.rows<ReceiverRow>(
    `SELECT s.rowid AS id, s.active, ${WAIT_END} AS wait_end_ms, s.mode = 'pull' OR ${settingOf("rate_limit")} IS NOT NULL AS is_paced
      FROM subscription AS s
      WHERE s.deleted_ms IS NULL AND (?2 IS NULL OR s.rowid = ?2)
        AND (?3 IS NULL OR s.application IN (SELECT value FROM json_each(?3)))
        AND EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_due WHERE subscription_id = s.rowid AND due_ms IS NOT NULL)
        AND (?4 IS NULL OR EXISTS (SELECT 1 FROM binding AS m INDEXED BY binding_subscription CROSS JOIN action AS a ON a.rowid = m.action_id
          WHERE m.subscription_id = s.rowid AND m.receives = 1 AND ${match.condition}))`,
    nowMs,
    subscription ?? null,
    applications === undefined ? null : JSON.stringify(applications),
    action ?? null,
    ...match.values,
  );
  return rows.map(({ id, active, wait_end_ms: waitEndMs, is_paced: isPaced }) => {
    const own = leased.get(id) ?? NONE_LEASED;
    const isActive = active === 1;
    const unpaced = own.deliveries > 0 ? "busy" : "due";
    const nowCause = !isActive ? "held" : isPaced === 1 ? "paced" : unpaced;
    return {
      id,
      isActive,
      waitEndMs,
      isWaiting: isActive && waitEndMs > nowMs,
      nowCause,
      leased: own,
    };
  });
}

const NONE: Backlog["due"] = { deliveries: 0, sinceMs: undefined };

function noParts(): Record<BacklogCause, Backlog["due"]> {
  return { due: NONE, busy: NONE, paced: NONE, waiting: NONE, blocked: NONE, delivering: NONE, held: NONE };
}

type BacklogParts = ReturnType<typeof noParts>;

function add(parts: BacklogParts, cause: BacklogCause, deliveries: number, sinceMs?: number): void {
  const part = parts[cause];
  parts[cause] = {
    // After the clock was set back, more may be leased than are due.
    deliveries: part.deliveries + Math.max(0, deliveries),
    sinceMs: sinceMs === undefined ? part.sinceMs : earliestOf(part.sinceMs, sinceMs),
  };
}

/**
 * Counts what is unfinished, by what it waits for: each subscription's deliveries are counted in the indexes of what is due and
 * of keys, up to about `max` of all.
 * @param selection whose deliveries count; by default all
 */
export function countBacklog(sql: Sql, nowMs: number, selection?: BacklogOf, max = MAX_COUNTED): Backlog {
  const leased = loadLeased(sql);
  const receivers = loadReceivers(sql, nowMs, selection, leased);
  const parts = noParts();
  const delivering = selection === undefined ? [...leased.values()] : receivers.map((one) => one.leased);
  for (const { deliveries, sinceMs } of delivering) add(parts, "delivering", deliveries, sinceMs);
  let remaining = max;
  let isWhole = true;
  // What is paused counts last, where there is too much.
  for (const receiver of receivers.toSorted((one, other) => Number(other.isActive) - Number(one.isActive))) {
    const limit = Math.max(remaining, LEAST_EACH);
    const counted = countOf(sql, receiver, nowMs, limit);
    remaining -= counted.pending + counted.behind;
    isWhole &&= counted.pending < limit && counted.behind < limit;
    addCounted(parts, receiver, counted);
  }
  return { ...parts, isWhole };
}

function addCounted(
  parts: BacklogParts,
  { isActive, isWaiting, waitEndMs, nowCause, leased }: Receiver,
  { pending, now, first, behind, blocked, blockedMs }: CountedDeliveries,
): void {
  // What was due all along could only be sent since its wait ended; what a person requested does not wait.
  const sinceMs =
    first === undefined || !isActive || first.priority === REQUESTED
      ? first?.dueMs
      : Math.max(first.dueMs, waitEndMs);
  // What is leased is among what is due.
  const leasedNow = isWaiting ? leased.requested : leased.deliveries;
  add(parts, nowCause, now - leasedNow, sinceMs);
  add(parts, isActive ? "waiting" : "held", pending - now - (leased.deliveries - leasedNow));
  add(parts, isActive ? "waiting" : "held", isActive ? behind - blocked : behind);
  if (isActive && blocked > 0) add(parts, "blocked", blocked, blockedMs ?? undefined);
}

/** The deliveries of a subscription, up to a limit of each. */
interface CountedDeliveries {
  readonly pending: number;
  /** How many of them are due. */
  readonly now: number;
  /** The first delivery that is due and not leased. */
  readonly first: { readonly priority: number; readonly dueMs: number } | undefined;
  /** How many are behind others of their keys. */
  readonly behind: number;
  /** How many of those are behind one that blocks, and when the first that blocks was made. */
  readonly blocked: number;
  readonly blockedMs: number | null;
}

const PENDING =
  "FROM delivery AS d INDEXED BY delivery_due WHERE d.subscription_id = ?1 AND d.due_ms IS NOT NULL";
const BEHIND = `FROM delivery AS b INDEXED BY delivery_key
  WHERE b.subscription_id = ?1 AND b.key IS NOT NULL AND b.state IN ${UNFINISHED_STATES} AND b.state = ${DELIVERY_STATE.behind}`;

function countOf(sql: Sql, { id, isWaiting }: Receiver, nowMs: number, limit: number): CountedDeliveries {
  const dueByMs = isWaiting ? NEVER_MS : nowMs;
  const { pending, now } = sql.first<{ pending: number; now: number }>(
    `SELECT count(*) AS pending, coalesce(sum(priority = ${REQUESTED} OR due_ms <= ?2), 0) AS now
      FROM (SELECT d.priority, d.due_ms ${PENDING} ORDER BY d.priority, d.due_ms LIMIT ?3)`,
    id,
    dueByMs,
    limit,
  )!;
  const first = sql.first<{ priority: number; dueMs: number }>(
    `SELECT d.priority, ${timeOf("d.due_ms")} AS dueMs ${PENDING} AND (d.priority, d.due_ms) <= (${NORMAL}, ?2) AND NOT ${LEASE_OF("d")}
      ORDER BY d.priority, d.due_ms LIMIT 1`,
    id,
    dueByMs,
  );
  const behind = countBehind(sql, id, limit);
  const { blocked, blockedMs } = behind === 0 ? NONE_BLOCKED : countBlocked(sql, id, limit);
  return { pending, now, first, behind, blocked, blockedMs };
}

function countBehind(sql: Sql, subscription: number, limit: number): number {
  return sql.value(`SELECT count(*) FROM (SELECT 1 ${BEHIND} LIMIT ?2)`, subscription, limit);
}

type Blocked = Pick<CountedDeliveries, "blocked" | "blockedMs">;

const NONE_BLOCKED: Blocked = { blocked: 0, blockedMs: null };

function countBlocked(sql: Sql, subscription: number, limit: number): Blocked {
  return sql.first<Blocked>(
    `SELECT count(*) AS blocked, min(since_ms) AS blockedMs FROM (
        SELECT ${timeOf("f.created_ms")} AS since_ms
        FROM subscription AS s CROSS JOIN delivery AS f INDEXED BY delivery_key_failing
          ON f.subscription_id = s.rowid AND f.key IS NOT NULL AND f.due_ms IS NOT NULL AND f.failures > 0 AND f.failures > s.max_retries
        CROSS JOIN delivery AS b INDEXED BY delivery_key
          ON b.subscription_id = s.rowid AND b.key = f.key AND b.state IN ${UNFINISHED_STATES} AND b.state = ${DELIVERY_STATE.behind}
        WHERE s.rowid = ?1 AND ${BLOCKS} LIMIT ?2)`,
    subscription,
    limit,
  )!;
}

/** SQL that says whether the subscription `s` waits for a person where a delivery has used up its retries. */
const BLOCKS = `s.order_key IS NOT NULL AND ${settingOf("on_exhausted")} IS 'block'`;

const IS_BLOCKED = `(d.state = ${DELIVERY_STATE.behind} AND ${BLOCKS} AND EXISTS (SELECT 1 FROM delivery AS f INDEXED BY delivery_key
  WHERE f.subscription_id = s.rowid AND f.key = d.key AND f.state IN ${UNFINISHED_STATES} AND f.state = ${DELIVERY_STATE.pending}
    AND f.failures > s.max_retries))`;
/** SQL that says whether the delivery `d` is to be sent now. Its values are the time, and the subscriptions that wait. */
const IS_NOW = `(d.due_ms IS NOT NULL AND (d.priority = ${REQUESTED}
  OR d.due_ms <= ? AND d.subscription_id NOT IN (SELECT value FROM json_each(?))))`;

/** Selects the deliveries of a cause. */
export interface CauseFilter {
  /** The subscriptions that may have such deliveries. */
  readonly subscriptions: readonly number[];
  /** A condition on the delivery `d` and its subscription `s`, with its values. */
  readonly condition: string;
  readonly values: readonly SqlValue[];
  /** The pending ones among them come after this in the index of what is due. */
  readonly pendingAfter: DuePosition;
}

/** A place in the index of what is due of a subscription. */
export type DuePosition = readonly [priority: number, dueMs: number];

/** The place before all that is due. */
export const FIRST_DUE: DuePosition = [REQUESTED, NEVER_MS];

export function activeReceivers(sql: Sql, nowMs: number): readonly Receiver[] {
  return loadReceivers(sql, nowMs).filter(({ isActive }) => isActive);
}

/** @param name a cause that is no status as well */
export function filterByCause(sql: Sql, name: BacklogCause, nowMs: number): CauseFilter {
  const active = activeReceivers(sql, nowMs);
  const waiting = active.filter(({ isWaiting }) => isWaiting).map(({ id }) => id);
  const isOfAny = name === "waiting" || name === "blocked";
  const having = active.filter(({ nowCause }) => isOfAny || nowCause === name);
  const isLater = `${IS_OPEN} AND NOT ${IS_NOW} AND NOT ${IS_BLOCKED}`;
  const condition = name === "waiting" ? isLater : name === "blocked" ? IS_BLOCKED : IS_NOW;
  return {
    subscriptions: having.map(({ id }) => id),
    condition: `${condition} AND NOT ${LEASE_OF("d")}`,
    values: name === "blocked" ? [] : [nowMs, JSON.stringify(waiting)],
    pendingAfter: name === "waiting" && waiting.length === 0 ? [NORMAL, nowMs] : FIRST_DUE,
  };
}

/** Counts what is unfinished of a subscription, or was cancelled with it, up to about `max`. */
export function countUnfinished(
  sql: Sql,
  subscription: number,
  max: number,
): { readonly deliveries: number; readonly isLeast: boolean } {
  const pending = sql.value<number>(`SELECT count(*) FROM (SELECT 1 ${PENDING} LIMIT ?2)`, subscription, max);
  const behind = countBehind(sql, subscription, max);
  return { deliveries: pending + behind, isLeast: pending >= max || behind >= max };
}

/** Counts what is unfinished of a subscription, or was cancelled with it, without what is under way. */
export function countPending(sql: Sql, subscription: number): number {
  const { deliveries } = countUnfinished(sql, subscription, Number.MAX_SAFE_INTEGER);
  return deliveries - (loadLeased(sql).get(subscription)?.deliveries ?? 0);
}
