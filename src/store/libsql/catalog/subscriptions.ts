import type { SubscriptionPatch, SubscriptionRecord, SubscriptionSelection } from "../../catalog.ts";
import { EvregError } from "../../../domain/error.ts";
import { changedSettings, NO_SETTINGS } from "../../../domain/subscription-settings.ts";
import type { Bearer, Subscription } from "../../../domain/subscription.ts";
import {
  type WithServiceEvents,
  recordDeliveryEvents,
  addCounts,
  type Transitioned,
} from "../events/service-events.ts";
import { stopRunning } from "../history/replays.ts";
import type { ServiceEventCounts } from "../../queue.ts";
import { resetHealth, clearWaits } from "../queue/handler-health.ts";
import { BLOCKED_BY, failExhausted, assignSequence } from "../queue/order.ts";
import { settingsToJson, settingsFromJson } from "../queue/wire.ts";
import { toIso } from "../../../runtime/clock.ts";
import { isRowid, type Sql, textOf, timeOf } from "../thread/sql.ts";
import { deleteSecrets, insertSecrets, replaceSecret, setBearer } from "./credentials.ts";

/** @param key what its secrets are encrypted with, where they are; so for the other writes here */
export function createSubscription(
  sql: Sql,
  input: SubscriptionRecord,
  nowMs: number,
  key?: Uint8Array,
): Subscription {
  const actionId = requireActionId(sql, input.action);
  assertFree(sql, input.application, input.subscription, actionId, input.action);
  const settings = changedSettings(NO_SETTINGS, input.settings ?? {});
  const row = sql.first<{ id: number }>(
    `INSERT INTO subscription (application, subscription, action_id, handler, max_retries, active, created_ms, settings,
        ordered)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING rowid AS id`,
    input.application,
    input.subscription,
    actionId,
    input.handler,
    input.maxRetries,
    input.active,
    nowMs,
    settingsToJson(settings),
    settings.ordered,
  );
  const id = row?.id ?? 0;
  bind(sql, actionId, id);
  insertSecrets(sql, id, input, key);
  return mustFind(sql, id);
}

export function findSubscription(sql: Sql, id: number): Subscription | undefined {
  const row = findRow(sql, id);
  return row === undefined ? undefined : subscriptionOf(row);
}

export function listSubscriptions(sql: Sql, query: SubscriptionSelection): readonly Subscription[] {
  const rows = sql.rows<SubscriptionRow>(
    `${SELECT_SUBSCRIPTION}
      AND (?1 IS NULL OR s.application = ?1)
      AND (?2 IS NULL OR a.action = ?2)
      AND (?3 IS NULL OR s.active = ?3)
      AND (?4 IS NULL OR s.application IN (SELECT value FROM json_each(?4)))
      AND s.rowid > ?5
      ORDER BY s.rowid LIMIT ?6`,
    query.application ?? null,
    query.action ?? null,
    query.active ?? null,
    query.applications === undefined ? null : JSON.stringify(query.applications),
    query.after ?? 0,
    query.limit ?? -1,
  );
  return rows.map(subscriptionOf);
}

export function updateSubscription(
  sql: Sql,
  id: number,
  patch: SubscriptionPatch,
  nowMs: number,
  key?: Uint8Array,
): WithServiceEvents<Subscription | undefined> {
  const row = findRow(sql, id);
  if (row === undefined) return { answer: undefined, serviceEvents: undefined };
  let actionId = row.action_id;
  let serviceEvents: ServiceEventCounts | undefined;
  let failed: readonly Transitioned[] = [];
  if (patch.action !== undefined && patch.action !== row.action) {
    actionId = requireActionId(sql, patch.action);
    assertFree(sql, row.application, row.subscription, actionId, patch.action);
    bind(sql, actionId, id);
    const reason = `The subscription was bound to another action, ${patch.action}.`;
    serviceEvents = stopRunning(sql, id, { status: "failed", reason, nowMs });
  }
  const before = settingsFromJson(row.settings);
  const settings = changedSettings(before, patch.settings ?? {});
  if (settings.ordered && !before.ordered) assignSequence(sql, id, nowMs);
  sql.run(
    `UPDATE subscription SET handler = ?, max_retries = ?, active = ?, action_id = ?, disabled_reason = ?, settings = ?,
        ordered = coalesce(?, ordered)
      WHERE rowid = ?`,
    patch.handler ?? row.handler,
    patch.maxRetries ?? row.max_retries,
    patch.active ?? row.active,
    actionId,
    // A person who pauses or reactivates takes over from the service, and its reason goes.
    patch.active === undefined ? row.disabled_reason : null,
    // Where they cannot be read, only new ones replace them.
    patch.settings === undefined ? row.settings : settingsToJson(settings),
    patch.settings === undefined ? null : settings.ordered,
    id,
  );
  if (before.ordered && !settings.ordered) clearWaits(sql, id);
  const isStricter = before.on_exhausted === "block" || (patch.maxRetries ?? Infinity) < row.max_retries;
  if (settings.on_exhausted === "skip" && isStricter) {
    failed = failExhausted(sql, id, nowMs);
    serviceEvents = addCounts(serviceEvents, recordDeliveryEvents(sql, { failed }));
  }
  if (patch.active === true || (patch.handler ?? row.handler) !== row.handler) resetHealth(sql, id);
  if (patch.bearer !== undefined) setBearer(sql, id, patch.bearer, key);
  const answer = mustFind(sql, id);
  if (answer.blocked_by !== null && row.blocked_by === null) {
    serviceEvents = addCounts(
      serviceEvents,
      recordDeliveryEvents(sql, { blocked: [[answer.blocked_by, nowMs]] }),
    );
  }
  return { answer, serviceEvents, failed: failed.length };
}

export function rotateSecret(
  sql: Sql,
  id: number,
  rotation: { readonly secret: string; readonly overlapMs: number },
  nowMs: number,
  key?: Uint8Array,
): Subscription | undefined {
  if (findRow(sql, id) === undefined) return undefined;
  replaceSecret(sql, id, rotation, nowMs, key);
  return mustFind(sql, id);
}

export function deleteSubscription(
  sql: Sql,
  id: number,
  nowMs: number,
): WithServiceEvents<Subscription | undefined> {
  const found = findSubscription(sql, id);
  if (found === undefined) return { answer: undefined, serviceEvents: undefined };
  sql.run("UPDATE subscription SET deleted_ms = ? WHERE rowid = ?", nowMs, id);
  deleteSecrets(sql, id);
  const serviceEvents = stopRunning(sql, id, {
    status: "cancelled",
    reason: "The subscription was deleted.",
    nowMs,
  });
  return { answer: found, serviceEvents };
}

function bind(sql: Sql, actionId: number, subscriptionId: number): void {
  sql.run(
    "INSERT OR IGNORE INTO binding (action_id, subscription_id) VALUES (?, ?)",
    actionId,
    subscriptionId,
  );
}

function requireActionId(sql: Sql, action: string): number {
  const row = sql.first<{ id: number }>("SELECT rowid AS id FROM action WHERE action = ?", action);
  if (row !== undefined) return row.id;
  const message = `there is no action ${action}; create it first`;
  throw new EvregError("not_found", `action: ${message}.`, { field: "action", message, value: action });
}

function assertFree(
  sql: Sql,
  application: string,
  subscription: string,
  actionId: number,
  action: string,
): void {
  const taken = sql.first<{ id: number }>(
    `SELECT rowid AS id FROM subscription
      WHERE application = ? AND subscription = ? AND action_id = ? AND deleted_ms IS NULL`,
    application,
    subscription,
    actionId,
  );
  if (taken === undefined) return;
  const message = `${application} has a subscription ${subscription} to ${action} already (rowid ${taken.id})`;
  throw new EvregError("conflict", `subscription: ${message}.`, {
    field: "subscription",
    message,
    value: subscription,
    rowid: taken.id,
  });
}

function mustFind(sql: Sql, id: number): Subscription {
  const found = findSubscription(sql, id);
  if (found === undefined) throw new Error(`subscription ${id} was written and is not there`);
  return found;
}

interface SubscriptionRow {
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
const SELECT_SUBSCRIPTION = `
  SELECT s.rowid AS id, s.application, s.subscription, s.action_id, a.action, ${textOf("s.handler")} AS handler, s.max_retries, s.active,
    s.disabled_reason, s.failing_since_ms,
    coalesce(max(s.slowed_until_ms, s.retry_wait_until_ms), s.slowed_until_ms, s.retry_wait_until_ms) AS slowed_until_ms,
    ${textOf("s.settings")} AS settings, ${timeOf("s.created_ms")} AS created_ms, k.bearer, k.previous_until_ms,
    ${BLOCKED_BY} AS blocked_by
  FROM subscription s JOIN action a ON a.rowid = s.action_id
    JOIN subscription_secret k ON k.subscription_id = s.rowid
  WHERE s.deleted_ms IS NULL`;

function findRow(sql: Sql, id: number): SubscriptionRow | undefined {
  if (!isRowid(id)) return undefined;
  return sql.rows<SubscriptionRow>(`${SELECT_SUBSCRIPTION} AND s.rowid = ?`, id)[0];
}

/** As it is answered. */
function subscriptionOf(row: SubscriptionRow): Subscription {
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
    ...settingsFromJson(row.settings),
    timestamped: toIso(row.created_ms),
  };
}
