import type { Sql } from "../thread/sql.ts";
import { WAIT_END } from "./handler-health.ts";

export interface SubscriptionWithDue {
  readonly id: number;
  readonly isActive: boolean;
  readonly isDeleted: boolean;
  /** When its wait ends or ended, at `nowMs`; 0 where there was none. */
  readonly waitEndMs: number;
}

interface WithDueRow {
  readonly id: number;
  readonly active: number;
  readonly is_deleted: number;
  readonly wait_end_ms: number;
}

/** The subscriptions with unfinished deliveries, by skipping through the index; idle ones cost nothing. */
export function subscriptionsWithDue(sql: Sql, nowMs = 0): readonly SubscriptionWithDue[] {
  const rows = sql.rows<WithDueRow>(
    `WITH RECURSIVE waiting (id) AS (
        SELECT (SELECT min(subscription_id) FROM delivery INDEXED BY delivery_due WHERE due_ms IS NOT NULL)
      UNION ALL
        SELECT (SELECT min(subscription_id) FROM delivery INDEXED BY delivery_due
          WHERE due_ms IS NOT NULL AND subscription_id > waiting.id)
        FROM waiting WHERE waiting.id IS NOT NULL
      )
      SELECT id, s.active, s.deleted_ms IS NOT NULL AS is_deleted, ${WAIT_END} AS wait_end_ms
      FROM waiting CROSS JOIN subscription AS s ON s.rowid = waiting.id`,
    nowMs,
  );
  return rows.map(({ id, active, is_deleted: isDeleted, wait_end_ms: waitEndMs }) => {
    return { id, isActive: active === 1, isDeleted: isDeleted === 1, waitEndMs };
  });
}
