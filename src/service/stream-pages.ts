import { LRUCache } from "lru-cache";
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
} from "../domain/stream.ts";
import type { DeliveryStatus } from "../domain/delivery.ts";
import { EvregError } from "../domain/error.ts";
import { checkActionPattern, matches } from "../domain/names.ts";
import { malformedField } from "../domain/request.ts";
import type { EventPage, EventSelection, EventStore, StoredEvent } from "../store/events.ts";
import type { Access } from "./auth.ts";
import { checkQuery, omitUndefined } from "./requests.ts";
import { payloadOf } from "./stored-events.ts";
import { resize } from "../runtime/cache.ts";
import { Yielder } from "../runtime/yielding.ts";

/** A result of a delivery as it is kept. Results are numbered from 1 at each start. */
interface NumberedResult {
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
function messagesOf(
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

function shownEvent({ payload, ...event }: StoredEvent, view: View): StreamedEvent {
  if (!view.payloads) return event;
  return { ...event, payload: payloadOf(payload) };
}

/** What one page may have: it is made and encoded in one go, while all else waits. A single event may have more. */
const PAGE = { limit: 200, maxBytes: 64 * 1024 } as const;
/** What the pages that are kept may take, with what they are encoded as. */
const KEPT_BYTES = 1024 * 1024;
/** What a page takes at least: a reader that waits for what it shows gets an empty one whenever something else happens. */
const PAGE_BYTES = 1024;

/** What one view shows after a position. Its messages are one list for all readers, so that they are encoded once. */
export interface Page {
  readonly messages: readonly StreamMessage[];
  readonly to: Required<StreamPosition>;
  /** Whether there may be more, even if nothing has happened since. */
  readonly isFull: boolean;
  /** Results after the position that are kept no more. */
  readonly missed: number;
  /** The largest rowid of an event that was removed by then. */
  readonly removed: number;
}

/** What the store and the ring had when it was read. */
interface PageRead extends Pick<EventPage, "events">, Pick<Page, "removed"> {
  /** All events up to this rowid were looked at. */
  readonly through: number;
  readonly isFull: boolean;
  /** The number of the last result. */
  readonly result: number;
}

interface KeptPage {
  /** The one in which its read began. */
  readonly epoch: number;
  readonly read: Promise<PageRead>;
  /** `undefined` until it is the turn of the first reader that wants it. */
  page?: Page;
}

/** Who asks for a page, and where it is. */
interface PageReader {
  readonly view: View;
  readonly position: Required<StreamPosition>;
}

/** How long readers make and encode their messages before they rest. */
const SLICE_MS = 1;

/**
 * The turns of all readers of streams. After each slice comes a rest of its length at least, also where one step was longer than
 * a slice: so half of the thread's time is never theirs, however many they are.
 */
export const streamTurns = new Yielder(
  () => performance.now(),
  (callback) => {
    const startedMs = performance.now();
    // What a slice does comes before the next immediate.
    setImmediate(() => setTimeout(callback, Math.max(SLICE_MS, performance.now() - startedMs)));
  },
  SLICE_MS,
);

/**
 * The pages of all streams. Readers that show the same and are at the same place share a page. The store has one read at a
 * time, and readers get their pages in turn, in short slices of time. So however many catch up, everybody else waits for a
 * page or two.
 */
export class SharedPages {
  readonly #events: Pick<EventStore, "list">;
  readonly #ring: ResultRing;
  readonly #source: StreamSource;
  readonly #kept = new LRUCache<string, KeptPage>({ maxSize: KEPT_BYTES });
  #lastRead: Promise<unknown> = Promise.resolve();

  constructor(events: Pick<EventStore, "list">, ring: ResultRing, source: StreamSource) {
    this.#events = events;
    this.#ring = ring;
    this.#source = source;
  }

  /**
   * The page after a position. Resolves when it is the reader's turn.
   * @param epoch see `Feed`: what was read in an earlier one has no end that still holds
   */
  async after({ view, position }: PageReader, epoch: number): Promise<Page> {
    const name = `${position.event} ${position.result} ${view.key}`;
    let kept = this.#kept.get(name);
    // What comes after a position never changes where there is a whole page of it.
    if (kept === undefined || (kept.epoch < epoch && kept.page?.isFull !== true)) {
      kept = { epoch, read: this.#read(view, position.event) };
      this.#kept.set(name, kept, { size: PAGE_BYTES });
    }
    const read = await kept.read;
    await streamTurns.yield();
    if (kept.page === undefined) {
      const { page, bytes } = this.#pageOf(view, position, read);
      kept.page = page;
      resize(this.#kept, name, kept, PAGE_BYTES + 2 * bytes);
    }
    return kept.page;
  }

  /** Forgets all pages once nobody reads. */
  clear(): void {
    this.#kept.clear();
  }

  #read({ topics, action, applications, payloads }: View, after: number): Promise<PageRead> {
    if (!topics.has("events")) {
      const none = { events: [], through: after, isFull: false, removed: 0 };
      return Promise.resolve({ ...none, result: this.#ring.last });
    }
    const walk = { order: "asc", page: 1, total: false, ...PAGE } as const;
    const query = omitUndefined<EventSelection>({ ...walk, after, action, applications, payloads });
    const reading = this.#lastRead.then(async () => {
      // The ring is read before the events, so that a delivery's result never comes before its event.
      const result = this.#ring.last;
      const { events, ids, isCut, newest, removed } = await this.#events.list(query);
      const isFull = isCut || ids.length === PAGE.limit;
      const through = isFull ? ids.at(-1)! : Math.max(after, newest);
      return { events, through, isFull, removed: removed.event, result };
    });
    this.#lastRead = reading.catch(() => undefined);
    return reading;
  }

  #pageOf(view: View, from: Required<StreamPosition>, read: PageRead): { page: Page; bytes: number } {
    const { events, removed } = read;
    const event = Math.max(from.event, read.through);
    let { result } = from;
    let { isFull } = read;
    let missed = 0;
    if (!isFull && showsResults(view)) {
      missed = this.#ring.missedAfter(result);
      result = Math.max(result, Math.min(read.result, result + missed + PAGE.limit));
      isFull = result < read.result;
    }
    const to = { event, result };
    const results = this.#ring.between(from.result, result);
    const { messages, bytes } = messagesOf(view, this.#source, [from, to], events, results);
    return { page: { messages, to, isFull, missed, removed }, bytes };
  }
}
