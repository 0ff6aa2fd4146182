import type { Backlog } from "../backlog.ts";
import { type SubscriptionWithDue, subscriptionsWithDue } from "./delivery-ids.ts";
import { plannedMs } from "./delivery-row.ts";
import { earlier } from "./earlier.ts";
import type { Steps } from "./read-steps.ts";
import type { Sql } from "./sql.ts";

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
  readonly since_ms: number;
}

type FirstLook = readonly [due: number, later: number, firstDueMs: number | null];

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
  const waiting: Part = { deliveries: 0, sinceMs: undefined };
  const delivering: Part = { deliveries: 0, sinceMs: undefined };
  const held: Part = { deliveries: 0, sinceMs: undefined };
  const leasedOf = new Map<number, number>();
  for (const { id, leased, since_ms: sinceMs } of loadLeased(sql)) {
    leasedOf.set(id, leased);
    delivering.deliveries += leased;
    delivering.sinceMs = earlier(delivering.sinceMs, sinceMs);
  }
  yield;
  let left = most;
  const living = (yield* subscriptionsWithDue(sql)).filter(({ isDeleted }) => !isDeleted);
  const long: Long[] = [];
  for (let at = 0; at < living.length; at += SUBSCRIPTIONS_AT_ONCE) {
    const some = living.slice(at, at + SUBSCRIPTIONS_AT_ONCE);
    const limit = Math.max(1, Math.min(firstLook, Math.floor(left / some.length)));
    const looks = lookFirst(sql, some, nowMs, limit);
    for (const [index, [dueCount, laterCount, firstDueMs]] of looks.entries()) {
      const { id, isActive } = some[index]!;
      const [duePart, laterPart] = isActive ? [due, waiting] : [held, held];
      // Those under way are among the due ones.
      const leased = leasedOf.get(id) ?? 0;
      left -= dueCount + laterCount;
      duePart.sinceMs = earlier(duePart.sinceMs, plannedMs(firstDueMs) ?? undefined);
      const shown = { counted: dueCount, leased, part: duePart };
      if (dueCount === limit) long.push({ ...shown, id, fromMs: Number.MIN_SAFE_INTEGER, toMs: nowMs });
      else add(shown);
      const later = { counted: laterCount, leased: 0, part: laterPart };
      if (laterCount === limit) long.push({ ...later, id, fromMs: nowMs, toMs: END_MS });
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
  return { due, waiting, delivering, held, isWhole };
}

/** What a look at one subscription showed. */
interface Shown {
  counted: number;
  /** So many of these are under way. */
  readonly leased: number;
  readonly part: Part;
}

/** One that has more than the first look showed: all that is due after `fromMs` up to `toMs`. */
interface Long extends Shown {
  readonly id: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** A clock that was set back may make some that are under way due in times to come. */
function add({ counted, leased, part }: Shown): void {
  part.deliveries += Math.max(0, counted - leased);
}

/** As few rows as the engine sends at a time, and a little ahead. */
function loadLeased(sql: Sql): readonly Leased[] {
  return sql.rows<Leased>(
    `SELECT d.subscription_id AS id, count(*) AS leased, min(l.claimed_ms) AS since_ms
      FROM lease AS l CROSS JOIN delivery AS d ON d.rowid = l.delivery_id GROUP BY d.subscription_id`,
  );
}

/** One that has a place in an order instead of a time is taken to be due since it was made. */
function lookFirst(
  sql: Sql,
  subscriptions: readonly SubscriptionWithDue[],
  nowMs: number,
  limit: number,
): readonly FirstLook[] {
  const { looks } = sql.first<{ looks: string }>(
    `SELECT json_group_array(json_array(
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = asked.value AND due_ms <= ?2 LIMIT ?3)),
        (SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_due
          WHERE subscription_id = asked.value AND due_ms > ?2 LIMIT ?3)),
        (SELECT CASE WHEN d.due_ms = d.event_id THEN d.created_ms ELSE d.due_ms END FROM delivery AS d
          WHERE d.rowid = (SELECT w.rowid FROM delivery AS w INDEXED BY delivery_due
            WHERE w.subscription_id = asked.value AND w.due_ms <= ?2
              AND NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = w.rowid)
            ORDER BY w.due_ms LIMIT 1)))) AS looks
      FROM json_each(?1) AS asked`,
    JSON.stringify(subscriptions.map(({ id }) => id)),
    nowMs,
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
