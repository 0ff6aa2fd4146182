import type { SettingsInForce } from "../../rules/finish.ts";
import type { HandlerHealth } from "../../rules/health.ts";
import type { Sql } from "../thread/sql.ts";
import { settingOf } from "./delivery-state.ts";
import { endRetryWait } from "./key-order.ts";

/** SQL of when the wait of the subscription `s` ends or ended; 0 where there was none. */
export const WAIT_END = "coalesce(s.slowed_until_ms, 0)";

/** A subscription of which something was attempted: its settings, and what is known of its handler. */
interface AttemptedSubscription extends SettingsInForce, HandlerHealth {
  readonly id: number;
}

type AttemptedRow = Omit<AttemptedSubscription, "isOrdered" | "isActive" | "retryScheduleMs"> & {
  readonly isOrdered: number;
  readonly isActive: number;
  readonly ownSchedule: string | null;
};

/** @param scheduleMs the waits before retries of those that have no schedule of their own */
export function loadAttempted(
  sql: Sql,
  ids: ReadonlySet<number>,
  scheduleMs: readonly number[] | undefined,
): ReadonlyMap<number, AttemptedSubscription> {
  const rows = sql.rows<AttemptedRow>(
    `SELECT s.rowid AS id, s.handler, s.max_retries AS maxRetries, s.order_key IS NOT NULL AS isOrdered,
        ${settingOf("on_exhausted")} AS onExhausted, ${settingOf("retry_schedule")} AS ownSchedule,
        s.active = 1 AND s.deleted_ms IS NULL AS isActive, NULL AS disabledReason, s.failing_since_ms AS failingSinceMs,
        s.last_failure_ms AS lastFailureMs, s.failing_total_ms AS failingTotalMs, s.slowed_until_ms AS slowedUntilMs
      FROM json_each(?1) AS requested CROSS JOIN subscription AS s ON s.rowid = requested.value`,
    JSON.stringify([...ids]),
  );
  return new Map(
    rows.map(({ isOrdered, isActive, ownSchedule, ...row }) => {
      const schedule = ownSchedule === null ? (scheduleMs ?? null) : (JSON.parse(ownSchedule) as number[]);
      const flags = { isOrdered: isOrdered === 1, isActive: isActive === 1 };
      return [row.id, Object.assign(row, flags, { retryScheduleMs: schedule })];
    }),
  );
}

/** Stores what is known of handlers now, by their subscriptions, and deactivates those with a reason for that. */
export function storeHealth(sql: Sql, changed: ReadonlyMap<number, HandlerHealth>): void {
  if (changed.size === 0) return;
  sql.run(
    `UPDATE subscription SET failing_since_ms = r.value ->> '$[1].failingSinceMs', last_failure_ms = r.value ->> '$[1].lastFailureMs',
        failing_total_ms = r.value ->> '$[1].failingTotalMs', slowed_until_ms = r.value ->> '$[1].slowedUntilMs',
        active = iif(r.value ->> '$[1].disabledReason' IS NULL, active, 0),
        disabled_reason = coalesce(r.value ->> '$[1].disabledReason', disabled_reason)
      FROM json_each(?) AS r WHERE subscription.rowid = r.value ->> 0`,
    JSON.stringify([...changed]),
  );
}

/** Forgets what is known of a handler, for a subscription that gets another one, or is activated by a person. */
export function resetHealth(sql: Sql, subscriptionId: number, nowMs: number): void {
  sql.run(
    "UPDATE subscription SET failing_since_ms = NULL, last_failure_ms = NULL, failing_total_ms = 0 WHERE rowid = ?",
    subscriptionId,
  );
  clearWaits(sql, subscriptionId, nowMs);
}

/** Lets the next delivery be sent at once, also one that waits for its retry where there is one order. */
export function clearWaits(sql: Sql, subscriptionId: number, nowMs: number): void {
  sql.run("UPDATE subscription SET slowed_until_ms = NULL WHERE rowid = ?", subscriptionId);
  endRetryWait(sql, subscriptionId, nowMs);
}
