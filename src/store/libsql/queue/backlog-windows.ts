import type { BacklogCause } from "../../../domain/stats/stats.ts";
import { MAX_BLOCKED_KEYS } from "../../../domain/subscription.ts";
import { type Sql, type SqlValue, timeOf } from "../thread/sql.ts";
import {
  DELIVERY_STATE,
  LEASE_OF,
  NORMAL,
  REQUESTED,
  settingOf,
  UNFINISHED_STATES,
} from "./delivery-state.ts";
import { type SubscriptionWithDue, subscriptionsWithDue } from "./pending-index.ts";

// What decides about the cause of an unfinished delivery: by it they are counted, see backlog.ts, and listed, see
// delivery-list.ts.

/** No delivery is due later than the end, and before the other only those that persons requested. */
const END_MS = Number.MAX_SAFE_INTEGER;
const NONE_MS = Number.MIN_SAFE_INTEGER;

export interface LeasedOf {
  readonly id: number;
  readonly leased: number;
  /** Those of them that persons requested. */
  readonly requested: number;
  readonly since_ms: number;
}

/** What is leased, by subscription. */
export function loadLeased(sql: Sql): readonly LeasedOf[] {
  return sql.rows<LeasedOf>(
    `SELECT d.subscription_id AS id, count(*) AS leased, count(*) FILTER (WHERE d.priority = ${REQUESTED}) AS requested,
        min(l.claimed_ms) AS since_ms
      FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id GROUP BY d.subscription_id`,
  );
}

type OpenCause = Exclude<BacklogCause, "delivering">;

/** A subscription with unfinished deliveries, and what decides about their causes. */
export interface BacklogWindow {
  readonly id: number;
  readonly isActive: boolean;
  /** What is due by this time may be sent now, and what is due later waits. */
  readonly dueByMs: number;
  /** Nothing was due before, except what persons requested. */
  readonly notBeforeMs: number;
  /** Of what is leased, how many are due by that time, and later. */
  readonly leasedDue: number;
  readonly leasedLater: number;
  readonly dueCause: OpenCause;
  readonly laterCause: OpenCause;
  readonly isKeyed: boolean;
  /** The keys that are blocked, each with when the delivery that blocks it was made. */
  readonly blockedKeys: ReadonlyMap<number, number>;
}

interface WindowRow {
  readonly id: number;
  readonly is_paced: number;
  readonly is_keyed: number;
}

/** @param chosen the subscriptions to look at; all, if it is left out */
export function backlogWindows(
  sql: Sql,
  nowMs: number,
  chosen?: ReadonlySet<number>,
): ReadonlyMap<number, BacklogWindow> {
  const leased = new Map(loadLeased(sql).map((row) => [row.id, row]));
  const living = new Map(
    subscriptionsWithDue(sql, nowMs).flatMap((one) =>
      one.isDeleted || chosen?.has(one.id) === false ? [] : [[one.id, one]],
    ),
  );
  return new Map(
    loadWindows(sql, [...living.keys()]).map((row) => [
      row.id,
      windowOf(sql, row, living.get(row.id)!, leased.get(row.id), nowMs),
    ]),
  );
}

/** As in `claimDue`: of one that waits only what persons requested. */
function windowOf(
  sql: Sql,
  row: WindowRow,
  { id, isActive, waitEndMs }: SubscriptionWithDue,
  { leased, requested }: Pick<LeasedOf, "leased" | "requested"> = { leased: 0, requested: 0 },
  nowMs: number,
): BacklogWindow {
  const isKeyed = row.is_keyed === 1;
  const common = { id, isActive, isKeyed };
  if (!isActive) {
    return {
      ...common,
      dueByMs: nowMs,
      notBeforeMs: 0,
      leasedDue: leased,
      leasedLater: 0,
      dueCause: "held",
      laterCause: "held",
      blockedKeys: new Map(),
    };
  }
  const unpaced = leased > 0 ? "busy" : "due";
  const active = {
    ...common,
    notBeforeMs: waitEndMs,
    dueCause: row.is_paced === 1 ? "paced" : unpaced,
    laterCause: "waiting",
    blockedKeys: isKeyed ? blockedKeysOf(sql, id) : new Map<number, number>(),
  } as const;
  if (waitEndMs > nowMs) {
    return { ...active, dueByMs: NONE_MS, leasedDue: requested, leasedLater: leased - requested };
  }
  // What is leased is among what is due.
  return { ...active, dueByMs: nowMs, leasedDue: leased, leasedLater: 0 };
}

function loadWindows(sql: Sql, ids: readonly number[]): readonly WindowRow[] {
  return sql.rows<WindowRow>(
    `SELECT s.rowid AS id,
        s.mode = 'pull' OR ${settingOf("rate_limit")} IS NOT NULL AS is_paced,
        EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_key
          WHERE subscription_id = s.rowid AND key IS NOT NULL AND state IN ${UNFINISHED_STATES}) AS is_keyed
      FROM json_each(?) AS p CROSS JOIN subscription AS s ON s.rowid = p.value`,
    JSON.stringify(ids),
  );
}

function blockedKeysOf(sql: Sql, subscriptionId: number): ReadonlyMap<number, number> {
  const rows = sql.rows<{ key: number; since_ms: number }>(
    `SELECT f.key, ${timeOf("f.created_ms")} AS since_ms
      FROM subscription AS s CROSS JOIN delivery AS f INDEXED BY delivery_key_failing ON f.subscription_id = s.rowid
      WHERE s.rowid = ? AND s.order_key IS NOT NULL AND ${settingOf("on_exhausted")} = 'block'
        AND f.key IS NOT NULL AND f.due_ms IS NOT NULL AND f.failures > 0 AND f.failures > s.max_retries
      LIMIT ${MAX_BLOCKED_KEYS}`,
    subscriptionId,
  );
  return new Map(rows.map(({ key, since_ms: sinceMs }) => [key, sinceMs]));
}

/** A delivery that is unfinished and not under way. */
export interface OpenRow {
  readonly id: number;
  readonly subscription_id: number;
  readonly state: number;
  readonly priority: number;
  readonly due_ms: number | null;
  readonly key: number | null;
}

/** Those of the candidates that are unfinished and not under way, in their order. */
export function loadOpen(sql: Sql, candidates: string, bound: readonly SqlValue[]): readonly OpenRow[] {
  return sql.rows<OpenRow>(
    `SELECT page.id, d.subscription_id, d.state, d.priority, d.due_ms, d.key
      FROM (${candidates}) AS page CROSS JOIN delivery AS d ON d.rowid = page.id
      WHERE d.state IN ${UNFINISHED_STATES} AND NOT ${LEASE_OF("d")}`,
    ...bound,
  );
}

/** Why it is unfinished; `undefined` where its subscription is not among these. */
export function causeOf(
  { subscription_id: subscription, state, priority, due_ms: dueMs, key }: OpenRow,
  windows: ReadonlyMap<number, BacklogWindow>,
): OpenCause | undefined {
  const window = windows.get(subscription);
  if (window === undefined) return undefined;
  const { dueByMs, dueCause, laterCause, blockedKeys } = window;
  if (!window.isActive) return "held";
  if (state === DELIVERY_STATE.behind) {
    return key !== null && blockedKeys.has(key) ? "blocked" : "waiting";
  }
  if (dueMs === null) return undefined;
  const isDue = priority < NORMAL || (priority === NORMAL && dueMs <= dueByMs);
  return isDue ? dueCause : laterCause;
}

/** Whether a subscription may have deliveries with this cause. */
export function hasCause(window: BacklogWindow, cause: BacklogCause): boolean {
  const { isActive, dueCause, laterCause, isKeyed, blockedKeys } = window;
  if (dueCause === cause || laterCause === cause) return true;
  if (!isActive) return false;
  if (cause === "waiting") return isKeyed;
  return cause === "blocked" && blockedKeys.size > 0;
}

/** Entries of the index of what is due: those of a subscription from after one position up to another. */
export type DueRange = readonly [
  subscription: number,
  afterPriority: number,
  afterMs: number,
  toPriority: number,
  toMs: number,
];

/** SQL that is true of the entries of `delivery` in the range `range`, a JSON value. */
export function isInRange(range: string): string {
  return `delivery.subscription_id = ${range} ->> 0 AND delivery.due_ms IS NOT NULL
    AND (delivery.priority, delivery.due_ms) > (${range} ->> 1, ${range} ->> 2)
    AND (delivery.priority, delivery.due_ms) <= (${range} ->> 3, ${range} ->> 4)`;
}

export function dueRange({ id, dueByMs }: Pick<BacklogWindow, "id" | "dueByMs">): DueRange {
  return [id, REQUESTED, NONE_MS, NORMAL, dueByMs];
}

export function laterRange({ id, dueByMs }: Pick<BacklogWindow, "id" | "dueByMs">): DueRange {
  return [id, NORMAL, dueByMs, NORMAL, END_MS];
}

/** All that is pending of a subscription. */
export function pendingRange(id: number): DueRange {
  return [id, REQUESTED, NONE_MS, NORMAL, END_MS];
}

/** Where those with this cause are; others may be among them. */
export function rangesOf(window: BacklogWindow, cause: BacklogCause): readonly DueRange[] {
  return [
    ...(window.dueCause === cause ? [dueRange(window)] : []),
    ...(window.laterCause === cause ? [laterRange(window)] : []),
  ];
}
