import type { SubscriptionPatch, SubscriptionRecord, SubscriptionSelection } from "../../catalog.ts";
import { EvregError } from "../../../domain/error.ts";
import {
  changedSettings,
  NO_SETTINGS,
  type SubscriptionSettings,
} from "../../../domain/subscription-settings.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { type WithServiceEvents, recordDeliveryEvents, addCounts } from "../events/service-events.ts";
import { stopRunning } from "../history/replays.ts";
import type { ServiceEventCounts } from "../../queue.ts";
import { resetHealth, clearWaits } from "../queue/handler-health.ts";
import { BLOCKED_BY, failExhausted, assignSequence } from "../queue/order.ts";
import { settingsToJson, settingsFromJson } from "../queue/wire.ts";
import { toIso } from "../../../runtime/clock.ts";
import { isoOrNull, type StoredRecord } from "../stored-record.ts";
import { isRowid, type Sql, textOf, timeOf } from "../thread/sql.ts";
import { deleteSecrets, insertSecrets, replaceSecret, setBearer } from "./credentials.ts";

/** Stored where there is none. */
const NO_HANDLER = "";

/** @param key encrypts its secrets, if given; so for the other writes here */
export function createSubscription(
  sql: Sql,
  input: SubscriptionRecord,
  nowMs: number,
  key?: Uint8Array,
): Subscription {
  const actionId = requireActionId(sql, input.action);
  assertFree(sql, input, actionId);
  const settings = changedSettings(NO_SETTINGS, input.settings ?? {});
  const { id } = sql.first<{ id: number }>(
    `INSERT INTO subscription (application, subscription, action_id, mode, handler, max_retries, active, created_ms, settings,
        ordered)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING rowid AS id`,
    input.application,
    input.subscription,
    actionId,
    input.handler === null ? "pull" : "push",
    input.handler ?? NO_HANDLER,
    input.maxRetries,
    input.active,
    nowMs,
    settingsToJson(settings),
    settings.ordered,
  )!;
  bind(sql, actionId, id);
  insertSecrets(sql, id, input, key);
  return findSubscription(sql, id)!;
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
  if (row === undefined) return { answer: undefined };
  const { handler = row.handler, maxRetries = row.max_retries } = patch;
  let actionId = row.action_id;
  let replayEvents: ServiceEventCounts | undefined;
  if (patch.action !== undefined && patch.action !== row.action) {
    actionId = requireActionId(sql, patch.action);
    assertFree(sql, { ...row, action: patch.action }, actionId);
    bind(sql, actionId, id);
    const reason = `The subscription was bound to another action, ${patch.action}.`;
    replayEvents = stopRunning(sql, id, { status: "failed", reason, nowMs });
  }
  const previous = settingsFromJson(row.settings);
  const settings = changedSettings(previous, patch.settings ?? {});
  if (settings.ordered && !previous.ordered) assignSequence(sql, id, nowMs);
  sql.run(
    `UPDATE subscription SET handler = ?, max_retries = ?, active = ?, action_id = ?, disabled_reason = ?, settings = ?,
        ordered = coalesce(?, ordered)
      WHERE rowid = ?`,
    handler ?? NO_HANDLER,
    maxRetries,
    patch.active ?? row.active,
    actionId,
    // Who pauses or reactivates it takes over from the service, so the service's reason goes.
    patch.active === undefined ? row.disabled_reason : null,
    // Damaged ones stay until new ones replace them.
    patch.settings === undefined ? row.settings : settingsToJson(settings),
    patch.settings === undefined ? null : settings.ordered,
    id,
  );
  if (previous.ordered && !settings.ordered) clearWaits(sql, id);
  const isStricter = previous.on_exhausted === "block" || maxRetries < row.max_retries;
  const failed = settings.on_exhausted === "skip" && isStricter ? failExhausted(sql, id, nowMs) : [];
  if (patch.active === true || handler !== row.handler) resetHealth(sql, id);
  if (patch.bearer !== undefined) setBearer(sql, id, patch.bearer, key);
  const answer = findSubscription(sql, id)!;
  const { blocked_by } = answer;
  const blocked = blocked_by === null || row.blocked_by !== null ? [] : [blocked_by];
  const deliveryEvents = recordDeliveryEvents(sql, { failed, blocked }, nowMs);
  return { answer, serviceEvents: addCounts(replayEvents, deliveryEvents), failed: failed.length };
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
  return findSubscription(sql, id);
}

export function deleteSubscription(
  sql: Sql,
  id: number,
  nowMs: number,
): WithServiceEvents<Subscription | undefined> {
  const found = findSubscription(sql, id);
  if (found === undefined) return { answer: undefined };
  sql.run("UPDATE subscription SET deleted_ms = ? WHERE rowid = ?", nowMs, id);
  deleteSecrets(sql, id);
  const reason = "The subscription was deleted.";
  return { answer: found, serviceEvents: stopRunning(sql, id, { status: "cancelled", reason, nowMs }) };
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
  { application, subscription, action }: Pick<Subscription, "application" | "subscription" | "action">,
  actionId: number,
): void {
  const existing = sql.first<{ id: number }>(
    `SELECT rowid AS id FROM subscription
      WHERE application = ? AND subscription = ? AND action_id = ? AND deleted_ms IS NULL`,
    application,
    subscription,
    actionId,
  );
  if (existing === undefined) return;
  const message = `${application} has a subscription ${subscription} to ${action} already (rowid ${existing.id})`;
  throw new EvregError("conflict", `subscription: ${message}.`, {
    field: "subscription",
    message,
    value: subscription,
    rowid: existing.id,
  });
}

type SubscriptionTimes =
  | "previous_secret_until"
  | "failing_since"
  | "slowed_until"
  | "last_claim_at"
  | "timestamped";

interface SubscriptionRow extends StoredRecord<
  Omit<Subscription, keyof SubscriptionSettings>,
  "active" | SubscriptionTimes
> {
  readonly action_id: number;
  readonly settings: string | null;
}

/** Of those that were not deleted; goes on with conditions on `s` and `a`. */
const SELECT_SUBSCRIPTION = `
  SELECT s.rowid AS rowid, s.application, s.subscription, a.action, s.mode,
    iif(s.mode = 'push', ${textOf("s.handler")}, NULL) AS handler, s.max_retries, s.active,
    s.disabled_reason, k.bearer, k.previous_until_ms AS previous_secret_until, s.failing_since_ms AS failing_since,
    coalesce(max(s.slowed_until_ms, s.retry_wait_until_ms), s.slowed_until_ms, s.retry_wait_until_ms) AS slowed_until,
    ${BLOCKED_BY} AS blocked_by, s.last_claim_ms AS last_claim_at, ${textOf("s.settings")} AS settings, ${timeOf("s.created_ms")} AS timestamped, s.action_id
  FROM subscription s JOIN action a ON a.rowid = s.action_id
    JOIN subscription_secret k ON k.subscription_id = s.rowid
  WHERE s.deleted_ms IS NULL`;

function findRow(sql: Sql, id: number): SubscriptionRow | undefined {
  if (!isRowid(id)) return undefined;
  return sql.rows<SubscriptionRow>(`${SELECT_SUBSCRIPTION} AND s.rowid = ?`, id)[0];
}

function subscriptionOf({
  action_id: _actionId,
  settings,
  timestamped,
  ...row
}: SubscriptionRow): Subscription {
  return {
    ...row,
    active: row.active === 1,
    previous_secret_until: isoOrNull(row.previous_secret_until),
    failing_since: isoOrNull(row.failing_since),
    slowed_until: isoOrNull(row.slowed_until),
    last_claim_at: isoOrNull(row.last_claim_at),
    ...settingsFromJson(settings),
    timestamped: toIso(timestamped),
  };
}
