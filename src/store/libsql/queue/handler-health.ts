import { LONGEST_WAIT_MS } from "../../../domain/retry.ts";
import type { OnExhausted } from "../../../domain/subscription-settings.ts";
import type { SettingsInForce } from "../../rules/finish.ts";
import type { HandlerHealth } from "../../rules/health.ts";
import { columns } from "../thread/columns.ts";
import type { Sql } from "../thread/sql.ts";
import { settingOf } from "./delivery-state.ts";
import { endRetryWait } from "./key-order.ts";

/** The longest wait that counts. No longer one can be asked for, so it was stored before the clock was set back. */
const LONGEST_SLOWDOWN_MS = 4 * LONGEST_WAIT_MS;

/** SQL of when the wait of the subscription `s` ends or ended, at the time `?1`; 0 where there was none. */
export const WAIT_END = `iif(s.slowed_until_ms <= ?1 + ${LONGEST_SLOWDOWN_MS}, s.slowed_until_ms, 0)`;

/** A subscription of which something was attempted. */
interface AttemptedSubscription {
  readonly settings: SettingsInForce;
  readonly health: HandlerHealth;
}

interface AttemptedSubscriptionRow {
  readonly id: number;
  readonly handler: string;
  readonly max_retries: number;
  readonly is_ordered: number;
  readonly on_exhausted: OnExhausted | null;
  readonly retry_schedule: string | null;
  readonly is_active: number;
  readonly failing_since_ms: number | null;
  readonly last_failure_ms: number | null;
  readonly failing_total_ms: number;
  readonly slowed_until_ms: number | null;
}

/** @param scheduleMs the waits before retries of those that have no schedule of their own */
export function loadAttempted(
  sql: Sql,
  ids: ReadonlySet<number>,
  scheduleMs: readonly number[] | undefined,
): ReadonlyMap<number, AttemptedSubscription> {
  const rows = sql.rows<AttemptedSubscriptionRow>(
    `SELECT s.rowid AS id, s.handler, s.max_retries, s.order_key IS NOT NULL AS is_ordered,
        ${settingOf("on_exhausted")} AS on_exhausted, ${settingOf("retry_schedule")} AS retry_schedule,
        s.active = 1 AND s.deleted_ms IS NULL AS is_active, s.failing_since_ms, s.last_failure_ms, s.failing_total_ms,
        s.slowed_until_ms
      FROM json_each(?1) AS requested CROSS JOIN subscription AS s ON s.rowid = requested.value`,
    JSON.stringify([...ids]),
  );
  return new Map(rows.map((row) => [row.id, attemptedSubscription(row, scheduleMs)]));
}

function attemptedSubscription(
  row: AttemptedSubscriptionRow,
  scheduleMs: readonly number[] | undefined,
): AttemptedSubscription {
  const { retry_schedule: ownSchedule } = row;
  return {
    settings: {
      handler: row.handler,
      maxRetries: row.max_retries,
      isOrdered: row.is_ordered === 1,
      onExhausted: row.on_exhausted,
      retryScheduleMs: ownSchedule === null ? (scheduleMs ?? null) : (JSON.parse(ownSchedule) as number[]),
    },
    health: {
      isActive: row.is_active === 1,
      disabledReason: null,
      failingSinceMs: row.failing_since_ms,
      lastFailureMs: row.last_failure_ms,
      failingTotalMs: row.failing_total_ms,
      slowedUntilMs: row.slowed_until_ms,
    },
  };
}

const HEALTH = columns(
  "id",
  "failing_since_ms",
  "last_failure_ms",
  "failing_total_ms",
  "slowed_until_ms",
  "disabled_reason",
);

/** Stores what is known of handlers now, by their subscriptions, and deactivates those with a reason for that. */
export function storeHealth(sql: Sql, changed: ReadonlyMap<number, HandlerHealth>): void {
  if (changed.size === 0) return;
  const rows = [...changed].map(([id, health]) =>
    HEALTH.pack({
      id,
      failing_since_ms: health.failingSinceMs,
      last_failure_ms: health.lastFailureMs,
      failing_total_ms: health.failingTotalMs,
      slowed_until_ms: health.slowedUntilMs,
      disabled_reason: health.disabledReason,
    }),
  );
  sql.run(
    `UPDATE subscription SET failing_since_ms = r.failing_since_ms, last_failure_ms = r.last_failure_ms,
        failing_total_ms = r.failing_total_ms, slowed_until_ms = r.slowed_until_ms,
        active = iif(r.disabled_reason IS NULL, active, 0),
        disabled_reason = coalesce(r.disabled_reason, subscription.disabled_reason)
      FROM (SELECT ${HEALTH.values} FROM json_each(?)) AS r WHERE subscription.rowid = r.id`,
    JSON.stringify(rows),
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
