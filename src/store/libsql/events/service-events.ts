import { isReservedName } from "../../../domain/names.ts";
import type { Replay } from "../../../domain/replay.ts";
import type {
  ServiceEventName,
  ServiceEventPayloads,
  ReportedDelivery,
} from "../../../domain/service-events.ts";
import type { Deactivated, ServiceEventCounts } from "../../queue.ts";
import { toIso } from "../../../runtime/clock.ts";
import { countFailed } from "../history/stats-counts.ts";
import type { StoredRecord } from "../stored-record.ts";
import { receiversOf } from "../catalog/hearing.ts";
import type { Sql } from "../thread/sql.ts";
import { recordEvents } from "./record.ts";
import type { Incoming } from "./record-wire.ts";

// A service event is recorded in the transaction of the write that it reports, if its action has an active subscription;
// otherwise it costs one query. Deliveries of service events are not reported: a handler that fails would make more of
// them without end.

/** The answer of a write that may record service events. */
export interface WithServiceEvents<T> {
  readonly answer: T;
  readonly serviceEvents?: ServiceEventCounts | undefined;
  /** Deliveries that failed for good without an attempt; none unless given. */
  readonly failed?: number;
}

/** Changes to be reported. */
interface DeliveryChanges {
  /** Deliveries that failed for good. */
  readonly failed?: readonly number[];
  /** Deliveries that their subscriptions block for from now on. */
  readonly blocked?: readonly number[];
  readonly deactivated?: readonly Deactivated[];
}

/** Reports changes together, however many there are, and counts what failed. */
export function recordDeliveryEvents(
  sql: Sql,
  { failed = [], blocked = [], deactivated = [] }: DeliveryChanges,
  nowMs: number,
): ServiceEventCounts | undefined {
  countFailed(sql, failed, nowMs);
  const at = toIso(nowMs);
  return recordServiceEvents(
    sql,
    [
      ...deliveryEvents(sql, "evreg.delivery.failed", failed, { failed_at: at }),
      ...deliveryEvents(sql, "evreg.subscription.blocked", blocked, { blocked_at: at }),
      ...deactivatedEvents(sql, deactivated, at),
    ],
    nowMs,
  );
}

/** The counts of two steps of one write. */
export function addCounts(
  one: ServiceEventCounts | undefined,
  other: ServiceEventCounts | undefined,
): ServiceEventCounts | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return { events: one.events + other.events, deliveries: one.deliveries + other.deliveries };
}

/** @param replay as it is now that it has ended */
export function recordReplayEvent(
  sql: Sql,
  replay: Replay | undefined,
  nowMs: number,
): ServiceEventCounts | undefined {
  if (replay === undefined || replay.status === "running" || isReservedName(replay.action)) return undefined;
  const action = subscribedAction(sql, "evreg.replay.finished");
  if (action === undefined) return undefined;
  const { rowid: replay_id, timestamped: started_at, finished_at, ...shared } = replay;
  const payload: ServiceEventPayloads["evreg.replay.finished"] = {
    replay_id,
    ...shared,
    status: replay.status,
    started_at,
    finished_at: finished_at ?? toIso(nowMs),
  };
  return recordServiceEvents(sql, [{ action, payload }], nowMs);
}

/** @param when the member that only this kind of event has */
function deliveryEvents(
  sql: Sql,
  name: "evreg.delivery.failed" | "evreg.subscription.blocked",
  ids: readonly number[],
  when: { readonly failed_at: string } | { readonly blocked_at: string },
): readonly ServiceEvent[] {
  if (ids.length === 0) return [];
  const action = subscribedAction(sql, name);
  if (action === undefined) return [];
  const rows = sql.rows<SubscriptionNames & StoredRecord<ReportedDelivery, "published_at">>(
    `SELECT d.rowid AS delivery_id, d.event_id, s.rowid AS subscription_id, s.application, s.subscription, a.action,
        s.handler, d.attempt AS attempts, d.last_error, e.timestamped_ms AS published_at
      FROM json_each(?) AS changed
      CROSS JOIN delivery AS d ON d.rowid = changed.value
      CROSS JOIN event AS e ON e.rowid = d.event_id
      CROSS JOIN action AS a ON a.rowid = e.action_id
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id`,
    JSON.stringify(ids),
  );
  return rows
    .filter((row) => !isReservedName(row.action))
    .map((row) => {
      const { delivery_id, event_id, attempts, last_error } = row;
      const published_at = toIso(row.published_at);
      const delivery = { delivery_id, event_id, ...namesOf(row), attempts, last_error, published_at };
      return { action, payload: { ...delivery, ...when } };
    });
}

function deactivatedEvents(
  sql: Sql,
  deactivated: readonly Deactivated[],
  at: string,
): readonly ServiceEvent[] {
  if (deactivated.length === 0) return [];
  const action = subscribedAction(sql, "evreg.subscription.deactivated");
  if (action === undefined) return [];
  return deactivated.flatMap(({ subscriptionId, reason }) => {
    const row = sql.first<SubscriptionNames>(
      `SELECT s.rowid AS subscription_id, s.application, s.subscription, s.action, s.handler
        FROM subscription AS s WHERE s.rowid = ?`,
      subscriptionId,
    )!;
    if (isReservedName(row.action)) return [];
    return [{ action, payload: { ...namesOf(row), reason, deactivated_at: at } }];
  });
}

interface SubscriptionNames {
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
}

function namesOf({ subscription_id, application, subscription, action, handler }: SubscriptionNames) {
  // The path and query of an address may be secret.
  const handler_host = URL.canParse(handler) ? new URL(handler).host : "";
  return { subscription_id, application, subscription, action, handler_host };
}

interface ServiceEvent {
  readonly action: SubscribedAction;
  readonly payload: ServiceEventPayloads[ServiceEventName];
}

interface SubscribedAction {
  readonly id: number;
  readonly revision: number;
  /** Active subscriptions; at least one. */
  readonly subscribers: number;
}

/** The service's own action of this name, if it has an active subscription. */
function subscribedAction(sql: Sql, name: ServiceEventName): SubscribedAction | undefined {
  const action = sql.first<SubscribedAction>(
    `SELECT a.rowid AS id, a.revision, (SELECT count(*) FROM ${receiversOf("a.rowid")}) AS subscribers
      FROM action AS a WHERE a.action = ? AND a.built_in = 1`,
    name,
  );
  return action === undefined || action.subscribers === 0 ? undefined : action;
}

/** Records them like published events, as an atomic batch: all of them go in. */
function recordServiceEvents(
  sql: Sql,
  events: readonly ServiceEvent[],
  nowMs: number,
): ServiceEventCounts | undefined {
  if (events.length === 0) return undefined;
  const payloads = events.map(({ payload }) => Buffer.from(JSON.stringify(payload)));
  let offset = 0;
  const incoming = events.map(({ action }, index): Incoming => {
    const length = payloads[index]!.byteLength;
    const event = {
      actionId: action.id,
      revision: action.revision,
      offset,
      length,
      idempotencyKey: null,
      nowMs,
    };
    offset += length;
    return event;
  });
  const outcomes = recordEvents(sql, [{ atomic: true, events: incoming }], Buffer.concat(payloads)).flat();
  const deliveries = outcomes.map((outcome) => (outcome.kind === "recorded" ? outcome.deliveries : 0));
  return { events: events.length, deliveries: deliveries.reduce((sum, one) => sum + one, 0) };
}
