import type { Steps } from "../../../runtime/yielding.ts";
import type { Sql } from "../thread/sql.ts";
import { DELIVERY_STATE, UNFINISHED_STATES } from "./delivery-state.ts";
import { WAIT_END } from "./handler-health.ts";

/** Entries of an index that a step reads. */
export const SLICE = 1_000;

/** Unfinished, in an order by key. */
export interface KeyedRow {
  readonly key: number;
  readonly state: number;
  readonly priority: number;
  readonly sequence: number;
  readonly id: number;
}

const KEY_ROWS = `SELECT key, state, priority, sequence, rowid AS id FROM delivery INDEXED BY delivery_key
  WHERE subscription_id = ?1 AND state IN ${UNFINISHED_STATES}`;
const NEXT_ROWS = `${KEY_ROWS} AND key = ?2 AND state = ?3 AND (priority, sequence) > (?4, ?5)`;
const ROWS_BEHIND = `${KEY_ROWS} AND key = ?2 AND state = ${DELIVERY_STATE.behind}`;

/** The next ones in the order of the index; fewer than a slice are the last. */
export function keySlice(
  sql: Sql,
  subscription: number,
  { key, state, priority, sequence }: KeyedRow = FIRST_KEY,
  limit = SLICE,
): readonly KeyedRow[] {
  // A comparison of all four at once would read a key from its beginning each time.
  const ofKey = state === DELIVERY_STATE.behind ? NEXT_ROWS : `${NEXT_ROWS} UNION ALL ${ROWS_BEHIND}`;
  return sql.rows<KeyedRow>(
    `${ofKey} UNION ALL ${KEY_ROWS} AND key > ?2 ORDER BY 1, 2, 3, 4 LIMIT ?6`,
    subscription,
    key,
    state,
    priority,
    sequence,
    limit,
  );
}

/** Before all others. */
const FIRST_KEY: KeyedRow = { key: -1, state: DELIVERY_STATE.pending, priority: 0, sequence: 0, id: 0 };

export interface DueRow {
  readonly priority: number;
  readonly due_ms: number;
  readonly id: number;
}

/** The next pending ones in the order of the index; fewer than a slice are the last. */
export function dueSlice(
  sql: Sql,
  subscription: number,
  after: DueRow = { priority: -1, due_ms: 0, id: 0 },
): readonly DueRow[] {
  return sql.rows<DueRow>(
    `SELECT priority, due_ms, rowid AS id FROM delivery INDEXED BY delivery_due
        WHERE subscription_id = ?1 AND priority = ?2 AND due_ms = ?3 AND rowid > ?4
      UNION ALL
      SELECT priority, due_ms, rowid AS id FROM delivery INDEXED BY delivery_due
        WHERE subscription_id = ?1 AND due_ms IS NOT NULL AND (priority, due_ms) > (?2, ?3)
      ORDER BY 1, 2, 3 LIMIT ?5`,
    subscription,
    after.priority,
    after.due_ms,
    after.id,
    SLICE,
  );
}

export interface SubscriptionWithDue {
  readonly id: number;
  readonly isActive: boolean;
  readonly isDeleted: boolean;
  readonly isOrdered: boolean;
  /** When its wait ends or ended, at `nowMs`; 0 where there was none. */
  readonly waitEndMs: number;
}

interface WithDueRow {
  readonly id: number;
  readonly active: number;
  readonly is_deleted: number;
  readonly ordered: number;
  readonly wait_end_ms: number;
}

/** The subscriptions with unfinished deliveries, by skipping through the index; idle ones cost nothing. */
export function* subscriptionsWithDue(sql: Sql, nowMs = 0): Steps<readonly SubscriptionWithDue[]> {
  const found: SubscriptionWithDue[] = [];
  for (let last = 0; ;) {
    const some = sql.rows<WithDueRow>(
      `WITH RECURSIVE waiting (id) AS (
          SELECT (SELECT min(subscription_id) FROM delivery INDEXED BY delivery_due
            WHERE due_ms IS NOT NULL AND subscription_id > ?2)
        UNION ALL
          SELECT (SELECT min(subscription_id) FROM delivery INDEXED BY delivery_due
            WHERE due_ms IS NOT NULL AND subscription_id > waiting.id)
          FROM waiting WHERE waiting.id IS NOT NULL
          LIMIT ?3
        )
        SELECT id, s.active, s.deleted_ms IS NOT NULL AS is_deleted, s.ordered,
          ${WAIT_END} AS wait_end_ms
        FROM waiting CROSS JOIN subscription AS s ON s.rowid = waiting.id`,
      nowMs,
      last,
      SLICE,
    );
    for (const { id, active, is_deleted: isDeleted, ordered, wait_end_ms: waitEndMs } of some) {
      const flags = { isActive: active === 1, isDeleted: isDeleted === 1, isOrdered: ordered === 1 };
      found.push({ id, ...flags, waitEndMs });
    }
    if (some.length < SLICE) return found;
    last = some.at(-1)?.id ?? last;
    yield;
  }
}
