import type { Steps } from "./read-steps.ts";
import type { Sql } from "./sql.ts";

/** A step's share of an index. */
const SLICE = 1_000;
/** With more of them than this they would take long to be put in order, and looking from the newest on finds some soon. */
const MOST_GATHERED = 50_000;

/**
 * The rowids of all deliveries that wait to be sent, of these subscriptions (of all active ones without), in no order that
 * means anything: the index that leads to them is the engine's, by the time they are due. `undefined` when there are too many.
 */
export function* gatherDue(
  sql: Sql,
  subscriptions: readonly number[] | undefined,
): Steps<number[] | undefined> {
  const ids: number[] = [];
  for (const id of subscriptions ?? (yield* activeWithDue(sql))) {
    for (let slice = dueSlice(sql, id); ; slice = dueSlice(sql, id, slice.at(-1))) {
      for (const each of slice) ids.push(each.id);
      yield;
      if (slice.length < SLICE) break;
      if (ids.length > MOST_GATHERED) return undefined;
    }
  }
  return ids;
}

/** How many deliveries of a subscription wait to be sent and are not under way when this begins. */
export function* countWaiting(sql: Sql, subscription: number): Steps<number> {
  const leased = new Set(leasedIds(sql));
  let count = 0;
  for (let slice = dueSlice(sql, subscription); ; slice = dueSlice(sql, subscription, slice.at(-1))) {
    for (const { id } of slice) if (!leased.has(id)) count += 1;
    if (slice.length < SLICE) return count;
    yield;
  }
}

interface DueRow {
  readonly due_ms: number;
  readonly id: number;
}

/** The next that wait to be sent, by the time they are due; fewer than a slice are the last. */
function dueSlice(
  sql: Sql,
  subscription: number,
  after: DueRow = { due_ms: Number.MIN_SAFE_INTEGER, id: 0 },
): readonly DueRow[] {
  return sql.rows<DueRow>(
    `SELECT due_ms, rowid AS id FROM delivery INDEXED BY delivery_due
        WHERE subscription_id = ?1 AND due_ms = ?2 AND rowid > ?3
      UNION ALL
      SELECT due_ms, rowid AS id FROM delivery INDEXED BY delivery_due WHERE subscription_id = ?1 AND due_ms > ?2
      ORDER BY 1, 2 LIMIT ?4`,
    subscription,
    after.due_ms,
    after.id,
    SLICE,
  );
}

function* activeWithDue(sql: Sql): Steps<readonly number[]> {
  const found = yield* subscriptionsWithDue(sql);
  return found.flatMap(({ id, isActive, isDeleted }) => (isActive && !isDeleted ? [id] : []));
}

export interface SubscriptionWithDue {
  readonly id: number;
  readonly isActive: boolean;
  readonly isDeleted: boolean;
  readonly isOrdered: boolean;
  /** As it was written, be it past or not. */
  readonly slowedUntilMs: number | null;
}

interface WithDueRow {
  readonly id: number;
  readonly active: number;
  readonly is_deleted: number;
  readonly ordered: number;
  readonly slowed_until_ms: number | null;
}

/**
 * The subscriptions that have unfinished deliveries. Steps from one to the next through the index of what waits; idle ones
 * cost nothing.
 */
export function* subscriptionsWithDue(sql: Sql): Steps<readonly SubscriptionWithDue[]> {
  const found: SubscriptionWithDue[] = [];
  for (let last = 0; ;) {
    const some = sql.rows<WithDueRow>(
      `WITH RECURSIVE waiting (id) AS (
          SELECT (SELECT min(subscription_id) FROM delivery INDEXED BY delivery_due
            WHERE due_ms IS NOT NULL AND subscription_id > ?1)
        UNION ALL
          SELECT (SELECT min(subscription_id) FROM delivery INDEXED BY delivery_due
            WHERE due_ms IS NOT NULL AND subscription_id > waiting.id)
          FROM waiting WHERE waiting.id IS NOT NULL
          LIMIT ?2
        )
        SELECT id, s.active, s.deleted_ms IS NOT NULL AS is_deleted, s.ordered, s.slowed_until_ms
        FROM waiting CROSS JOIN subscription AS s ON s.rowid = waiting.id`,
      last,
      SLICE,
    );
    for (const { id, active, is_deleted: isDeleted, ordered, slowed_until_ms: slowedUntilMs } of some) {
      const flags = { isActive: active === 1, isDeleted: isDeleted === 1, isOrdered: ordered === 1 };
      found.push({ id, ...flags, slowedUntilMs });
    }
    if (some.length < SLICE) return found;
    last = some.at(-1)?.id ?? last;
    yield;
  }
}

/** The rowids of deliveries that are under way: no more than the engine sends at a time. */
export function leasedIds(sql: Sql): number[] {
  return sql.rows<{ id: number }>("SELECT delivery_id AS id FROM lease").map(({ id }) => id);
}

/** The rowids of an event's deliveries, which are as many as its action had subscriptions. */
export function* deliveriesOfEvent(sql: Sql, event: number): Steps<number[]> {
  const ids: number[] = [];
  for (let last = 0; ;) {
    const slice = sql.rows<{ subscription_id: number; id: number }>(
      `SELECT subscription_id, rowid AS id FROM delivery INDEXED BY delivery_event
        WHERE event_id = ? AND subscription_id > ? ORDER BY subscription_id LIMIT ?`,
      event,
      last,
      SLICE,
    );
    for (const { id } of slice) ids.push(id);
    const end = slice.at(-1);
    if (end === undefined || slice.length < SLICE) return ids;
    last = end.subscription_id;
    yield;
  }
}
