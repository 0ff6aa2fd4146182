import { isReservedName } from "../../../domain/names.ts";
import type { Replay } from "../../../domain/replay.ts";
import type {
  ServiceEventName,
  ServiceEventPayloads,
  ReportedDelivery,
} from "../../../domain/service-events.ts";
import type { Deactivated, ServiceEventCounts } from "../../queue.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { Sql } from "../thread/sql.ts";
import { CALL_ROWS, recordEvents } from "./record.ts";
import type { EventBatch } from "./record-wire.ts";

// Events about evreg itself are recorded in the transaction of the write that they report, while somebody has an active
// subscription to them; otherwise that costs one query. Events of the service itself are not reported: a handler of
// theirs that fails would make more of them without end.

/** The answer of a write that may make such events. */
export interface WithServiceEvents<T> {
  readonly answer: T;
  readonly serviceEvents: ServiceEventCounts | undefined;
  /** Deliveries that failed for good by another way than an attempt; none unless given. */
  readonly failed?: number;
}

/** A delivery that just failed for good, or that its subscription blocks for from now on. */
export type Transitioned = readonly [deliveryId: number, nowMs: number];

/** The subscriptions that one call deactivated. */
interface Deactivations {
  readonly nowMs: number;
  readonly deactivated: readonly Deactivated[];
}

/** Changes of deliveries and subscriptions to be reported. */
interface DeliveryChanges {
  readonly failed?: readonly Transitioned[];
  readonly blocked?: readonly Transitioned[];
  readonly deactivations?: readonly Deactivations[];
}

/** Tells what came of finished attempts, set-wise: however many deliveries failed, they are recorded together. */
export function recordDeliveryEvents(
  sql: Sql,
  { failed = [], blocked = [], deactivations = [] }: DeliveryChanges,
): ServiceEventCounts | undefined {
  return recordServiceEvents(sql, [
    ...failedEvents(sql, failed),
    ...blockedEvents(sql, blocked),
    ...deactivatedEvents(sql, deactivations),
  ]);
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
  const payload: ServiceEventPayloads["evreg.replay.finished"] = {
    replay_id: replay.rowid,
    subscription_id: replay.subscription_id,
    application: replay.application,
    subscription: replay.subscription,
    action: replay.action,
    selection: replay.selection,
    from: replay.from,
    to: replay.to,
    status: replay.status,
    reason: replay.reason,
    total: replay.total,
    queued: replay.queued,
    skipped: replay.skipped,
    started_at: replay.timestamped,
    finished_at: replay.finished_at ?? toIso(nowMs),
  };
  return recordServiceEvents(sql, [{ action, payload, nowMs }]);
}

function failedEvents(sql: Sql, failed: readonly Transitioned[]): readonly ServiceEvent[] {
  return deliveryEvents(sql, "evreg.delivery.failed", failed, (delivery, at) => ({
    ...delivery,
    failed_at: at,
  }));
}

function blockedEvents(sql: Sql, blocked: readonly Transitioned[]): readonly ServiceEvent[] {
  return deliveryEvents(sql, "evreg.subscription.blocked", blocked, (delivery, at) => ({
    ...delivery,
    blocked_at: at,
  }));
}

/** @param payloadOf `at`: when it transitioned so */
function deliveryEvents<N extends "evreg.delivery.failed" | "evreg.subscription.blocked">(
  sql: Sql,
  name: N,
  transitioned: readonly Transitioned[],
  payloadOf: (delivery: ReportedDelivery, at: string) => ServiceEventPayloads[N],
): readonly ServiceEvent[] {
  if (transitioned.length === 0) return [];
  const action = subscribedAction(sql, name);
  if (action === undefined) return [];
  const rows = sql.rows<SubscriptionNames & DeliveryRow>(
    `SELECT d.rowid AS delivery_id, d.event_id, t.value ->> 1 AS now_ms, s.rowid AS subscription_id, s.application,
        s.subscription, a.action, s.handler, d.attempt AS attempts, d.last_error, e.timestamped_ms
      FROM json_each(?) AS t
      CROSS JOIN delivery AS d ON d.rowid = t.value ->> 0
      CROSS JOIN event AS e ON e.rowid = d.event_id
      CROSS JOIN action AS a ON a.rowid = e.action_id
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id`,
    JSON.stringify(transitioned),
  );
  return rows
    .filter((row) => !isReservedName(row.action))
    .map((row) => {
      const { now_ms: nowMs, delivery_id, event_id, attempts, last_error } = row;
      const delivery: ReportedDelivery = {
        delivery_id,
        event_id,
        ...namesOf(row),
        attempts,
        last_error,
        published_at: toIso(row.timestamped_ms),
      };
      return { action, payload: payloadOf(delivery, toIso(nowMs)), nowMs };
    });
}

function deactivatedEvents(sql: Sql, deactivations: readonly Deactivations[]): readonly ServiceEvent[] {
  if (deactivations.every(({ deactivated }) => deactivated.length === 0)) return [];
  const action = subscribedAction(sql, "evreg.subscription.deactivated");
  if (action === undefined) return [];
  return deactivations.flatMap(({ nowMs, deactivated }) =>
    deactivated.flatMap(({ subscriptionId, reason }) => {
      const names = loadNames(sql, subscriptionId);
      if (isReservedName(names.action)) return [];
      const payload: ServiceEventPayloads["evreg.subscription.deactivated"] = {
        ...names,
        reason,
        deactivated_at: toIso(nowMs),
      };
      return [{ action, payload, nowMs }];
    }),
  );
}

function loadNames(sql: Sql, subscriptionId: number): ReturnType<typeof namesOf> {
  const row = sql.first<SubscriptionNames>(
    `SELECT s.rowid AS subscription_id, s.application, s.subscription, a.action, s.handler
      FROM subscription AS s CROSS JOIN action AS a ON a.rowid = s.action_id WHERE s.rowid = ?`,
    subscriptionId,
  );
  return namesOf(row!);
}

interface SubscriptionNames {
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
}

interface DeliveryRow {
  readonly delivery_id: number;
  readonly event_id: number;
  readonly now_ms: number;
  readonly attempts: number;
  readonly last_error: string;
  readonly timestamped_ms: number;
}

function namesOf({ subscription_id, application, subscription, action, handler }: SubscriptionNames) {
  // Path and query of an address are often what keeps it secret.
  const handler_host = URL.canParse(handler) ? new URL(handler).host : "";
  return { subscription_id, application, subscription, action, handler_host };
}

/** One that somebody awaits. */
interface ServiceEvent {
  readonly action: SubscribedAction;
  readonly payload: ServiceEventPayloads[ServiceEventName];
  readonly nowMs: number;
}

interface SubscribedAction {
  readonly id: number;
  readonly revision: number;
  /** Active subscriptions now; one at least. */
  readonly subscribers: number;
}

/** The action of this name if it is the service's own and somebody gets its events now. */
function subscribedAction(sql: Sql, name: ServiceEventName): SubscribedAction | undefined {
  const action = sql.first<SubscribedAction>(
    `SELECT a.rowid AS id, a.revision, (SELECT count(*) FROM subscription AS s
          WHERE s.action_id = a.rowid AND s.active = 1 AND s.deleted_ms IS NULL) AS subscribers
      FROM action AS a WHERE a.action = ? AND a.built_in = 1`,
    name,
  );
  return action === undefined || action.subscribers === 0 ? undefined : action;
}

/** As published events are. Each is an atomic call of its own, as such a one is never deferred. */
function recordServiceEvents(sql: Sql, events: readonly ServiceEvent[]): ServiceEventCounts | undefined {
  if (events.length === 0) return undefined;
  const payloads = events.map(({ payload }) => Buffer.from(JSON.stringify(payload)));
  let offset = 0;
  const batches = events.map(({ action, nowMs }, index): EventBatch => {
    const length = payloads[index]!.byteLength;
    const event = { actionId: action.id, revision: action.revision, offset, length, key: null, nowMs };
    offset += length;
    return { atomic: true, events: [event] };
  });
  const outcomes = recordEvents(sql, batches, Buffer.concat(payloads)).flat();
  const deliveries = outcomes.map((outcome) => (outcome.kind === "recorded" ? outcome.deliveries : 0));
  return { events: events.length, deliveries: deliveries.reduce((sum, one) => sum + one, 0) };
}

/**
 * How many events one transaction may record: as many as come to the rows that one call may publish, each with a delivery to
 * each subscription. What it does not admit is left to another transaction, with the change that it reports.
 */
export class ServiceEventBudget {
  readonly #sql: Sql;
  /** Rows that an event of each comes to. */
  readonly #rowsOf = new Map<ServiceEventName, number>();
  #rows = 0;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Whether these may be recorded as well. The first with a subscription always may. */
  admits(names: readonly ServiceEventName[]): boolean {
    const rows = names.reduce((sum, name) => sum + this.#rowsFor(name), 0);
    if (rows > 0 && this.#rows > 0 && this.#rows + rows > CALL_ROWS) return false;
    this.#rows += rows;
    return true;
  }

  #rowsFor(name: ServiceEventName): number {
    let rows = this.#rowsOf.get(name);
    if (rows === undefined) {
      const action = subscribedAction(this.#sql, name);
      rows = action === undefined ? 0 : 1 + action.subscribers;
      this.#rowsOf.set(name, rows);
    }
    return rows;
  }
}
