import type { Bearer, Subscription } from "../../domain/subscription.ts";
import { toIso } from "../../runtime/clock.ts";
import { settingsOf } from "./kept-settings.ts";
import { BLOCKED_BY } from "./publication-order.ts";
import { type Sql, textOf, timeOf } from "./sql.ts";
import { isRowid } from "./text.ts";

export interface SubscriptionRow {
  readonly id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action_id: number;
  readonly action: string;
  readonly handler: string;
  readonly max_retries: number;
  readonly active: number;
  readonly disabled_reason: string | null;
  readonly bearer: Bearer;
  readonly previous_until_ms: number | null;
  readonly failing_since_ms: number | null;
  readonly slowed_until_ms: number | null;
  readonly blocked_by: number | null;
  readonly settings: string | null;
  readonly created_ms: number;
}

/** Of those that were not deleted; goes on with conditions on `s` and `a`. */
export const SELECT_SUBSCRIPTION = `
  SELECT s.rowid AS id, s.application, s.subscription, s.action_id, a.action, ${textOf("s.handler")} AS handler, s.max_retries, s.active,
    s.disabled_reason, s.failing_since_ms, s.slowed_until_ms,
    ${textOf("s.settings")} AS settings, ${timeOf("s.created_ms")} AS created_ms, k.bearer, k.previous_until_ms,
    ${BLOCKED_BY} AS blocked_by
  FROM subscription s JOIN action a ON a.rowid = s.action_id
    JOIN subscription_secret k ON k.subscription_id = s.rowid
  WHERE s.deleted_ms IS NULL`;

export function findRow(sql: Sql, id: number): SubscriptionRow | undefined {
  if (!isRowid(id)) return undefined;
  return sql.rows<SubscriptionRow>(`${SELECT_SUBSCRIPTION} AND s.rowid = ?`, id)[0];
}

/** As it is answered. */
export function subscriptionOf(row: SubscriptionRow): Subscription {
  return {
    rowid: row.id,
    application: row.application,
    subscription: row.subscription,
    action: row.action,
    handler: row.handler,
    max_retries: row.max_retries,
    active: row.active === 1,
    disabled_reason: row.disabled_reason,
    bearer: row.bearer,
    previous_secret_until: row.previous_until_ms === null ? null : toIso(row.previous_until_ms),
    failing_since: row.failing_since_ms === null ? null : toIso(row.failing_since_ms),
    slowed_until: row.slowed_until_ms === null ? null : toIso(row.slowed_until_ms),
    blocked_by: row.blocked_by,
    ...settingsOf(row.settings),
    timestamped: toIso(row.created_ms),
  };
}
