import type {
  SecretReplacement,
  SubscriptionPatch,
  SubscriptionRecord,
  SubscriptionSelection,
} from "../../catalog.ts";
import { EvregError } from "../../../domain/error.ts";
import {
  changedSettings,
  NO_SETTINGS,
  orderPointer,
  type SubscriptionSettings,
} from "../../../domain/subscription-settings.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { endRunning } from "../history/replays.ts";
import { BLOCKED_BY } from "../queue/key-order.ts";
import { answersOf } from "../../../model/field.ts";
import { SUBSCRIPTION } from "../../../model/subscription.ts";
import { insertNumbered, recordsOf, settingsFromJson, settingsToJson, type Sql, updateRow } from "../sql.ts";
import { deleteSecrets, insertSecrets, replaceSecrets, setBearer } from "./credentials.ts";
import { endMatches, matchActions } from "./matching.ts";
import type { Work } from "../operation.ts";

const NO_HANDLER = "";

export async function createSubscription(
  work: Work,
  input: SubscriptionRecord,
  nowMs: number,
): Promise<Subscription> {
  await checkBinding(work, input);
  const mode = input.handler === null ? "pull" : "push";
  const settings = changedSettings(NO_SETTINGS, input.settings ?? {});
  const id = await insertNumbered(work, "subscription", {
    application: input.application,
    subscription: input.subscription,
    action: input.action,
    mode,
    handler: input.handler ?? NO_HANDLER,
    max_retries: input.maxRetries,
    active: input.active,
    inactive_since_ms: input.active ? null : nowMs,
    created_ms: nowMs,
    ...settingColumns(settings),
  });
  await matchActions(work, id, input.action);
  await insertSecrets(work, id, { ...input, mode });
  return (await findSubscription(work, id))!;
}

export async function findSubscription(
  sql: Sql,
  id: number,
  alsoDeleted = false,
): Promise<Subscription | undefined> {
  const text = `${SELECT_SUBSCRIPTION} ${alsoDeleted ? "TRUE" : LIVING} AND s.rowid = ?`;
  return (await sql.rows<SubscriptionRow>(text, id)).map(subscriptionOf)[0];
}

export async function listSubscriptions(
  sql: Sql,
  query: SubscriptionSelection,
): Promise<readonly Subscription[]> {
  const rows = await sql.rows<SubscriptionRow>(
    `${SELECT_SUBSCRIPTION} ${LIVING}
      AND (?1 IS NULL OR s.application IN list(?1: name text))
      AND (?2 IS NULL OR s.action = ?2 OR s.rowid IN (
        SELECT b.subscription_id FROM action AS a CROSS JOIN binding AS b INDEXED BY binding_receiving
        WHERE a.action = ?2 AND b.action_id = a.rowid AND b.receives = 1))
      AND (?3 IS NULL OR s.active = ?3)
      AND (?4 IS NULL OR s.subscription = ?4)
      AND (?5 IS NULL OR s.application || '/' || s.subscription = ?5
        OR s.application || '/' || s.subscription || '#' || s.action = ?5)
      AND s.rowid > ?6
      ORDER BY s.rowid LIMIT ?7`,
    query.applications,
    query.action,
    query.active,
    query.subscription,
    query.name,
    query.after ?? 0,
    query.limit ?? Number.MAX_SAFE_INTEGER,
  );
  return rows.map(subscriptionOf);
}

export async function updateSubscription(
  work: Work,
  id: number,
  patch: SubscriptionPatch,
  nowMs: number,
): Promise<Subscription | undefined> {
  const before = await findSubscription(work, id);
  if (before === undefined) return undefined;
  const { handler = before.handler, action = before.action, active = before.active, settings } = patch;
  if (action !== before.action) {
    await checkBinding(work, { ...before, action });
    await matchActions(work, id, action);
    const reason = `The subscription was bound to another action, ${action}.`;
    await endRunning(work, id, "failed", reason, nowMs);
  }
  await updateRow(work, "subscription", id, {
    handler: handler ?? NO_HANDLER,
    max_retries: patch.maxRetries ?? before.max_retries,
    active,
    ...(active === before.active ? {} : { inactive_since_ms: active ? null : nowMs }),
    action,
    // Who pauses or reactivates it takes over from the service, so the service's reason goes.
    ...(patch.active === undefined ? {} : { disabled_reason: null }),
    ...(settings && settingColumns(changedSettings(before, settings))),
    ...(patch.active === true || handler !== before.handler ? NOTHING_KNOWN : {}),
  });
  if (patch.bearer !== undefined) await setBearer(work, id, before, patch.bearer);
  return await findSubscription(work, id);
}

/** Nothing is known of another handler, nor of one that a person says is well again. */
const NOTHING_KNOWN = {
  failing_since_ms: null,
  last_failure_ms: null,
  failing_total_ms: 0,
  slowed_until_ms: null,
} as const;

function settingColumns(settings: SubscriptionSettings) {
  return { settings: settingsToJson(settings), order_key: orderPointer(settings.ordered) };
}

export async function rotateSecret(
  work: Work,
  id: number,
  rotation: SecretReplacement,
  nowMs: number,
): Promise<Subscription | undefined> {
  const owner = await findSubscription(work, id);
  if (owner === undefined) return undefined;
  await replaceSecrets(work, owner, rotation, nowMs);
  return await findSubscription(work, id);
}

export async function deleteSubscription(
  work: Work,
  id: number,
  nowMs: number,
): Promise<Subscription | undefined> {
  const deleted = await findSubscription(work, id);
  if (deleted === undefined) return undefined;
  await updateRow(work, "subscription", id, { deleted_ms: nowMs });
  await endMatches(work, id);
  await deleteSecrets(work, id);
  await endRunning(work, id, "cancelled", "The subscription was deleted.", nowMs);
  return deleted;
}

/** Checks that no other subscription of the name is bound to the action. */
async function checkBinding(
  sql: Sql,
  { application, subscription, action }: Pick<Subscription, "application" | "subscription" | "action">,
): Promise<void> {
  const rowid = await sql.value<number | undefined>(
    `SELECT rowid AS rowid FROM subscription
      WHERE application = ? AND subscription = ? AND action = ? AND deleted_ms IS NULL`,
    application,
    subscription,
    action,
  );
  if (rowid === undefined) return;
  const message = `${application} has a subscription ${subscription} to ${action} already (rowid ${rowid})`;
  const details = { field: "subscription", message, value: subscription, rowid };
  throw new EvregError("conflict", `subscription: ${message}.`, details);
}

interface SubscriptionRow {
  readonly settings: string | null;
}

/** Goes on with conditions on `s`. */
const SELECT_SUBSCRIPTION = `
  SELECT s.rowid AS rowid, s.application, s.subscription, s.action, s.mode,
    iif(s.mode = 'push', s.handler, NULL) AS handler, s.max_retries, s.active,
    s.disabled_reason, coalesce(k.bearer, 'secret') AS bearer, k.previous_until_ms AS previous_secret_until, s.failing_since_ms AS failing_since,
    s.slowed_until_ms AS slowed_until,
    ${BLOCKED_BY} AS blocked_by, s.last_claim_ms AS last_claim_at, s.settings, s.created_ms AS timestamped
  FROM subscription s LEFT JOIN subscription_secret k ON k.subscription_id = s.rowid
  WHERE`;

const LIVING = "s.deleted_ms IS NULL";

const withoutSettings = recordsOf<Omit<Subscription, keyof SubscriptionSettings>>(answersOf(SUBSCRIPTION));

function subscriptionOf(row: SubscriptionRow): Subscription {
  const { timestamped, ...record } = withoutSettings(row);
  return { ...record, ...settingsFromJson(row.settings), timestamped };
}
