import type { BacklogCause } from "../../../domain/stats/stats.ts";
import { MAX_BLOCKED_KEYS } from "../../../domain/subscription.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import { type Sql, type SqlValue, timeOf } from "../thread/sql.ts";
import {
  DELIVERY_STATE,
  LEASE_OF,
  NORMAL,
  REQUESTED,
  settingOf,
  UNFINISHED_STATES,
} from "./delivery-state.ts";
import { BLOCKED_BY, headOf } from "./order.ts";
import { type DueRow, type SubscriptionWithDue, subscriptionsWithDue } from "./pending-index.ts";

// What decides about the cause of an unfinished delivery: by it they are counted, see backlog.ts, and listed, see
// delivery-list.ts.

/** No delivery is due later than the end, and before the other only those that persons requested. */
export const END_MS = Number.MAX_SAFE_INTEGER;
export const NONE_MS = Number.MIN_SAFE_INTEGER;

export interface Leased {
  readonly id: number;
  readonly leased: number;
  /** Those of them that persons requested. */
  readonly requested: number;
  readonly since_ms: number;
}

export function loadLeased(sql: Sql): readonly Leased[] {
  return sql.rows<Leased>(
    `SELECT d.subscription_id AS id, count(*) AS leased, count(*) FILTER (WHERE d.priority = ${REQUESTED}) AS requested,
        min(l.claimed_ms) AS since_ms
      FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id GROUP BY d.subscription_id`,
  );
}

/** What of a subscription may be sent now. */
export interface ClaimWindow {
  readonly id: number;
  readonly isActive: boolean;
  readonly isOrdered: boolean;
  /** What is due later than this waits. */
  readonly dueByMs: number;
  /** Nothing was due before, except what persons requested. */
  readonly notBeforeMs: number;
  readonly leasedDue: number;
  readonly leasedLater: number;
  /** Whether the first that is due later may be sent now. */
  readonly isHeadDue: boolean;
}

/** As in `claimDue`: of one that waits only what persons requested, of an ordered one its first when none is leased. */
export function claimWindowOf(
  { id, isActive, isOrdered, waitEndMs }: SubscriptionWithDue,
  { leased, requested }: Pick<Leased, "leased" | "requested"> = { leased: 0, requested: 0 },
  nowMs: number,
): ClaimWindow {
  const waits = waitEndMs > nowMs;
  const common = { id, isActive, isOrdered, notBeforeMs: isActive ? waitEndMs : 0 };
  if (isActive && (waits || isOrdered)) {
    const isHeadDue = isOrdered && !waits && leased === 0;
    return { ...common, dueByMs: NONE_MS, leasedDue: requested, leasedLater: leased - requested, isHeadDue };
  }
  // Those under way are among the due ones.
  return {
    ...common,
    dueByMs: isOrdered ? END_MS : nowMs,
    leasedDue: leased,
    leasedLater: 0,
    isHeadDue: false,
  };
}

type OpenCause = Exclude<BacklogCause, "delivering" | "held">;

/** The causes of what an active subscription may send now, and of the rest. */
export function causesIn(
  { leasedDue, leasedLater }: Pick<ClaimWindow, "leasedDue" | "leasedLater">,
  isPaced: boolean,
  isBlocked: boolean,
): readonly [due: OpenCause, later: OpenCause] {
  const unpaced = leasedDue + leasedLater > 0 ? "busy" : "due";
  return [isPaced ? "paced" : unpaced, isBlocked ? "blocked" : "waiting"];
}

/** The keys of a subscription that are blocked, each with when the delivery that blocks it was made. */
export function blockedKeysOf(sql: Sql, subscriptionId: number): ReadonlyMap<number, number> {
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

/** An active subscription with unfinished deliveries, and what decides about their causes. */
export interface BacklogWindow {
  readonly id: number;
  readonly dueByMs: number;
  readonly dueCause: OpenCause;
  readonly laterCause: OpenCause;
  /** The first in its order, where that may be sent now. */
  readonly headId: number | null;
  /** The one that blocks, where that waits for its own next attempt. */
  readonly blockerId: number | null;
  readonly isKeyed: boolean;
  readonly blockedKeys: ReadonlyMap<number, number>;
}

interface WindowRow {
  readonly id: number;
  readonly requested: number;
  readonly head_id: number | null;
  readonly blocked_by: number | null;
  readonly is_paced: number;
  readonly is_keyed: number;
}

/** A step looks at so many subscriptions. */
const STEP_SUBSCRIPTIONS = 20;

/** @param chosen the subscriptions to look at; all, if it is left out */
export function* backlogWindows(
  sql: Sql,
  nowMs: number,
  chosen?: readonly number[],
): Steps<ReadonlyMap<number, BacklogWindow>> {
  const ids = chosen && new Set(chosen);
  const leased = new Map(loadLeased(sql).map((row) => [row.id, row]));
  const living = (yield* subscriptionsWithDue(sql, nowMs)).filter(
    ({ id, isActive, isDeleted }) => isActive && !isDeleted && ids?.has(id) !== false,
  );
  const windows = new Map<number, BacklogWindow>();
  for (let at = 0; at < living.length; at += STEP_SUBSCRIPTIONS) {
    const some = living.slice(at, at + STEP_SUBSCRIPTIONS);
    const claimable = new Map(some.map((one) => [one.id, claimWindowOf(one, leased.get(one.id), nowMs)]));
    for (const row of loadWindows(sql, [...claimable.keys()])) {
      const window = claimable.get(row.id)!;
      const isBlocked = window.isOrdered && row.blocked_by !== null;
      const [dueCause, laterCause] = causesIn(window, row.is_paced === 1, isBlocked);
      const headId = window.isHeadDue && row.requested === 0 ? row.head_id : null;
      const waits = isBlocked && headId === null && window.leasedDue + window.leasedLater === 0;
      windows.set(row.id, {
        id: row.id,
        dueByMs: window.dueByMs,
        dueCause,
        laterCause,
        headId,
        blockerId: waits ? row.blocked_by : null,
        isKeyed: row.is_keyed === 1,
        blockedKeys: row.is_keyed === 1 ? blockedKeysOf(sql, row.id) : new Map(),
      });
    }
    yield;
  }
  return windows;
}

function loadWindows(sql: Sql, ids: readonly number[]): readonly WindowRow[] {
  return sql.rows<WindowRow>(
    `SELECT s.rowid AS id,
        EXISTS (SELECT 1 FROM delivery AS w INDEXED BY delivery_due
          WHERE w.subscription_id = s.rowid AND w.priority = ${REQUESTED} AND w.due_ms IS NOT NULL) AS requested,
        iif(s.ordered = 1, (SELECT w.rowid ${headOf("s.rowid")}), NULL) AS head_id,
        iif(s.ordered = 1, ${BLOCKED_BY}, NULL) AS blocked_by,
        s.mode = 'pull' OR ${settingOf("rate_limit")} IS NOT NULL AS is_paced,
        EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_key
          WHERE subscription_id = s.rowid AND key IS NOT NULL AND state IN ${UNFINISHED_STATES}) AS is_keyed
      FROM json_each(?) AS p CROSS JOIN subscription AS s ON s.rowid = p.value`,
    JSON.stringify(ids),
  );
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

export function isDueBy(
  { priority, due_ms: dueMs }: Pick<DueRow, "priority" | "due_ms">,
  byMs: number,
): boolean {
  return priority < NORMAL || (priority === NORMAL && dueMs <= byMs);
}

/** Why it is unfinished; `undefined` where its subscription is not among these. */
export function causeOf(
  { id, subscription_id: subscription, state, priority, due_ms: dueMs, key }: OpenRow,
  windows: ReadonlyMap<number, BacklogWindow>,
): OpenCause | undefined {
  const window = windows.get(subscription);
  if (window === undefined) return undefined;
  const { dueByMs, dueCause, laterCause, headId, blockerId, blockedKeys } = window;
  if (state === DELIVERY_STATE.behind) {
    return key !== null && blockedKeys.has(key) ? "blocked" : "waiting";
  }
  if (dueMs === null) return undefined;
  if (id === headId || isDueBy({ priority, due_ms: dueMs }, dueByMs)) return dueCause;
  return id === blockerId ? "waiting" : laterCause;
}

/** Whether a subscription may have deliveries with this cause. */
export function hasCause(window: BacklogWindow, cause: BacklogCause): boolean {
  const { dueCause, laterCause, blockerId, isKeyed, blockedKeys } = window;
  if (dueCause === cause || laterCause === cause) return true;
  if (cause === "waiting") return isKeyed || blockerId !== null;
  return cause === "blocked" && blockedKeys.size > 0;
}

/** Where in the index of what is due those with this cause are; others may be among them. */
export function dueRanges(
  { dueByMs, dueCause, laterCause }: BacklogWindow,
  cause: BacklogCause,
): readonly { readonly from: DueRow | undefined; readonly toMs: number }[] {
  return [
    ...(dueCause === cause ? [{ from: undefined, toMs: dueByMs }] : []),
    ...(laterCause === cause
      ? [{ from: { priority: NORMAL, due_ms: dueByMs, id: END_MS }, toMs: END_MS }]
      : []),
  ];
}
