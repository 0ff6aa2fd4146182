import type { Replay } from "../../../domain/replay.ts";
import type { ServiceEventName } from "../../../domain/service-events.ts";
import type { Deactivated, ServiceEventCounts } from "../../queue.ts";
import {
  deliveryFailed,
  type ReportedDeliveryRow,
  type ReportedSubscriptionRow,
  replayFinished,
  type ServiceEvent,
  subscriptionBlocked,
  subscriptionDeactivated,
} from "../../rules/service-events.ts";
import { receiversOf } from "../catalog/matching.ts";
import { countFailed } from "../history/stats.ts";
import type { Work } from "../thread/operation.ts";
import type { Sql } from "../thread/sql.ts";
import { recordEvents } from "./record.ts";
import type { Incoming } from "../queue/wire.ts";

// A service event is recorded in the transaction of the write that it reports, if its action has an active subscription;
// otherwise it costs one query.

interface ReportedChanges {
  /** Deliveries that failed for good. */
  readonly failed?: readonly number[];
  /** Deliveries that their subscriptions block for from now on. */
  readonly blocked?: readonly number[];
  readonly deactivated?: readonly Deactivated[];
  /** A replay, as it is now that it has ended. */
  readonly endedReplay?: Replay | undefined;
}

/** Reports changes together, however many there are, and counts what failed. */
export function recordServiceEvents(
  work: Work,
  { failed = [], blocked = [], deactivated = [], endedReplay }: ReportedChanges,
  nowMs: number,
): void {
  countFailed(work, failed, nowMs);
  const isQuiet = failed.length + blocked.length + deactivated.length === 0;
  if (isQuiet && endedReplay === undefined) return;
  const subscribed = loadSubscribedActions(work);
  const wanted = <T>(name: ServiceEventName, changes: readonly T[]): readonly T[] =>
    subscribed.has(name) ? changes : [];
  const events = [
    ...loadDeliveries(work, wanted("evreg.delivery.failed", failed)).map((row) => deliveryFailed(row, nowMs)),
    ...loadDeliveries(work, wanted("evreg.subscription.blocked", blocked)).map((row) =>
      subscriptionBlocked(row, nowMs),
    ),
    ...wanted("evreg.subscription.deactivated", deactivated).map(({ subscriptionId, reason }) =>
      subscriptionDeactivated(loadSubscription(work, subscriptionId), reason, nowMs),
    ),
    endedReplay && replayFinished(endedReplay, nowMs),
  ];
  const serviceEvents = recordSubscribed(work, subscribed, events, nowMs);
  if (serviceEvents !== undefined) work.changes.push({ serviceEvents });
}

function loadDeliveries(sql: Sql, ids: readonly number[]): readonly ReportedDeliveryRow[] {
  if (ids.length === 0) return [];
  return sql.rows(
    `SELECT d.rowid AS delivery_id, d.event_id, s.rowid AS subscription_id, s.application, s.subscription, a.action,
        s.handler, d.attempt AS attempts, d.last_error, e.timestamped_ms AS published_ms
      FROM json_each(?) AS changed
      CROSS JOIN delivery AS d ON d.rowid = changed.value
      CROSS JOIN event AS e ON e.rowid = d.event_id
      CROSS JOIN action AS a ON a.rowid = e.action_id
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id`,
    JSON.stringify(ids),
  );
}

function loadSubscription(sql: Sql, id: number): ReportedSubscriptionRow {
  return sql.first<ReportedSubscriptionRow>(
    `SELECT s.rowid AS subscription_id, s.application, s.subscription, s.action, s.handler
      FROM subscription AS s WHERE s.rowid = ?`,
    id,
  )!;
}

type SubscribedActions = ReadonlyMap<ServiceEventName, Pick<Incoming, "actionId" | "revision">>;

/** The service's own actions that have an active subscription. */
function loadSubscribedActions(sql: Sql): SubscribedActions {
  const actions = sql.rows<{ name: ServiceEventName; actionId: number; revision: number }>(
    `SELECT a.action AS name, a.rowid AS actionId, a.revision FROM action AS a
      WHERE a.action BETWEEN 'evreg.' AND 'evreg/' AND a.built_in = 1
        AND EXISTS (SELECT 1 FROM ${receiversOf("a.rowid")})`,
  );
  return new Map(actions.map(({ name, ...action }) => [name, action]));
}

/** Records those that somebody subscribed to like published events, as an atomic batch: all of them go in. */
function recordSubscribed(
  sql: Sql,
  subscribed: SubscribedActions,
  events: readonly (ServiceEvent | undefined)[],
  nowMs: number,
): ServiceEventCounts | undefined {
  const payloads: Uint8Array[] = [];
  const incoming: Incoming[] = [];
  let offset = 0;
  for (const event of events) {
    const action = event === undefined ? undefined : subscribed.get(event.name);
    if (event === undefined || action === undefined) continue;
    const payload = Buffer.from(JSON.stringify(event.payload));
    const { byteLength: length } = payload;
    payloads.push(payload);
    incoming.push({ ...action, offset, length, idempotencyKey: null, nowMs });
    offset += length;
  }
  if (incoming.length === 0) return undefined;
  const [outcomes = []] = recordEvents(sql, [{ atomic: true, events: incoming }], Buffer.concat(payloads));
  let deliveries = 0;
  for (const outcome of outcomes) {
    if (outcome.kind === "recorded") deliveries += outcome.deliveries;
  }
  return { events: incoming.length, deliveries };
}
