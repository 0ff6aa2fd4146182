import type { Backlog, BacklogOf } from "../../queue.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import { matchOf } from "../catalog/matching.ts";
import { type Sql, timeOf } from "../thread/sql.ts";
import { earliestOf } from "./fair-share.ts";
import {
  blockedKeysOf,
  causesIn,
  claimWindowOf,
  type ClaimWindow,
  END_MS,
  type Leased,
  loadLeased,
  NONE_MS,
} from "./backlog-windows.ts";
import { type KeyedRow, keySlice, subscriptionsWithDue, type SubscriptionWithDue } from "./pending-index.ts";
import { DELIVERY_STATE, NORMAL, REQUESTED, settingOf, UNFINISHED_STATES } from "./delivery-state.ts";
import { BLOCKED_BY, headOf } from "./order.ts";

/** Deliveries that one answer may count, in steps: some 30 ms of the store's thread. */
const MAX_COUNTED = 200_000;
const STEP_DELIVERIES = 4_000;
/** A step looks at so many subscriptions, and counts so many deliveries of each; longer ones are counted by themselves. */
const STEP_SUBSCRIPTIONS = 20;
const FIRST_COUNT = 100;

type Part = { -readonly [K in keyof Backlog["due"]]: Backlog["due"][K] };

function emptyPart(): Part {
  return { deliveries: 0, sinceMs: undefined };
}

type FirstCounts = readonly [
  due: number,
  later: number,
  /** `null` where none is due. */
  first: readonly [priority: number, dueMs: number] | null,
  /** Of one whose first is due in its order, when that was made. */
  headMs: number | null,
  isPaced: number,
];

interface CountOptions {
  readonly max?: number;
  readonly slice?: number;
  readonly firstCount?: number;
  /** Whose deliveries count; by default all. */
  readonly of?: BacklogOf | undefined;
}

/**
 * What is unfinished, by what it waits for. Walks the index of pending deliveries, subscription by subscription, up to
 * `max` deliveries.
 */
export function* countBacklog(
  sql: Sql,
  nowMs: number,
  { max = MAX_COUNTED, slice = STEP_DELIVERIES, firstCount = FIRST_COUNT, of }: CountOptions = {},
): Steps<Backlog> {
  const chosen = of === undefined ? undefined : chosenBy(sql, of);
  const [due, busy, paced, waiting] = [emptyPart(), emptyPart(), emptyPart(), emptyPart()];
  const [delivering, held, blocked] = [emptyPart(), emptyPart(), emptyPart()];
  const parts = { due, busy, paced, waiting, blocked };
  const leasedOf = new Map<number, Leased>();
  for (const row of loadLeased(sql)) {
    if (chosen?.has(row.id) === false) continue;
    leasedOf.set(row.id, row);
    delivering.deliveries += row.leased;
    delivering.sinceMs = earliestOf(delivering.sinceMs, row.since_ms);
  }
  yield;
  let remaining = max;
  const living = (yield* subscriptionsWithDue(sql, nowMs)).filter(
    ({ id, isDeleted }) => !isDeleted && chosen?.has(id) !== false,
  );
  const long: Remaining[] = [];
  for (let at = 0; at < living.length; at += STEP_SUBSCRIPTIONS) {
    const some = living.slice(at, at + STEP_SUBSCRIPTIONS).map((subscription) => {
      return claimWindowOf(subscription, leasedOf.get(subscription.id), nowMs);
    });
    const limit = Math.max(1, Math.min(firstCount, Math.floor(remaining / some.length)));
    const counts = countFirst(sql, some, limit);
    const blocking = loadBlocking(sql, some);
    for (const [index, [dueCount, laterCount, first, headMs, isPaced]] of counts.entries()) {
      const { id, isActive, dueByMs, notBeforeMs, leasedDue, leasedLater, isHeadDue } = some[index]!;
      const blockedMs = blocking.get(id);
      const [dueCause, laterCause] = causesIn(some[index]!, isPaced === 1, blockedMs !== undefined);
      const [duePart, laterPart] = isActive ? [parts[dueCause], parts[laterCause]] : [held, held];
      remaining -= dueCount + laterCount;
      const [priority, sinceMs] = first ?? [NORMAL, headMs];
      if (sinceMs !== null) {
        const waited = priority === REQUESTED ? sinceMs : Math.max(sinceMs, notBeforeMs);
        duePart.sinceMs = earliestOf(duePart.sinceMs, waited);
      }
      const heads = isHeadDue && dueCount === 0 && laterCount > 0 ? 1 : 0;
      duePart.deliveries += heads;
      const shown = { counted: dueCount, elsewhere: leasedDue, part: duePart };
      if (dueCount === limit) long.push({ ...shown, id, from: START, toMs: dueByMs });
      else add(shown);
      // The one that blocks waits for its next attempt itself.
      const blockers = laterPart === blocked && leasedDue + leasedLater + heads === 0 ? 1 : 0;
      waiting.deliveries += blockers;
      if (laterPart === blocked && laterCount > 1) blocked.sinceMs = earliestOf(blocked.sinceMs, blockedMs);
      const elsewhere = leasedLater + heads + blockers;
      const later = { counted: laterCount, elsewhere, part: laterPart };
      if (laterCount === limit)
        long.push({ ...later, id, from: { priority: NORMAL, due_ms: dueByMs }, toMs: END_MS });
      else add(later);
    }
    yield;
  }
  let isWhole = true;
  for (const { id, isActive } of yield* withKeys(sql, living)) {
    const keys = isActive ? blockedKeysOf(sql, id) : new Map<number, number>();
    const { counted, behindBlocked, isAll } = yield* countBehind(sql, id, remaining, keys);
    (isActive ? waiting : held).deliveries += counted - behindBlocked;
    blocked.deliveries += behindBlocked;
    if (behindBlocked > 0) blocked.sinceMs = earliestOf(blocked.sinceMs, Math.min(...keys.values()));
    remaining -= counted;
    isWhole &&= isAll;
  }
  for (const range of long) {
    let after: IndexPosition | undefined = range.from;
    for (let counted = 0; remaining > 0 && after !== undefined; yield) {
      const found = countSlice(sql, { ...range, from: after }, slice);
      counted += found.counted;
      remaining -= found.counted;
      after = found.end;
      range.counted = Math.max(range.counted, counted);
    }
    if (after !== undefined) isWhole = false;
    add(range);
  }
  return { due, busy, paced, waiting, blocked, delivering, held, isWhole };
}

/** Their rowids. */
function chosenBy(sql: Sql, { applications, subscription, action }: BacklogOf): ReadonlySet<number> {
  const match = action === undefined ? undefined : matchOf(action, "a.action");
  const matching =
    match === undefined
      ? ""
      : `AND EXISTS (SELECT 1 FROM binding AS b INDEXED BY binding_subscription CROSS JOIN action AS a ON a.rowid = b.action_id
          WHERE b.subscription_id = s.rowid AND b.receives = 1 AND ${match.condition})`;
  const rows = sql.rows<{ id: number }>(
    `SELECT s.rowid AS id FROM subscription AS s WHERE s.deleted_ms IS NULL
      AND (? IS NULL OR s.rowid = ?) AND (? IS NULL OR s.application IN (SELECT value FROM json_each(?))) ${matching}`,
    ...twice(subscription ?? null),
    ...twice(applications === undefined ? null : JSON.stringify(applications)),
    ...(match?.values ?? []),
  );
  return new Set(rows.map(({ id }) => id));
}

function twice<T>(value: T): [T, T] {
  return [value, value];
}

/** Of those that are ordered as a whole and blocked, when the delivery that blocks was made. */
function loadBlocking(sql: Sql, windows: readonly ClaimWindow[]): ReadonlyMap<number, number> {
  const ordered = windows.filter(({ isOrdered, isActive }) => isOrdered && isActive).map(({ id }) => id);
  if (ordered.length === 0) return new Map();
  const rows = sql.rows<{ id: number; since_ms: number | null }>(
    `SELECT s.rowid AS id, (SELECT ${timeOf("d.created_ms")} FROM delivery AS d WHERE d.rowid = ${BLOCKED_BY}) AS since_ms
      FROM json_each(?) AS p CROSS JOIN subscription AS s ON s.rowid = p.value WHERE s.ordered = 1`,
    JSON.stringify(ordered),
  );
  return new Map(rows.flatMap(({ id, since_ms: sinceMs }) => (sinceMs === null ? [] : [[id, sinceMs]])));
}

/** Those with unfinished deliveries in an order by key. */
function* withKeys(sql: Sql, living: readonly SubscriptionWithDue[]): Steps<readonly SubscriptionWithDue[]> {
  const byId = new Map(living.map((one) => [one.id, one]));
  const found: SubscriptionWithDue[] = [];
  for (let last = 0; ;) {
    const next = sql.first<{ id: number | null }>(
      `SELECT min(subscription_id) AS id FROM delivery INDEXED BY delivery_key
        WHERE key IS NOT NULL AND state IN ${UNFINISHED_STATES} AND subscription_id > ?`,
      last,
    );
    if (next === undefined || next.id === null) return found;
    last = next.id;
    const one = byId.get(last);
    if (one !== undefined) found.push(one);
    yield;
  }
}

interface CountedBehind {
  readonly counted: number;
  /** Those of them whose key is blocked. */
  readonly behindBlocked: number;
  readonly isAll: boolean;
}

/** How many are behind others of their keys, of so many unfinished ones at most. */
function* countBehind(
  sql: Sql,
  subscription: number,
  max: number,
  blockedKeys: ReadonlyMap<number, number>,
): Steps<CountedBehind> {
  let counted = 0;
  let behindBlocked = 0;
  let left = max;
  for (let last: KeyedRow | undefined; left > 0;) {
    const limit = Math.min(STEP_DELIVERIES, left);
    const slice = keySlice(sql, subscription, last, limit);
    const behind = slice.filter(({ state }) => state === DELIVERY_STATE.behind);
    counted += behind.length;
    behindBlocked += behind.filter(({ key }) => blockedKeys.has(key)).length;
    if (slice.length < limit) return { counted, behindBlocked, isAll: true };
    left -= slice.length;
    last = slice.at(-1);
    yield;
  }
  return { counted, behindBlocked, isAll: false };
}

/** Deliveries of one subscription that belong to a part. */
interface Counted {
  counted: number;
  /** How many of these are in another part. */
  readonly elsewhere: number;
  readonly part: Part;
}

/** A position among the pending deliveries of a subscription in the index; requested ones are first. */
interface IndexPosition {
  readonly priority: number;
  readonly due_ms: number;
}

const START: IndexPosition = { priority: REQUESTED, due_ms: NONE_MS };

/** To be counted further: all after `from` that are due by `toMs`. */
interface Remaining extends Counted {
  readonly id: number;
  readonly from: IndexPosition;
  readonly toMs: number;
}

/** After the clock was set back, some that are under way may be due in the future. */
function add({ counted, elsewhere, part }: Counted): void {
  part.deliveries += Math.max(0, counted - elsewhere);
}

/** What of the subscription `requested` is due by its time, and what is due later. */
const PENDING =
  "FROM delivery AS w INDEXED BY delivery_due WHERE w.subscription_id = requested.value ->> 0 AND w.due_ms IS NOT NULL";
const IS_DUE = `(w.priority, w.due_ms) <= (${NORMAL}, requested.value ->> 1)`;
const IS_LATER = `(w.priority, w.due_ms) > (${NORMAL}, requested.value ->> 1)`;
const FIRST_DUE = `${PENDING} AND ${IS_DUE} AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = w.rowid)
  ORDER BY w.priority, w.due_ms LIMIT 1`;

function countFirst(sql: Sql, windows: readonly ClaimWindow[], limit: number): readonly FirstCounts[] {
  const requested = windows.map(({ id, dueByMs, isHeadDue }) => [id, dueByMs, isHeadDue ? 1 : 0]);
  const { counts } = sql.first<{ counts: string }>(
    `SELECT json_group_array(json_array(
        (SELECT count(*) FROM (SELECT 1 ${PENDING} AND ${IS_DUE} LIMIT ?2)),
        (SELECT count(*) FROM (SELECT 1 ${PENDING} AND ${IS_LATER} LIMIT ?2)),
        json((SELECT json_array(w.priority, ${timeOf("w.due_ms")}) ${FIRST_DUE})),
        CASE WHEN requested.value ->> 2 THEN (SELECT w.created_ms ${headOf("(requested.value ->> 0)")}) END,
        (SELECT s.mode = 'pull' OR ${settingOf("rate_limit")} IS NOT NULL FROM subscription AS s WHERE s.rowid = requested.value ->> 0))) AS counts
      FROM json_each(?1) AS requested`,
    JSON.stringify(requested),
    limit,
  )!;
  return JSON.parse(counts) as FirstCounts[];
}

/** Counts about `slice` more; all with the same priority and time at once. `end` is where to continue, if there is more. */
function countSlice(
  sql: Sql,
  { id, from, toMs }: Pick<Remaining, "id" | "from" | "toMs">,
  slice: number,
): { readonly counted: number; readonly end: IndexPosition | undefined } {
  const within = `FROM delivery INDEXED BY delivery_due WHERE subscription_id = ?1 AND due_ms IS NOT NULL
    AND (priority, due_ms) > (?2, ?3) AND (priority, due_ms) <= (?4, ?5)`;
  const end = sql.first<IndexPosition>(
    `SELECT priority, due_ms ${within} ORDER BY priority, due_ms LIMIT 1 OFFSET ?6`,
    id,
    from.priority,
    from.due_ms,
    NORMAL,
    toMs,
    slice - 1,
  );
  const { counted } = sql.first<{ counted: number }>(
    `SELECT count(*) AS counted ${within}`,
    id,
    from.priority,
    from.due_ms,
    end?.priority ?? NORMAL,
    end?.due_ms ?? toMs,
  )!;
  return { counted, end };
}
