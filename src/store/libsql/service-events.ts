import type { Replay } from "../../domain/replay.ts";
import { type ServiceEventPayloads, type ToldDelivery } from "../../domain/service-events.ts";
import { toIso } from "../../runtime/clock.ts";
import type { Deactivated, ServiceEventCounts } from "../finishes.ts";
import { awaited, recordOwn, type ServiceEvent } from "./own-events.ts";
import type { Sql } from "./sql.ts";
import { isReservedName } from "../../domain/names.ts";

// What the service tells about itself is recorded in the transaction of what it tells of, while somebody has an active
// subscription to it; otherwise it costs one look. Nothing is told about events of the service itself: a handler of
// theirs that fails would make more of them without end.

/** What a write answers that may make such events. */
export interface Telling<T> {
  readonly answer: T;
  readonly told: ServiceEventCounts | undefined;
  /** Deliveries that failed for good by another way than an attempt; none unless it says so. */
  readonly failed?: number;
}

/** A delivery that just failed for good, or that its subscription blocks for from now on. */
export type Turned = readonly [deliveryId: number, nowMs: number];

/** The subscriptions that one call deactivated. */
interface Standing {
  readonly nowMs: number;
  readonly deactivated: readonly Deactivated[];
}

/** What of deliveries and subscriptions is to be told. */
interface Turns {
  readonly failed?: readonly Turned[];
  readonly blocked?: readonly Turned[];
  readonly standing?: readonly Standing[];
}

/** Tells what came of finished attempts, set-wise: however many deliveries failed, they are recorded together. */
export function tellTurns(
  sql: Sql,
  { failed = [], blocked = [], standing = [] }: Turns,
): ServiceEventCounts | undefined {
  return recordOwn(sql, [
    ...failedEvents(sql, failed),
    ...blockedEvents(sql, blocked),
    ...deactivatedEvents(sql, standing),
  ]);
}

/** What two steps of one write have told. */
export function toldTogether(
  one: ServiceEventCounts | undefined,
  other: ServiceEventCounts | undefined,
): ServiceEventCounts | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return { events: one.events + other.events, deliveries: one.deliveries + other.deliveries };
}

/** @param replay as it is now that it has ended */
export function tellReplay(
  sql: Sql,
  replay: Replay | undefined,
  nowMs: number,
): ServiceEventCounts | undefined {
  if (replay === undefined || replay.status === "running" || isReservedName(replay.action)) return undefined;
  const action = awaited(sql, "evreg.replay.finished");
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
  return recordOwn(sql, [{ action, payload, nowMs }]);
}

function failedEvents(sql: Sql, failed: readonly Turned[]): readonly ServiceEvent[] {
  return deliveryEvents(sql, "evreg.delivery.failed", failed, (delivery, at) => ({
    ...delivery,
    failed_at: at,
  }));
}

function blockedEvents(sql: Sql, blocked: readonly Turned[]): readonly ServiceEvent[] {
  return deliveryEvents(sql, "evreg.subscription.blocked", blocked, (delivery, at) => ({
    ...delivery,
    blocked_at: at,
  }));
}

/** @param payloadOf `at`: when it turned so */
function deliveryEvents<N extends "evreg.delivery.failed" | "evreg.subscription.blocked">(
  sql: Sql,
  name: N,
  turned: readonly Turned[],
  payloadOf: (delivery: ToldDelivery, at: string) => ServiceEventPayloads[N],
): readonly ServiceEvent[] {
  if (turned.length === 0) return [];
  const action = awaited(sql, name);
  if (action === undefined) return [];
  const rows = sql.rows<SubscriptionNames & DeliveryRow>(
    `SELECT d.rowid AS delivery_id, d.event_id, t.value ->> 1 AS now_ms, s.rowid AS subscription_id, s.application,
        s.subscription, a.action, s.handler, d.attempt AS attempts, d.last_error, e.timestamped_ms
      FROM json_each(?) AS t
      CROSS JOIN delivery AS d ON d.rowid = t.value ->> 0
      CROSS JOIN event AS e ON e.rowid = d.event_id
      CROSS JOIN action AS a ON a.rowid = e.action_id
      CROSS JOIN subscription AS s ON s.rowid = d.subscription_id`,
    JSON.stringify(turned),
  );
  return rows
    .filter((row) => !isReservedName(row.action))
    .map((row) => {
      const { now_ms: nowMs, delivery_id, event_id, attempts, last_error } = row;
      const delivery: ToldDelivery = {
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

function deactivatedEvents(sql: Sql, standing: readonly Standing[]): readonly ServiceEvent[] {
  if (standing.every(({ deactivated }) => deactivated.length === 0)) return [];
  const action = awaited(sql, "evreg.subscription.deactivated");
  if (action === undefined) return [];
  return standing.flatMap(({ nowMs, deactivated }) =>
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
