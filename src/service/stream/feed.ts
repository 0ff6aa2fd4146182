import { EvregError } from "../../domain/error.ts";
import {
  parseSince,
  shortId,
  STREAM_LIMITS,
  type StreamGap,
  type StreamPosition,
} from "../../domain/stream.ts";
import type { StreamCounts } from "../../metrics/counters.ts";
import { type Clock, toIso } from "../../runtime/clock.ts";
import type { EventStore, NextPage } from "../../store/events.ts";
import { type Change, ChangeRing } from "./ring.ts";
import { changeTopics, PAGE, Reader, type ReaderHost, type ReaderStart } from "./reader.ts";
import { type Batch, batchOf, showsChanges, type Source, type Span, type View } from "./view.ts";

/** The pause between two reads for all live streams: the more there are, the fewer and larger are the writes. */
const PAUSE_MS = 10;
const PAUSE_OF_EACH_MS = 0.5;

interface FeedOptions {
  readonly events: Pick<EventStore, "next" | "bounds">;
  readonly clock: Clock;
  readonly counts: StreamCounts;
  /** See `Store.dataId`. */
  readonly dataId: string;
  /** New at each start. */
  readonly instance: string;
}

/**
 * What happens, for all streams. Events are read from the store, once for all live streams and never taken from those who
 * publish; all else is kept in a ring. Without streams only the ring costs anything.
 */
export class Feed implements ReaderHost {
  readonly events: FeedOptions["events"];
  readonly ring: ChangeRing;
  readonly source: Source;
  readonly counts: StreamCounts;
  readonly #clock: Clock;
  readonly #open = new Set<Reader>();
  readonly #live = new Set<Reader>();
  /** Up to which the live ones have everything. */
  #position: Required<StreamPosition> = { event: 0, change: 0 };
  /** What is read for streams that are no longer there is not for those that came since. */
  #generation = 0;
  #isReading = false;
  #isPlanned = false;
  #hasMore = false;
  #lastReadMs = -Infinity;

  constructor({ events, clock, counts, dataId, instance }: FeedOptions) {
    this.events = events;
    this.#clock = clock;
    this.counts = counts;
    this.source = { data: shortId(dataId), instance: shortId(instance) };
    this.ring = new ChangeRing(clock.now());
    counts.open = () => this.#open.size;
  }

  /** Signals that events may have been recorded. */
  recorded(): void {
    if (this.#live.size > 0) this.#plan();
  }

  changed(change: Change): void {
    this.ring.add(change, this.#clock.now());
    if (this.#live.size > 0) this.#plan();
  }

  /** @throws `malformed` for a place that cannot be, `unavailable` when too many are open */
  async open(view: View, since: string | undefined): Promise<Reader> {
    this.#checkRoom();
    const start = await this.#startOf(view, since);
    this.#checkRoom();
    const reader = new Reader(this, view, start);
    this.#open.add(reader);
    return reader;
  }

  #checkRoom(): void {
    const { streams } = STREAM_LIMITS;
    if (this.#open.size < streams) return;
    const message = `There are ${streams} streams open already, and no more at once. Try again in a moment, or close one.`;
    throw new EvregError("unavailable", message, { limit: streams });
  }

  async #startOf(view: View, since: string | undefined): Promise<ReaderStart> {
    const { ring } = this;
    const start = since === undefined ? undefined : parseSince(since, this.#clock.now());
    const fromMs = start?.kind === "time" ? start.ms : undefined;
    // Before the events' end is read: so nothing that follows from a later event is left out.
    const change = ring.last;
    const { first, last, before } = view.topics.has("events")
      ? await this.events.bounds(fromMs)
      : { first: undefined, last: 0, before: 0 };
    if (start === undefined) return { position: { event: last, change }, gaps: [] };
    if (start.kind === "event") return { position: { event: Math.min(start.rowid, last), change }, gaps: [] };
    const topics = changeTopics(view);
    const sinceStart = { topics, missed: null, complete_since: toIso(ring.completeSinceMs) };
    if (start.kind === "time") {
      const isWhole = topics.length === 0 || ring.completeSinceMs <= start.ms;
      const gaps: StreamGap[] = isWhole ? [] : [{ reason: "overrun", ...sinceStart }];
      return { position: { event: before, change: ring.before(start.ms) }, gaps };
    }
    const { cursor } = start;
    const gaps: StreamGap[] = [];
    const { event = last } = cursor;
    if (cursor.data !== this.source.data) {
      gaps.push({ reason: "other_data", topics: [...view.topics], missed: null, complete_since: null });
    } else if (view.topics.has("events") && event > 0 && event < (first ?? last)) {
      gaps.push({ reason: "expired", topics: ["events"], missed: null, complete_since: null });
    }
    const position = { event: Math.min(event, last), change };
    if (topics.length === 0 || cursor.change === undefined) return { position, gaps };
    if (cursor.instance === this.source.instance) {
      return { position: { ...position, change: Math.min(cursor.change, change) }, gaps };
    }
    if (cursor.data === this.source.data) gaps.push({ reason: "restart", ...sinceStart });
    // All that is kept has happened since.
    return { position: { ...position, change: ring.missedAfter(0) }, gaps };
  }

  join(reader: Reader): boolean {
    const { position, view } = reader;
    if (this.#live.size === 0) {
      this.#generation += 1;
      this.#position = position;
    }
    const { event, change } = this.#position;
    if (showsChanges(view) && position.change < change) return false;
    if (view.topics.has("events")) {
      if (this.#liveWithEvents().length === 0) {
        // Nothing was read for those that are live.
        this.#generation += 1;
        this.#position = { event: position.event, change };
      } else if (position.event < event) return false;
    }
    this.#live.add(reader);
    // Something may have been recorded since it read, and nobody was told.
    this.#plan();
    return true;
  }

  leave(reader: Reader): void {
    this.#live.delete(reader);
  }

  #liveWithEvents(): readonly Reader[] {
    return [...this.#live].filter(({ view }) => view.topics.has("events"));
  }

  closed(reader: Reader): void {
    this.#open.delete(reader);
  }

  #plan(): void {
    if (this.#isReading || this.#isPlanned) {
      this.#hasMore = true;
      return;
    }
    this.#isPlanned = true;
    const pauseMs = PAUSE_MS + PAUSE_OF_EACH_MS * this.#live.size;
    const waitMs = this.#lastReadMs + pauseMs - this.#clock.now();
    // Clocks can be set back.
    if (waitMs > 0 && waitMs <= pauseMs) this.#clock.setTimer(() => void this.#read(), waitMs);
    else setImmediate(() => void this.#read());
  }

  async #read(): Promise<void> {
    this.#isPlanned = false;
    this.#isReading = true;
    this.#hasMore = false;
    const generation = this.#generation;
    try {
      let isFull = this.#live.size > 0;
      while (isFull) isFull = await this.#readPage(generation);
    } catch {
      // Each reads by itself then, and reports what is wrong with the store.
      this.#leaveAll();
    }
    this.#isReading = false;
    this.#lastReadMs = this.#clock.now();
    if (this.#live.size > 0 && (this.#hasMore || generation !== this.#generation)) this.#plan();
  }

  /** @returns whether there is more to be read at once */
  async #readPage(generation: number): Promise<boolean> {
    const from = this.#position;
    // As in a reader: first the ring, then the events, so that results come after their events.
    const through = this.ring.last;
    let page: NextPage = { events: [], through: from.event, isFull: false };
    const ofEvents = this.#liveWithEvents();
    if (ofEvents.length > 0) {
      const payloads = ofEvents.some(({ view }) => view.payloads);
      page = await this.events.next({ after: from.event, ...PAGE, payloads });
      if (generation !== this.#generation || this.#live.size === 0) return false;
    }
    const change = page.isFull ? from.change : through;
    const to = { event: page.through, change };
    this.#hand({ events: page.events, changes: this.ring.between(from.change, change), to }, from);
    this.#position = to;
    return page.isFull && this.#live.size > 0;
  }

  #hand(span: Span, from: Required<StreamPosition>): void {
    const shared = new Map<string, Batch>();
    for (const reader of this.#live) {
      const { view, key, position } = reader;
      let batch = reader.isAt(from) ? shared.get(key) : undefined;
      if (batch === undefined) {
        batch = batchOf(view, this.source, position, span);
        if (reader.isAt(from)) shared.set(key, batch);
      }
      const { event, change } = span.to;
      reader.push(batch, {
        event: Math.max(position.event, event),
        change: Math.max(position.change, change),
      });
    }
  }

  #leaveAll(): void {
    for (const reader of this.#live) reader.detach();
    this.#live.clear();
  }
}
