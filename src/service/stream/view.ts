import {
  checkTopics,
  cursorText,
  type DeliveryResult,
  STREAM_LIMITS,
  STREAM_QUERY,
  type StreamedEvent,
  type StreamMessage,
  type StreamPosition,
  type StreamQuery,
  type StreamTopic,
} from "../../domain/stream.ts";
import type { DeliveryStatus } from "../../domain/delivery.ts";
import { EvregError } from "../../domain/error.ts";
import { checkActionPattern, matches } from "../../domain/names.ts";
import { malformedField } from "../../domain/request.ts";
import type { StoredEvent } from "../../store/events.ts";
import type { Access } from "../auth.ts";
import { checkQuery, omitUndefined } from "../requests.ts";
import { payloadOf } from "../stored-events.ts";

/** A result of a delivery as it is kept. Results are numbered from 1 at each start. */
export interface NumberedResult {
  readonly data: DeliveryResult;
  readonly number: number;
  readonly atMs: number;
}

/** The last results of deliveries, in memory. */
export class ResultRing {
  /** The oldest first. */
  readonly #kept: NumberedResult[] = [];
  #last = 0;
  /** All results since then are kept. */
  #completeSinceMs: number;

  constructor(nowMs: number) {
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

  add(data: DeliveryResult, atMs: number): void {
    this.#last += 1;
    this.#kept.push({ data, number: this.#last, atMs });
    if (this.#kept.length > STREAM_LIMITS.results) this.incompleteBefore(this.#kept.shift()!.atMs + 1);
  }

  /** How many of those after this number are kept no more. */
  missedAfter(number: number): number {
    return Math.max(0, this.#dropped - number);
  }

  /** The results after `after` up to `through` that are kept. */
  between(after: number, through: number): readonly NumberedResult[] {
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

export function showsResults({ topics }: View): boolean {
  return topics.has("deliveries");
}

/** Names the position in the topics that the view shows. */
export function idAt(
  view: View,
  { data, instance }: StreamSource,
  { event, result }: Required<StreamPosition>,
): string {
  return cursorText({
    data,
    event: view.topics.has("events") ? event : undefined,
    instance,
    result: showsResults(view) ? result : undefined,
  });
}

/** About what a message takes without its payload; names of results are shared. */
const MESSAGE_BYTES = 320;

/**
 * What the view shows of what happened between two positions, and about how many bytes it takes.
 * @param events that the view shows
 * @param results all of them
 */
export function messagesOf(
  view: View,
  source: StreamSource,
  [from, to]: readonly [Required<StreamPosition>, Required<StreamPosition>],
  events: readonly StoredEvent[],
  results: readonly NumberedResult[],
): { readonly messages: readonly StreamMessage[]; readonly bytes: number } {
  const messages: StreamMessage[] = [];
  let bytes = 0;
  for (const event of events) {
    const id = idAt(view, source, { event: event.rowid, result: from.result });
    messages.push({ type: "event", id, data: shownEvent(event, view) });
    bytes += MESSAGE_BYTES + (event.payload?.length ?? 0);
  }
  for (const { data, number } of results) {
    if (!hasResult(view, data)) continue;
    const id = idAt(view, source, { event: to.event, result: number });
    messages.push({ type: "delivery", id, data });
    bytes += MESSAGE_BYTES;
  }
  return { messages, bytes };
}

function hasResult(
  view: View,
  { application, action, subscription_id: id, status }: DeliveryResult,
): boolean {
  return (
    showsResults(view) &&
    (view.action === undefined || matches(view.action, action)) &&
    (view.applications === undefined || view.applications.includes(application)) &&
    (view.subscription === undefined || view.subscription === id) &&
    (view.status === undefined || view.status === status)
  );
}

function shownEvent({ payload, payloadBytes: _bytes, ...event }: StoredEvent, view: View): StreamedEvent {
  if (!view.payloads) return event;
  return { ...event, payload: payloadOf(payload) };
}
