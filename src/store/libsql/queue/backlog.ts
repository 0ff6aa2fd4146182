import type { Backlog } from "../../queue.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import type { Sql } from "../thread/sql.ts";
import { earlier, LONGEST_ORDERED_MS, LONGEST_SLOWNESS_MS } from "./claim.ts";
import { subscriptionsWithDue, type SubscriptionWithDue } from "./delivery-list.ts";
import { ASKED_BY_MS, plannedMs } from "./delivery-state.ts";

/** How much of the index one answer may go through: some 30 ms of the store's thread, in steps. */
const MOST_COUNTED = 200_000;
/** A step's share of it. */
const SLICE = 4_000;
/** So many subscriptions are looked at in a step, each for so many deliveries; who has more is counted by itself. */
const SUBSCRIPTIONS_AT_ONCE = 20;
const FIRST_LOOK = 100;
/** No delivery is due later. */
const END_MS = Number.MAX_SAFE_INTEGER;

interface Part {
  deliveries: number;
  sinceMs: number | undefined;
}

interface Leased {
  readonly id: number;
  readonly leased: number;
  /** Those of them that persons asked for. */
  readonly asked: number;
  readonly since_ms: number;
}

/** Where to look, at one subscription. */
type Asked = readonly [id: number, dueByMs: number, firstByMs: number];

type FirstLook = readonly [due: number, later: number, firstDueMs: number | null, isPaced: number];

/**
 * What is unfinished, by what it waits for. Goes through the index of what waits, subscription by subscription, and no
 * further than `most` of it: past that, numbers are what was counted so far.
 */
export function* countBacklog(
  sql: Sql,
  nowMs: number,
  { most = MOST_COUNTED, slice = SLICE, firstLook = FIRST_LOOK } = {},
): Steps<Backlog> {
  const due: Part = { deliveries: 0, sinceMs: undefined };
  const busy: Part = { deliveries: 0, sinceMs: undefined };
  const paced: Part = { deliveries: 0, sinceMs: undefined };
  const waiting: Part = { deliveries: 0, sinceMs: undefined };
  const delivering: Part = { deliveries: 0, sinceMs: undefined };
  const held: Part = { deliveries: 0, sinceMs: undefined };
  const leasedOf = new Map<number, Leased>();
  for (const row of loadLeased(sql)) {
    leasedOf.set(row.id, row);
    delivering.deliveries += row.leased;
    delivering.sinceMs = earlier(delivering.sinceMs, row.since_ms);
  }
  yield;
  let left = most;
  const living = (yield* subscriptionsWithDue(sql)).filter(({ isDeleted }) => !isDeleted);
  const long: Long[] = [];
  for (let at = 0; at < living.length; at += SUBSCRIPTIONS_AT_ONCE) {
    const some = living.slice(at, at + SUBSCRIPTIONS_AT_ONCE).map((subscription) => {
      const { leased = 0, asked = 0 } = leasedOf.get(subscription.id) ?? {};
      return turnOf(subscription, { leased, asked }, nowMs);
    });
    const limit = Math.max(1, Math.min(firstLook, Math.floor(left / some.length)));
    const looks = lookFirst(sql, some, limit);
    for (const [index, [dueCount, laterCount, firstDueMs, isPaced]] of looks.entries()) {
      const { id, isActive, dueByMs, notBeforeMs, leasedDue, leasedLater, isHeadDue } = some[index]!;
      const unpaced = leasedDue + leasedLater > 0 ? busy : due;
      const [duePart, laterPart] = isActive ? [isPaced === 1 ? paced : unpaced, waiting] : [held, held];
      left -= dueCount + laterCount;
      duePart.sinceMs = earlier(duePart.sinceMs, sinceOf(firstDueMs, notBeforeMs));
      // The first of an ordered one has a place instead of a time.
      const heads = isHeadDue && dueCount === 0 && laterCount > 0 ? 1 : 0;
      duePart.deliveries += heads;
      const shown = { counted: dueCount, elsewhere: leasedDue, part: duePart };
      if (dueCount === limit) long.push({ ...shown, id, fromMs: Number.MIN_SAFE_INTEGER, toMs: dueByMs });
      else add(shown);
      const later = { counted: laterCount, elsewhere: leasedLater + heads, part: laterPart };
      if (laterCount === limit) long.push({ ...later, id, fromMs: dueByMs, toMs: END_MS });
      else add(later);
    }
    yield;
  }
  let isWhole = true;
  for (const range of long) {
    let afterMs: number | undefined = range.fromMs;
    for (let counted = 0; left > 0 && afterMs !== undefined; yield) {
      const found = countSlice(sql, { ...range, fromMs: afterMs }, slice);
      counted += found.counted;
      left -= found.counted;
      afterMs = found.endMs;
      range.counted = Math.max(range.counted, counted);
    }
    if (afterMs !== undefined) isWhole = false;
    add(range);
  }
  return { due, busy, paced, waiting, delivering, held, isWhole };
}

/** What a look at one subscription showed. */
interface Shown {
  counted: number;
  /** So many of these are in another part. */
  readonly elsewhere: number;
  readonly part: Part;
}

/** One that has more than the first look showed: all that is due after `fromMs` up to `toMs`. */
interface Long extends Shown {
  readonly id: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** A clock that was set back may make some that are under way due in times to come. */
function add({ counted, elsewhere, part }: Shown): void {
  part.deliveries += Math.max(0, counted - elsewhere);
}

/** As few rows as the engine sends at a time, and a little ahead. */
function loadLeased(sql: Sql): readonly Leased[] {
  return sql.rows<Leased>(
    `SELECT d.subscription_id AS id, count(*) AS leased, count(*) FILTER (WHERE d.due_ms <= ?) AS asked,
        min(l.claimed_ms) AS since_ms
      FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id GROUP BY d.subscription_id`,
    ASKED_BY_MS,
  );
}

/** One that has a place in an order instead of a time is taken to be due since it was made. */
function lookFirst(sql: Sql, turns: readonly Turn[], limit: number): readonly FirstLook[] {
  const asked = turns.map(({ id, dueByMs, isHeadDue }): Asked => [id, dueByMs, isHeadDue ? END_MS : dueByMs]);
  const { looks } = sql.first<{ looks: string }>(
    `SELECT json_group_array(json_array(
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = asked.value ->> 0 AND due_ms <= asked.value ->> 1 LIMIT ?2)),
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = asked.value ->> 0 AND due_ms > asked.value ->> 1 LIMIT ?2)),
        (SELECT CASE WHEN d.due_ms = d.event_id THEN d.created_ms ELSE d.due_ms END FROM delivery AS d
          WHERE d.rowid = (SELECT w.rowid FROM delivery AS w INDEXED BY delivery_due
            WHERE w.subscription_id = asked.value ->> 0 AND w.due_ms <= asked.value ->> 2
              AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = w.rowid)
            ORDER BY w.due_ms LIMIT 1)),
        (SELECT s.settings ->> 'rate_limit' IS NOT NULL FROM subscription AS s WHERE s.rowid = asked.value ->> 0))) AS looks
      FROM json_each(?1) AS asked`,
    JSON.stringify(asked),
    limit,
  )!;
  return JSON.parse(looks) as FirstLook[];
}

/**
 * Counts on from `fromMs` by about `slice` deliveries: all with the same time come together, as they are told apart by
 * nothing else here. `endMs` is where to go on, `undefined` at the end.
 */
function countSlice(
  sql: Sql,
  { id, fromMs, toMs }: Pick<Long, "id" | "fromMs" | "toMs">,
  slice: number,
): { readonly counted: number; readonly endMs: number | undefined } {
  const last = sql.first<{ due_ms: number }>(
    `SELECT due_ms FROM delivery INDEXED BY delivery_due
      WHERE subscription_id = ?1 AND due_ms > ?2 AND due_ms <= ?3 ORDER BY due_ms LIMIT 1 OFFSET ?4`,
    id,
    fromMs,
    toMs,
    slice - 1,
  );
  const { counted } = sql.first<{ counted: number }>(
    `SELECT count(*) AS counted FROM delivery INDEXED BY delivery_due
      WHERE subscription_id = ?1 AND due_ms > ?2 AND due_ms <= ?3`,
    id,
    fromMs,
    last?.due_ms ?? toMs,
  )!;
  return { counted, endMs: last?.due_ms };
}

/** What of a subscription may be sent now. */
interface Turn {
  readonly id: number;
  readonly isActive: boolean;
  /** What is due later than this waits. */
  readonly dueByMs: number;
  /** Nothing was due before, but for what persons asked for. */
  readonly notBeforeMs: number;
  readonly leasedDue: number;
  readonly leasedLater: number;
  /** Whether the first of those that are due later may be sent all the same. */
  readonly isHeadDue: boolean;
}

/** As `claimDue` has it: of one that is slowed only what persons asked for, of an ordered one its first when it has none leased. */
function turnOf(
  { id, isActive, isOrdered, slowedUntilMs }: SubscriptionWithDue,
  { leased, asked }: { leased: number; asked: number },
  nowMs: number,
): Turn {
  const longestMs = isOrdered ? LONGEST_ORDERED_MS : LONGEST_SLOWNESS_MS;
  const untilMs = slowedUntilMs !== null && slowedUntilMs <= nowMs + longestMs ? slowedUntilMs : 0;
  const isSlowed = untilMs > nowMs;
  const common = { id, isActive, notBeforeMs: isActive ? untilMs : 0 };
  if (isActive && (isSlowed || isOrdered)) {
    const isHeadDue = !isSlowed && leased === 0;
    return { ...common, dueByMs: ASKED_BY_MS, leasedDue: asked, leasedLater: leased - asked, isHeadDue };
  }
  // Those under way are among the due ones.
  const dueByMs = isOrdered ? Number.MAX_SAFE_INTEGER : nowMs;
  return { ...common, dueByMs, leasedDue: leased, leasedLater: 0, isHeadDue: false };
}

/** Since when it might have been sent. @param firstDueMs the `due_ms` of the first, or when it was made */
function sinceOf(firstDueMs: number | null, notBeforeMs: number): number | undefined {
  if (firstDueMs === null) return undefined;
  return firstDueMs <= ASKED_BY_MS ? plannedMs(firstDueMs)! : Math.max(firstDueMs, notBeforeMs);
}
