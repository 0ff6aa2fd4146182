import { isReservedName } from "../../domain/names.ts";
import type { Replay, ReplayStatus } from "../../domain/replay.ts";
import type { ServiceEventName, ServiceEventPayloads } from "../../domain/service-events.ts";
import { toIso } from "../../runtime/clock.ts";

// What events about evreg itself say. Deliveries, subscriptions and replays of such events are not reported: a handler that
// fails would make more of them without end.

/** A subscription that something is reported of, with the action of what is reported: its own may be a pattern. */
export interface ReportedSubscriptionRow {
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly handler: string;
}

export interface ReportedDeliveryRow extends ReportedSubscriptionRow {
  readonly delivery_id: number;
  readonly event_id: number;
  readonly attempts: number;
  readonly last_error: string;
  readonly published_ms: number;
}

export type ServiceEvent = {
  readonly [N in ServiceEventName]: { readonly name: N; readonly payload: ServiceEventPayloads[N] };
}[ServiceEventName];

/** Whether the service reports it; see above. */
export function isReported({ payload }: ServiceEvent): boolean {
  return !isReservedName(payload.action);
}

export function deliveryFailed(row: ReportedDeliveryRow, nowMs: number): ServiceEvent {
  return { name: "evreg.delivery.failed", payload: { ...deliveryMembers(row), failed_at: toIso(nowMs) } };
}

export function subscriptionBlocked(row: ReportedDeliveryRow, nowMs: number): ServiceEvent {
  const payload = { ...deliveryMembers(row), blocked_at: toIso(nowMs) };
  return { name: "evreg.subscription.blocked", payload };
}

export function subscriptionDeactivated(
  row: ReportedSubscriptionRow,
  reason: string,
  nowMs: number,
): ServiceEvent {
  const payload = { ...subscriptionMembers(row), reason, deactivated_at: toIso(nowMs) };
  return { name: "evreg.subscription.deactivated", payload };
}

export type EndedReplay = Replay & { readonly status: Exclude<ReplayStatus, "running"> };

export function replayFinished(replay: EndedReplay, nowMs: number): ServiceEvent {
  const { rowid: replay_id, timestamped: started_at, finished_at: finished, ...shared } = replay;
  const finished_at = finished ?? toIso(nowMs);
  return { name: "evreg.replay.finished", payload: { replay_id, ...shared, started_at, finished_at } };
}

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
