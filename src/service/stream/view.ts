import type { Action } from "../../domain/action.ts";
import type { Replay } from "../../domain/replay.ts";
import {
  checkTopics,
  cursorText,
  type DeliveryResult,
  type RecordChange,
  STREAM_LIMITS,
  STREAM_QUERY,
  type StreamedEvent,
  type StreamMessage,
  type StreamPosition,
  type StreamQuery,
  type StreamTopic,
} from "../../domain/stream.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { DeliveryStatus } from "../../domain/delivery.ts";
import { EvregError } from "../../domain/error.ts";
import { checkActionPattern, matches } from "../../domain/names.ts";
import { malformedField } from "../../domain/request.ts";
import type { StoredEvent } from "../../store/events.ts";
import type { Access } from "../auth.ts";
import { checkQuery, omitUndefined } from "../requests.ts";
import { payloadOf } from "../stored-events.ts";

/** Something that happened, apart from events. */
export type FeedChange =
  | { readonly topic: "deliveries"; readonly data: DeliveryResult }
  | { readonly topic: "subscriptions"; readonly data: RecordChange<Subscription> }
  | { readonly topic: "actions"; readonly data: RecordChange<Action> }
  | { readonly topic: "replays"; readonly data: RecordChange<Replay> };

export type NumberedChange = FeedChange & {
  /** Changes are numbered from 1 at each start. */
  readonly number: number;
  readonly atMs: number;
  /** What it takes in memory, about. */
  readonly bytes: number;
};

/** What a delivery's result takes, about; its names are shared. */
const RESULT_BYTES = 320;

/** The last changes, in memory. */
export class ChangeRing {
  readonly #limits: { readonly changes: number; readonly changeBytes: number };
  /** The changes, the oldest first. */
  readonly #kept: NumberedChange[] = [];
  #last = 0;
  #bytes = 0;
  /** All changes since then are kept. */
  #completeSinceMs: number;

  constructor(nowMs: number, limits: { changes: number; changeBytes: number } = STREAM_LIMITS) {
    this.#limits = limits;
    this.#completeSinceMs = nowMs;
  }

  /** The number of the newest; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  /** The number of the last one that is kept no more. */
  get #dropped(): number {
    return this.#last - this.#kept.length;
  }

  get completeSinceMs(): number {
    return this.#completeSinceMs;
  }

  /** Says that the ring lacks some of what happened before this time. */
  incompleteBefore(ms: number): void {
    this.#completeSinceMs = Math.max(this.#completeSinceMs, ms);
  }

  add(change: FeedChange, atMs: number): void {
    const bytes = change.topic === "deliveries" ? RESULT_BYTES : 2 * JSON.stringify(change.data).length;
    const { changes, changeBytes } = this.#limits;
    this.#last += 1;
    this.#bytes += bytes;
    this.#kept.push({ ...change, number: this.#last, atMs, bytes });
    while (this.#kept.length > changes || (this.#bytes > changeBytes && this.#kept.length > 1)) {
      const dropped = this.#kept.shift()!;
      this.#bytes -= dropped.bytes;
      this.incompleteBefore(dropped.atMs + 1);
    }
  }

  /** How many of those after this number are kept no more. */
  missedAfter(number: number): number {
    return Math.max(0, this.#dropped - number);
  }

  /** The changes after `after` up to `through` that are kept. */
  between(after: number, through: number): readonly NumberedChange[] {
    const first = Math.max(0, after - this.#dropped);
    return this.#kept.slice(first, Math.max(first, through - this.#dropped));
  }

  /** The number after which everything of this time and later comes. */
  before(ms: number): number {
    const first = this.#kept.find(({ atMs }) => atMs >= ms);
    return first === undefined ? this.#last : first.number - 1;
  }
}

/** What one stream shows. Streams with the same view share all that is made for them. */
export interface View {
  readonly topics: ReadonlySet<StreamTopic>;
  readonly action?: string;
  /** `undefined` for all. */
  readonly applications?: readonly string[];
  readonly subscription?: number;
  readonly status?: DeliveryStatus;
  readonly payloads: boolean;
  /** One text for all views that show the same. */
  readonly key: string;
}

/** What a query asks for, of what the principal may read. */
export function viewOf(access: Access, query: StreamQuery): View {
  const applications = access.readable(query.application);
  const { topics: named = ["events"], ...filters } = query;
  const checked = checkQuery(STREAM_QUERY, { ...filters, topics: [...named].join(",") });
  const { action, subscription, status, payloads = false } = filters;
  if (action !== undefined) checkPattern(action);
  const topics = checkTopics(checked.topics.split(","));
  const shown = { action, applications, subscription, status, payloads };
  const key = JSON.stringify([topics.toSorted(), { ...shown, applications: applications?.toSorted() }]);
  return omitUndefined<View>({ ...shown, topics: new Set(topics), key });
}

/** A list of what cannot exist is empty; a stream of it would be silent for ever. */
function checkPattern(action: string): void {
  try {
    checkActionPattern("action", action);
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    throw malformedField("action", String(error.details["message"]), action);
  }
}

/** Names the data and the start of the server that a stream is of, for the ids of its messages. */
export interface StreamSource {
  readonly data: string;
  readonly instance: string;
}

export function changeTopics({ topics }: View): readonly StreamTopic[] {
  return [...topics].filter((topic) => topic !== "events");
}

export function showsChanges(view: View): boolean {
  return changeTopics(view).length > 0;
}

/** Names the position in the topics that the view shows. */
export function idAt(
  view: View,
  { data, instance }: StreamSource,
  { event, change }: Required<StreamPosition>,
): string {
  return cursorText({
    data,
    event: view.topics.has("events") ? event : undefined,
    instance,
    change: showsChanges(view) ? change : undefined,
  });
}

/** About what a message takes without its payload. */
const MESSAGE_BYTES = 250;

/**
 * What the view shows of what happened between two positions, and about how many bytes it takes.
 * @param events that the view shows
 * @param changes all of them
 */
export function messagesOf(
  view: View,
  source: StreamSource,
  [from, to]: readonly [Required<StreamPosition>, Required<StreamPosition>],
  events: readonly StoredEvent[],
  changes: readonly NumberedChange[],
): { readonly messages: readonly StreamMessage[]; readonly bytes: number } {
  const messages: StreamMessage[] = [];
  let bytes = 0;
  for (const event of events) {
    const id = idAt(view, source, { event: event.rowid, change: from.change });
    messages.push({ type: "event", id, data: shownEvent(event, view) });
    bytes += MESSAGE_BYTES + (event.payload?.length ?? 0);
  }
  for (const change of changes) {
    if (!hasChange(view, change)) continue;
    const id = idAt(view, source, { event: to.event, change: change.number });
    messages.push({ type: TYPES[change.topic], id, data: change.data } as StreamMessage);
    bytes += change.bytes;
  }
  return { messages, bytes };
}

const TYPES = {
  deliveries: "delivery",
  subscriptions: "subscription",
  actions: "action",
  replays: "replay",
} as const;

function hasChange(view: View, change: NumberedChange): boolean {
  const { topic, data } = change;
  if (!view.topics.has(topic)) return false;
  const { action, application } = topic === "deliveries" ? data : data.record;
  if (view.action !== undefined && view.action !== action && !matches(view.action, action)) return false;
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

function shownEvent({ payload, payloadBytes: _bytes, ...event }: StoredEvent, view: View): StreamedEvent {
  if (!view.payloads) return event;
  return { ...event, payload: payloadOf(payload) };
}
