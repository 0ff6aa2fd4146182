import { BACKLOG_CAUSES, type BacklogCause, type StatsBacklog } from "../../../domain/stats/stats.ts";
import type { StatsSelection } from "../../queue.ts";
import { matchOf } from "../catalog/matching.ts";
import { isoOrNull, type Sql, type SqlValue } from "../sql.ts";
import {
  BEHIND_OF,
  DELIVERY_STATE,
  IS_OPEN,
  LEASE_OF,
  PENDING_OF,
  settingOf,
  UNFINISHED_STATES,
  WAIT_END,
} from "./delivery-state.ts";
import { BLOCKS, FAILING, IS_EXHAUSTED } from "./key-order.ts";

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
  readonly isActive: number;
  /** When the subscription's wait ends or ended; 0 where there was none. */
  readonly waitEndMs: number;
  /** The cause of what is to be sent now. */
  readonly nowCause: BacklogCause;
  /** How many deliveries are leased, and since when the first is. */
  readonly leased: number;
  readonly leasedSinceMs: number | null;
}

/**
 * Answers the rowids of the subscriptions of a selection, deleted ones too; `undefined` for all. An action selects those that match
 * it, and by default those that did.
 * @param state a further condition on the subscription, and `match` on how it is bound to the action, `m`
 */
export async function selectSubscriptions(
  sql: Sql,
  { subscription, applications, action }: StatsSelection,
  state?: string,
  match = "TRUE",
): Promise<readonly number[] | undefined> {
  if ((subscription ?? applications ?? action ?? state) === undefined) return undefined;
  const named = matchOf(action, "a.action");
  return await sql.column(
    `SELECT rowid FROM subscription
      WHERE ${state ?? "TRUE"} AND (?1 IS NULL OR rowid = ?1)
        AND (?2 IS NULL OR application IN list(?2: name text))
        AND (?3 IS NULL OR rowid IN (
          SELECT m.subscription_id FROM binding AS m JOIN action AS a ON a.rowid = m.action_id
          WHERE ${named.condition} AND ${match}))`,
    subscription,
    applications,
    action,
    ...named.values,
  );
}

/** Reads those of the subscriptions, or of all, that have something unfinished, without deleted ones. */
async function loadReceivers(sql: Sql, ids: readonly number[] | undefined): Promise<readonly Receiver[]> {
  return await sql.rows<Receiver>(
    `SELECT s.rowid AS id, s.active AS isActive, ${WAIT_END} AS waitEndMs,
        CASE WHEN s.active = 0 THEN 'held' WHEN s.mode = 'pull' OR ${settingOf("rate_limit")} IS NOT NULL THEN 'paced'
          WHEN leased.deliveries > 0 THEN 'busy' ELSE 'due' END AS nowCause,
        coalesce(leased.deliveries, 0) AS leased, leased.since_ms AS leasedSinceMs
      FROM subscription AS s LEFT JOIN (
        SELECT d.subscription_id, count(*) AS deliveries, min(l.claimed_ms) AS since_ms
        FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id GROUP BY 1) AS leased ON leased.subscription_id = s.rowid
      WHERE s.deleted_ms IS NULL AND (?1 IS NULL OR s.rowid IN list(?1: id bigint))
        AND EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_due WHERE subscription_id = s.rowid AND due_ms IS NOT NULL)`,
    ids,
  );
}

/** Each subscription's deliveries are counted in the indexes of what is due and of keys, up to about `max` of all. */
export async function countBacklog(
  sql: Sql,
  nowMs: number,
  selection: StatsSelection = {},
  max = MAX_COUNTED,
): Promise<StatsBacklog> {
  const shares: Share[] = [];
  let remaining = max;
  let isWhole = true;
  const receivers = await loadReceivers(
    sql,
    await selectSubscriptions(sql, selection, undefined, "m.receives = 1"),
  );
  // What is paused counts last, where there is too much.
  for (const receiver of receivers.toSorted((one, other) => other.isActive - one.isActive)) {
    const limit = Math.max(remaining, LEAST_EACH);
    const own = await sharesOf(sql, receiver, nowMs, limit);
    const counted = own.reduce((sum, { deliveries }) => sum + deliveries, 0);
    remaining -= counted;
    isWhole &&= counted < limit;
    shares.push(...own);
  }
  const parts = BACKLOG_CAUSES.map((name) => {
    const own = shares.filter(({ cause }) => cause === name);
    // After the clock was set back, more may be leased than are due.
    const deliveries = own.reduce((sum, share) => sum + Math.max(0, share.deliveries), 0);
    const [firstMs = null] = own
      .flatMap(({ sinceMs }) => sinceMs ?? [])
      .toSorted((one, other) => one - other);
    return [name, { deliveries, since: isoOrNull(firstMs) }];
  });
  return { ...Object.fromEntries(parts), is_whole: isWhole } as StatsBacklog;
}

/** Deliveries of a subscription that are unfinished for one cause. */
interface Share {
  readonly cause: BacklogCause;
  readonly deliveries: number;
  readonly sinceMs: number | null;
}

/** SQL of what is behind the deliveries that the subscription `?1` blocks for. */
const BLOCKED = `FROM subscription AS s CROSS JOIN ${FAILING} CROSS JOIN delivery AS b INDEXED BY delivery_key
  ON b.subscription_id = s.rowid AND b.key = f.key AND b.state IN ${UNFINISHED_STATES} AND b.state = ${DELIVERY_STATE.behind}
  WHERE s.rowid = ?1 AND s.active = 1 AND ${BLOCKS} AND ${IS_EXHAUSTED}`;

/** @param limit so many are counted of what is pending, and of what is behind others of its key */
async function sharesOf(
  sql: Sql,
  { id, isActive, waitEndMs, nowCause, leased, leasedSinceMs }: Receiver,
  nowMs: number,
  limit: number,
): Promise<readonly Share[]> {
  const isWaiting = isActive === 1 && waitEndMs > nowMs;
  // What was due all along could only be sent since its wait ended.
  const counted = (await sql.first<Counted>(
    `SELECT count(*) AS pending, count(CASE WHEN due_ms <= ?2 THEN 1 END) AS now,
        (SELECT max(d.due_ms, ?4) ${PENDING_OF} AND d.due_ms <= ?2 AND NOT ${LEASE_OF("d")} ORDER BY d.due_ms LIMIT 1) AS nowSinceMs,
        (SELECT count(*) FROM (SELECT 1 ${BEHIND_OF} LIMIT ?3) AS few) AS behind,
        (SELECT count(*) FROM (SELECT 1 ${BLOCKED} LIMIT ?3) AS few) AS blocked,
        (SELECT min(ms) FROM (SELECT f.created_ms AS ms ${BLOCKED} LIMIT ?3) AS few) AS blockedSinceMs
      FROM (SELECT d.due_ms ${PENDING_OF} ORDER BY d.due_ms LIMIT ?3) AS first`,
    id,
    isWaiting ? NEVER_MS : nowMs,
    limit,
    isActive === 1 ? waitEndMs : NEVER_MS,
  ))!;
  const { pending, now, nowSinceMs, behind, blocked, blockedSinceMs } = counted;
  // What is leased is among what is due.
  const unleased = isWaiting ? 0 : now - leased;
  const later = pending - leased - unleased + behind - blocked;
  return [
    { cause: "delivering", deliveries: leased, sinceMs: leasedSinceMs },
    { cause: nowCause, deliveries: unleased, sinceMs: nowSinceMs },
    { cause: isActive === 1 ? "waiting" : "held", deliveries: later, sinceMs: null },
    { cause: "blocked", deliveries: blocked, sinceMs: blockedSinceMs },
  ];
}

type Counted = Readonly<Record<"pending" | "now" | "behind" | "blocked", number>> &
  Readonly<Record<"nowSinceMs" | "blockedSinceMs", number | null>>;

const IS_BLOCKED = `(d.state = ${DELIVERY_STATE.behind} AND ${BLOCKS} AND EXISTS (SELECT 1 FROM delivery AS f INDEXED BY delivery_key
  WHERE f.subscription_id = s.rowid AND f.key = d.key AND f.state IN ${UNFINISHED_STATES} AND f.state = ${DELIVERY_STATE.pending}
    AND f.failures > s.max_retries))`;
/** SQL that says whether the delivery `d` is to be sent by a time, which is its value. */
const IS_NOW = `(d.due_ms IS NOT NULL AND max(d.due_ms, ${WAIT_END}) <= ?)`;

/** Selects deliveries; without `subscriptions` those of all. */
export interface DeliveryFilter {
  readonly subscriptions: readonly number[] | undefined;
  /** Conditions on `d`, the delivery, `s`, its subscription, and `a`, its action. */
  readonly conditions: readonly string[];
  readonly values: readonly SqlValue[];
}

/**
 * @param name a cause that is no status as well
 * @param selected the subscriptions of which deliveries are selected; `undefined` for all
 */
export async function filterByCause(
  sql: Sql,
  name: BacklogCause,
  nowMs: number,
  selected: readonly number[] | undefined,
): Promise<DeliveryFilter> {
  const isOfAny = name === "waiting" || name === "blocked";
  const having = (await loadReceivers(sql, selected)).filter(({ isActive, nowCause }) =>
    isOfAny ? isActive === 1 : nowCause === name,
  );
  const isLater = `${IS_OPEN} AND NOT ${IS_NOW} AND NOT ${IS_BLOCKED}`;
  const condition = name === "waiting" ? isLater : name === "blocked" ? IS_BLOCKED : IS_NOW;
  return {
    subscriptions: having.map(({ id }) => id),
    conditions: [condition, `NOT ${LEASE_OF("d")}`],
    values: name === "blocked" ? [] : [nowMs],
  };
}

/** Counts what is unfinished of a subscription, or was cancelled with it, up to about `max`. */
export async function countUnfinished(
  sql: Sql,
  subscription: number,
  max: number,
): Promise<{ readonly deliveries: number; readonly isLeast: boolean }> {
  const { pending, behind } = (await sql.first<{ pending: number; behind: number }>(
    `SELECT (SELECT count(*) FROM (SELECT 1 ${PENDING_OF} LIMIT ?2) AS few) AS pending,
        (SELECT count(*) FROM (SELECT 1 ${BEHIND_OF} LIMIT ?2) AS few) AS behind`,
    subscription,
    max,
  ))!;
  return { deliveries: pending + behind, isLeast: pending >= max || behind >= max };
}

export async function countPending(sql: Sql, subscription: number): Promise<number> {
  return await sql.value(
    `SELECT (SELECT count(*) ${PENDING_OF} AND NOT ${LEASE_OF("d")}) + (SELECT count(*) ${BEHIND_OF})`,
    subscription,
  );
}
