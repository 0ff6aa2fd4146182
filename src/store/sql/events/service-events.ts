import { isReservedName } from "../../../domain/names.ts";
import type { ServiceEventName, ServiceEventPayloads } from "../../../domain/service-events.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { EventRecord } from "../../events.ts";
import type { Deactivated } from "../../queue.ts";
import { receiversOf } from "../catalog/matching.ts";
import type { Work } from "../operation.ts";
import type { Sql } from "../sql.ts";
import { recordEvents } from "./record.ts";

// A service event is recorded in the transaction of the write that it reports, if its action has an active subscription. Where
// none of these actions has one, that costs one query. Deliveries and subscriptions of such events are not reported: a handler that fails
// would make more of them without end.

interface ReportedChanges {
  readonly failed?: readonly number[];
  /** Deliveries that their subscriptions block for from now on. */
  readonly blocked?: readonly number[];
  readonly deactivated?: readonly Deactivated[];
}

/** Reports changes together, however many there are. */
export async function recordServiceEvents(
  work: Work,
  { failed = [], blocked = [], deactivated = [] }: ReportedChanges,
  nowMs: number,
): Promise<void> {
  if (failed.length + blocked.length + deactivated.length === 0) return;
  const subscribed = await loadSubscribedActions(work);
  if (subscribed.size === 0) return;
  const events: EventRecord[] = [];
  const report = <N extends ServiceEventName>(name: N, payload: ServiceEventPayloads[N]): void => {
    const action = subscribed.get(name);
    if (action === undefined || isReservedName(payload.action)) return;
    events.push({ ...action, payload: Buffer.from(JSON.stringify(payload)) });
  };
  const now = toIso(nowMs);
  for (const row of await loadDeliveries(work, failed)) {
    report("evreg.delivery.failed", { ...row, failed_at: now });
  }
  for (const row of await loadDeliveries(work, blocked)) {
    report("evreg.subscription.blocked", { ...row, blocked_at: now });
  }
  const reasons = new Map(deactivated.map(({ subscriptionId, reason }) => [subscriptionId, reason]));
  for (const row of await loadSubscriptions(work, [...reasons.keys()])) {
    const reason = reasons.get(row.subscription_id)!;
    report("evreg.subscription.deactivated", { ...row, reason, deactivated_at: now });
  }
  if (events.length === 0) return;
  // They are recorded like published ones, as an atomic batch: all of them go in.
  const { outcomes } = await recordEvents(work, [{ atomic: true, nowMs, events }]);
  const deliveries = outcomes
    .flat()
    .reduce((sum, outcome) => sum + (outcome.kind === "recorded" ? outcome.deliveries : 0), 0);
  work.changes.push({ serviceEvents: { events: events.length, deliveries } });
}

/** What is reported of a delivery, and of its subscription with the action of its event: its own may be a pattern. */
type DeliveryMembers = Omit<ServiceEventPayloads["evreg.delivery.failed"], "failed_at">;
type SubscriptionMembers = Omit<
  ServiceEventPayloads["evreg.subscription.deactivated"],
  "reason" | "deactivated_at"
>;
type Row<M extends SubscriptionMembers> = Omit<M, "handler_host" | "published_at"> & {
  readonly handler: string;
};

async function loadDeliveries(sql: Sql, ids: readonly number[]): Promise<readonly DeliveryMembers[]> {
  if (ids.length === 0) return [];
  const rows = await sql.rows<Row<DeliveryMembers> & { readonly published_ms: number }>(
    `SELECT d.rowid AS delivery_id, d.event_id, s.rowid AS subscription_id, s.application, s.subscription, a.action,
        s.handler, d.attempt AS attempts, d.last_error, e.timestamped_ms AS published_ms
      FROM list(?: id bigint) AS changed
      CROSS JOIN delivery AS d ON d.rowid = changed.id
      CROSS JOIN event AS e ON e.rowid = d.event_id
      CROSS JOIN action AS a ON a.rowid = e.action_id
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id`,
    ids,
  );
  return rows.map(({ handler, published_ms, ...row }) => {
    return Object.assign(row, { handler_host: hostOf(handler), published_at: toIso(published_ms) });
  });
}

async function loadSubscriptions(sql: Sql, ids: readonly number[]): Promise<readonly SubscriptionMembers[]> {
  if (ids.length === 0) return [];
  const rows = await sql.rows<Row<SubscriptionMembers>>(
    `SELECT s.rowid AS subscription_id, s.application, s.subscription, s.action, s.handler
      FROM list(?: id bigint) AS ids CROSS JOIN subscription AS s ON s.rowid = ids.id`,
    ids,
  );
  return rows.map(({ handler, ...row }) => Object.assign(row, { handler_host: hostOf(handler) }));
}

type SubscribedActions = ReadonlyMap<ServiceEventName, Pick<EventRecord, "actionId" | "revision">>;

/** The service's own actions that have an active subscription. */
async function loadSubscribedActions(sql: Sql): Promise<SubscribedActions> {
  const actions = await sql.rows<{ name: ServiceEventName; actionId: number; revision: number }>(
    `SELECT a.action AS name, a.rowid AS actionId, a.revision FROM action AS a
      WHERE a.action BETWEEN 'evreg.' AND 'evreg/' AND a.built_in = 1
        AND EXISTS (SELECT 1 FROM ${receiversOf("a.rowid")})`,
  );
  return new Map(actions.map(({ name, ...action }) => [name, action]));
}

/** The path and query of an address may be secret. */
function hostOf(handler: string): string {
  return URL.canParse(handler) ? new URL(handler).host : "";
}
