import type { DeliveryStatus } from "../../domain/delivery.ts";
import { hears } from "../../domain/names.ts";
import {
  cursorText,
  type StreamedEvent,
  type StreamMessage,
  type StreamPosition,
  type StreamTopic,
} from "../../domain/stream.ts";
import { RawJson } from "../../json/raw-json.ts";
import type { NextEvent } from "../../store/events.ts";
import type { NumberedChange } from "./ring.ts";

/** What one stream shows. Streams with the same view share all that is made for them. */
export interface View {
  readonly topics: ReadonlySet<StreamTopic>;
  readonly action?: string;
  /** `undefined` for all. */
  readonly applications?: readonly string[];
  readonly subscription?: number;
  readonly status?: DeliveryStatus;
  readonly payloads: boolean;
}

/** The same text for views that show the same. */
export function keyOf({ topics, action, applications, subscription, status, payloads }: View): string {
  return JSON.stringify([
    [...topics].toSorted(),
    applications?.toSorted(),
    action,
    subscription,
    status,
    payloads,
  ]);
}

/** Of which data and start of the server a stream is, for the ids of its messages. */
export interface Source {
  readonly data: string;
  readonly instance: string;
}

/** Some messages that go out together. */
export interface Batch {
  readonly messages: readonly StreamMessage[];
  /** What they take, about. */
  readonly bytes: number;
}

/** What happened between two positions. */
export interface Span {
  readonly events: readonly NextEvent[];
  readonly changes: readonly NumberedChange[];
  readonly to: Required<StreamPosition>;
}

export function showsChanges({ topics }: View): boolean {
  return topics.size > (topics.has("events") ? 1 : 0);
}

/** The position as far as the view has a part in it. */
export function positionIn(view: View, { event, change }: Required<StreamPosition>): StreamPosition {
  return {
    ...(view.topics.has("events") ? { event } : {}),
    ...(showsChanges(view) ? { change } : {}),
  };
}

export function idAt(view: View, source: Source, position: Required<StreamPosition>): string {
  return cursorText({ ...source, ...positionIn(view, position) });
}

/** Without the names and numbers in it. */
const MESSAGE_BYTES = 250;

/** What the view shows of the span, after a position within it. */
export function batchOf(view: View, source: Source, from: Required<StreamPosition>, span: Span): Batch {
  const messages: StreamMessage[] = [];
  let bytes = 0;
  let position = from;
  const idOf = (to: Partial<StreamPosition>): string => {
    position = { ...position, ...to };
    return idAt(view, source, position);
  };
  if (view.topics.has("events")) {
    for (const event of span.events) {
      if (event.rowid <= from.event || !hasEvent(view, event)) continue;
      messages.push({
        type: "event",
        id: idOf({ event: event.rowid }),
        data: shownEvent(event, view.payloads),
      });
      bytes += MESSAGE_BYTES + (view.payloads ? (event.payload?.length ?? 0) : 0);
    }
  }
  position = { ...position, event: Math.max(from.event, span.to.event) };
  for (const change of span.changes) {
    if (change.number <= from.change || !hasChange(view, change)) continue;
    const message = { type: TYPES[change.topic], id: idOf({ change: change.number }), data: change.data };
    messages.push(message as StreamMessage);
    const isResult = change.topic === "deliveries";
    bytes += isResult ? MESSAGE_BYTES : JSON.stringify(change.data).length;
  }
  return { messages, bytes };
}

const TYPES = {
  deliveries: "delivery",
  subscriptions: "subscription",
  actions: "action",
  replays: "replay",
} as const;

function hasEvent({ action, applications }: View, event: NextEvent): boolean {
  if (action !== undefined && !hears(action, event.action)) return false;
  return applications === undefined || applications.includes(event.application);
}

function hasChange(view: View, change: NumberedChange): boolean {
  const { topic, data } = change;
  if (!view.topics.has(topic)) return false;
  const { action, application } = topic === "deliveries" ? data : data.record;
  if (view.action !== undefined && view.action !== action && !hears(view.action, action)) return false;
  if (view.applications !== undefined && !view.applications.includes(application)) return false;
  if (topic === "deliveries" && view.status !== undefined && view.status !== data.status) return false;
  return (
    topic === "actions" || view.subscription === undefined || view.subscription === subscriptionIn(change)
  );
}

function subscriptionIn(change: Exclude<NumberedChange, { topic: "actions" }>): number {
  if (change.topic === "deliveries") return change.data.subscription_id;
  return change.topic === "replays" ? change.data.record.subscription_id : change.data.record.rowid;
}

/** In place of a damaged payload. No other payload is `null`, as each is an object. */
const NO_PAYLOAD = RawJson.fromText("null");

function shownEvent({ payload, ...event }: NextEvent, withPayload: boolean): StreamedEvent {
  if (!withPayload || payload === undefined) return event;
  return { ...event, payload: payload === null ? NO_PAYLOAD : new RawJson(payload) };
}
