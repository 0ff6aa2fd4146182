import { isReservedName } from "../../../domain/names.ts";
import type { ServiceEventName, ServiceEventPayloads } from "../../../domain/service-events.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { Deactivated } from "../../queue.ts";
import { receiversOf } from "../catalog/matching.ts";
import { countFailed } from "../history/stats.ts";
import type { Work } from "../operation.ts";
import type { Sql } from "../sql.ts";
import { recordEvents } from "./record.ts";
import type { Incoming } from "../queue/wire.ts";

// A service event is recorded in the transaction of the write that it reports, if its action has an active subscription. Where
// none of these actions has one, that costs one query. Deliveries and subscriptions of such events are not reported: a handler that fails
// would make more of them without end.

interface ReportedChanges {
  readonly failed?: readonly number[];
  /** Deliveries that their subscriptions block for from now on. */
  readonly blocked?: readonly number[];
  readonly deactivated?: readonly Deactivated[];
}

/** Reports changes together, however many there are, and counts what failed. */
export async function recordServiceEvents(
  work: Work,
  { failed = [], blocked = [], deactivated = [] }: ReportedChanges,
  nowMs: number,
): Promise<void> {
  await countFailed(work, failed, nowMs);
  if (failed.length + blocked.length + deactivated.length === 0) return;
  const subscribed = await loadSubscribedActions(work);
  if (subscribed.size === 0) return;
  const failures = await loadDeliveries(work, failed);
  const blockers = await loadDeliveries(work, blocked);
  const reasons = new Map(deactivated.map(({ subscriptionId, reason }) => [subscriptionId, reason]));
  const subscriptions = await loadSubscriptions(work, [...reasons.keys()]);
  const now = toIso(nowMs);
  const all: readonly ServiceEvent[] = [
    ...failures.map((row): ServiceEvent => {
      return { name: "evreg.delivery.failed", payload: { ...deliveryMembers(row), failed_at: now } };
    }),
    ...blockers.map((row): ServiceEvent => {
      return { name: "evreg.subscription.blocked", payload: { ...deliveryMembers(row), blocked_at: now } };
    }),
    ...subscriptions.map((row): ServiceEvent => {
      const payload = { ...subscriptionMembers(row), reason: reasons.get(row.subscription_id)! };
      return { name: "evreg.subscription.deactivated", payload: { ...payload, deactivated_at: now } };
    }),
  ];
  const events = all.filter(({ name, payload }) => subscribed.has(name) && !isReservedName(payload.action));
  if (events.length > 0) await recordAll(work, events, subscribed, nowMs);
}

async function loadDeliveries(sql: Sql, ids: readonly number[]): Promise<readonly ReportedDeliveryRow[]> {
  if (ids.length === 0) return [];
  return await sql.rows(
    `SELECT d.rowid AS delivery_id, d.event_id, s.rowid AS subscription_id, s.application, s.subscription, a.action,
        s.handler, d.attempt AS attempts, d.last_error, e.timestamped_ms AS published_ms
      FROM list(?: id bigint) AS changed
      CROSS JOIN delivery AS d ON d.rowid = changed.id
      CROSS JOIN event AS e ON e.rowid = d.event_id
      CROSS JOIN action AS a ON a.rowid = e.action_id
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id`,
    ids,
  );
}

async function loadSubscriptions(
  sql: Sql,
  ids: readonly number[],
): Promise<readonly ReportedSubscriptionRow[]> {
  if (ids.length === 0) return [];
  return await sql.rows(
    `SELECT s.rowid AS subscription_id, s.application, s.subscription, s.action, s.handler
      FROM list(?: id bigint) AS ids CROSS JOIN subscription AS s ON s.rowid = ids.id`,
    ids,
  );
}

type SubscribedActions = ReadonlyMap<ServiceEventName, Pick<Incoming, "actionId" | "revision">>;

/** The service's own actions that have an active subscription. */
async function loadSubscribedActions(sql: Sql): Promise<SubscribedActions> {
  const actions = await sql.rows<{ name: ServiceEventName; actionId: number; revision: number }>(
    `SELECT a.action AS name, a.rowid AS actionId, a.revision FROM action AS a
      WHERE a.action BETWEEN 'evreg.' AND 'evreg/' AND a.built_in = 1
        AND EXISTS (SELECT 1 FROM ${receiversOf("a.rowid")})`,
  );
  return new Map(actions.map(({ name, ...action }) => [name, action]));
}

/** Records them like published events, as an atomic batch: all of them go in. */
async function recordAll(
  work: Work,
  events: readonly ServiceEvent[],
  subscribed: SubscribedActions,
  nowMs: number,
): Promise<void> {
  const texts = events.map(({ payload }) => Buffer.from(JSON.stringify(payload)));
  let end = 0;
  const candidates = events.map(({ name }, index): Incoming => {
    const { length } = texts[index]!;
    const offset = end;
    end += length;
    return { ...subscribed.get(name)!, offset, length, idempotencyKey: null, nowMs };
  });
  const batch = { atomic: true, events: candidates };
  const { outcomes } = await recordEvents(work, [batch], Buffer.concat(texts));
  const deliveries = outcomes
    .flat()
    .reduce((sum, outcome) => sum + (outcome.kind === "recorded" ? outcome.deliveries : 0), 0);
  work.changes.push({ serviceEvents: { events: events.length, deliveries } });
}

/** A subscription that something is reported of, with the action of what is reported: its own may be a pattern. */
interface ReportedSubscriptionRow {
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
}

interface ReportedDeliveryRow extends ReportedSubscriptionRow {
  readonly delivery_id: number;
  readonly event_id: number;
  readonly attempts: number;
  readonly last_error: string;
  readonly published_ms: number;
}

type ServiceEvent = {
  readonly [N in ServiceEventName]: { readonly name: N; readonly payload: ServiceEventPayloads[N] };
}[ServiceEventName];

function deliveryMembers(row: ReportedDeliveryRow) {
  const { delivery_id, event_id, attempts, last_error, published_ms } = row;
  const published_at = toIso(published_ms);
  return { delivery_id, event_id, ...subscriptionMembers(row), attempts, last_error, published_at };
}

function subscriptionMembers(row: ReportedSubscriptionRow) {
  const { subscription_id, application, subscription, action, handler } = row;
  // The path and query of an address may be secret.
  const handler_host = URL.canParse(handler) ? new URL(handler).host : "";
  return { subscription_id, application, subscription, action, handler_host };
}
