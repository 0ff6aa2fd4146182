import {
  parseSince,
  shortId,
  STREAM_LIMITS,
  type StreamGap,
  type StreamMessage,
  type StreamPosition,
  type StreamStart,
} from "../../domain/stream.ts";
import type { ChangeStream } from "../../evreg.ts";
import type { StreamCounts } from "../../metrics/counters.ts";
import { type Clock, toIso } from "../../runtime/clock.ts";
import { Shares } from "../../runtime/shares.ts";
import type { EventBounds, EventStore } from "../../store/events.ts";
import type { OtherNodes, Store } from "../../store/store.ts";
import { type Page, SharedPages } from "./pages.ts";
import { type FeedChange, ChangeRing } from "./ring.ts";
import { changeTopics, idAt, keyOf, showsChanges, type StreamSource, type View } from "./view.ts";

/** The pause between two wake-ups of all readers: the more there are, the fewer and larger are the writes. */
const PAUSE_MS = 10;
const PAUSE_OF_EACH_MS = 0.5;

/** The bounds for a stream without events. */
const NO_EVENTS: EventBounds = { last: 0, before: 0, removed: { event: 0, ms: 0 } };

interface FeedOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly counts: StreamCounts;
  /** New at each start. */
  readonly instance: string;
}

/** After the last stream of changes, this node goes on hearing those of others for so long. */
const HEARING_MS = 60_000;

/**
 * What happens, for all streams. Each reader asks for the page after its position once it has taken the one before, and waits
 * for a signal once it has everything. Events come from the store, and all else from a ring. Without streams only the ring
 * costs anything.
 */
export class Feed {
  readonly clock: Clock;
  readonly counts: StreamCounts;
  readonly source: StreamSource;
  readonly #events: EventStore;
  readonly #ring: ChangeRing;
  readonly pages: SharedPages;
  /** The readers, with who holds each. */
  readonly #open = new Map<Reader, unknown>();
  readonly #places = new Shares(STREAM_LIMITS.streams);
  /** Readers that have everything, by what wakes them. */
  readonly #waiting = new Map<Reader, () => void>();
  /** Rises with each wake-up and each new stream. What is read in one has all that happened before that began. */
  #epoch = 0;
  #lastWakeUpMs = -Infinity;
  #isPlanned = false;
  /** Where others have the data open, too. */
  readonly #others: OtherNodes | undefined;
  /** Resolves once this node hears the changes of others; `undefined` while nobody needs them. */
  #hearing: Promise<void> | undefined;

  constructor({ store, clock, counts, instance }: FeedOptions) {
    this.#others = store.node.others;
    this.#events = store.events;
    this.clock = clock;
    this.counts = counts;
    this.source = { data: shortId(store.dataId), instance: shortId(instance) };
    this.#ring = new ChangeRing(clock.now());
    this.pages = new SharedPages(store.events, this.#ring, this.source);
    counts.open = () => this.#open.size;
  }

  /** Signals that events may have been recorded. */
  recorded(): void {
    if (this.#open.size > 0) this.#planWakeUp();
  }

  changed(change: FeedChange): void {
    this.#others?.say(change);
    this.#ring.add(change, this.clock.now());
    this.recorded();
  }

  /** @param changes those of other nodes, as JSON */
  heard(changes: readonly string[]): void {
    for (const change of changes) this.#ring.add(JSON.parse(change) as FeedChange, this.clock.now());
  }

  /** Has the ring take the changes of others as well, while there are streams of changes. */
  async #hear(): Promise<void> {
    if (this.#others === undefined) return;
    this.#hearing ??= this.#beginHearing(this.#others);
    await this.#hearing;
  }

  async #beginHearing(others: OtherNodes): Promise<void> {
    try {
      await others.hear(true);
    } catch (error) {
      this.#hearing = undefined;
      throw error;
    }
    this.#ring.incompleteBefore(this.clock.now());
    this.clock.setTimer(() => this.#endHearing(others), HEARING_MS);
  }

  #endHearing(others: OtherNodes): void {
    if ([...this.#open.keys()].some((reader) => reader.showsChanges)) {
      this.clock.setTimer(() => this.#endHearing(others), HEARING_MS);
      return;
    }
    this.#hearing = undefined;
    // Hearing more than is needed does no harm.
    others.hear(false).catch(() => undefined);
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** ISO 8601 UTC: the changes since then are kept. */
  get changesCompleteSince(): string {
    return toIso(this.#ring.completeSinceMs);
  }

  /**
   * @param caller the same value for the same caller
   * @param signal closes the stream
   * @throws `malformed` for a place that cannot be, `rate_limited` or `unavailable` when too many are open, see `Shares`
   */
  async open(
    view: View,
    since: string | undefined,
    caller: unknown,
    signal?: AbortSignal,
  ): Promise<ChangeStream> {
    this.#places.take(caller, "streams are open");
    try {
      if (showsChanges(view)) await this.#hear();
      const reader = new Reader(this, view, await this.#startOf(view, since));
      this.#open.set(reader, caller);
      this.#epoch += 1;
      if (signal?.aborted === true) this.closed(reader);
      signal?.addEventListener("abort", () => this.closed(reader), { once: true });
      return reader;
    } catch (error) {
      this.#places.release(caller);
      throw error;
    }
  }

  async #startOf(view: View, since: string | undefined): Promise<ReaderStart> {
    const start = since === undefined ? undefined : parseSince(since, this.clock.now());
    const fromMs = start?.kind === "time" ? start.ms : undefined;
    // The ring is read before the events' end, so that nothing which follows from a later event is left out.
    const change = this.#ring.last;
    const bounds = view.topics.has("events") ? await this.#events.bounds(fromMs) : NO_EVENTS;
    const { position, gaps } = this.#placeOf(view, start, { event: bounds.last, change }, bounds.before);
    const { event, ms } = bounds.removed;
    // Removed events may be of the time that was asked for and before the position, which is that of the first that is
    // left.
    const shown = fromMs !== undefined && ms >= fromMs ? 0 : position.event;
    return { position, gaps: event > shown ? [...gaps, EXPIRED] : gaps, removed: event };
  }

  /**
   * @param last where everything ends
   * @param before the event after which those of a time come
   */
  #placeOf(
    view: View,
    start: StreamStart | undefined,
    last: Required<StreamPosition>,
    before: number,
  ): Pick<ReaderStart, "position" | "gaps"> {
    if (start === undefined) return { position: last, gaps: [] };
    const ring = this.#ring;
    const topics = changeTopics(view);
    const sinceStart = { topics, missed: null, complete_since: this.changesCompleteSince };
    if (start.kind === "time") {
      const isWhole = topics.length === 0 || ring.completeSinceMs <= start.ms;
      const gaps: StreamGap[] = isWhole ? [] : [{ reason: "overrun", ...sinceStart }];
      return { position: { event: before, change: ring.before(start.ms) }, gaps };
    }
    if (start.kind === "event") {
      return { position: { ...last, event: Math.min(start.rowid, last.event) }, gaps: [] };
    }
    const { cursor } = start;
    const isOtherData = cursor.data !== this.source.data;
    const gaps: StreamGap[] = [];
    if (isOtherData) {
      gaps.push({ reason: "other_data", topics: [...view.topics], missed: null, complete_since: null });
    }
    const position = { ...last, event: Math.min(cursor.event ?? last.event, last.event) };
    if (topics.length === 0 || cursor.change === undefined) return { position, gaps };
    if (cursor.instance === this.source.instance) {
      return { position: { ...position, change: Math.min(cursor.change, last.change) }, gaps };
    }
    if (!isOtherData) gaps.push({ reason: "restart", ...sinceStart });
    // All that is kept has happened since.
    return { position: { ...position, change: ring.missedAfter(0) }, gaps };
  }

  isOpen(reader: Reader): boolean {
    return this.#open.has(reader);
  }

  /** Resolves once that epoch is over, or the reader is closed. */
  async endOf(epoch: number, reader: Reader): Promise<void> {
    if (epoch < this.#epoch || !this.isOpen(reader)) return;
    await new Promise<void>((resolve) => this.#waiting.set(reader, resolve));
  }

  closed(reader: Reader): void {
    const caller = this.#open.get(reader);
    if (this.#open.delete(reader)) this.#places.release(caller);
    this.#waiting.get(reader)?.();
    this.#waiting.delete(reader);
    if (this.#open.size === 0) this.pages.clear();
  }

  #planWakeUp(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    const pauseMs = PAUSE_MS + PAUSE_OF_EACH_MS * this.#open.size;
    const waitMs = this.#lastWakeUpMs + pauseMs - this.clock.monotonicMs();
    const wakeUp = (): void => this.#wakeUp();
    if (waitMs > 0) this.clock.setTimer(wakeUp, waitMs);
    else setImmediate(wakeUp);
  }

  #wakeUp(): void {
    this.#isPlanned = false;
    this.#epoch += 1;
    this.#lastWakeUpMs = this.clock.monotonicMs();
    for (const wake of this.#waiting.values()) wake();
    this.#waiting.clear();
  }
}

/** Events after the reader's position were removed. */
const EXPIRED: StreamGap = {
  reason: "expired",
  topics: ["events"],
  missed: null,
  complete_since: null,
};

interface ReaderStart {
  readonly position: Required<StreamPosition>;
  readonly gaps: readonly StreamGap[];
  /** The largest rowid of an event that was removed by then. */
  readonly removed: number;
}

/** One stream. It asks for a page when the one before was taken, and waits for a signal when it has everything. */
class Reader implements ChangeStream {
  readonly #feed: Feed;
  readonly #view: View;
  readonly #key: string;
  readonly #gapsAtStart: readonly StreamGap[];
  /** The position of what was taken last. */
  #position: Required<StreamPosition>;
  /** The id of the last message that was read alone, while more of its batch are to come. */
  #idWithin: string | undefined;
  /** The reader knows that events up to this rowid may be missing. */
  #removed: number;
  #isReady = false;

  constructor(feed: Feed, view: View, { position, gaps, removed }: ReaderStart) {
    this.#feed = feed;
    this.#view = view;
    this.#key = keyOf(view);
    this.#position = position;
    this.#gapsAtStart = gaps;
    this.#removed = removed;
  }

  get showsChanges(): boolean {
    return showsChanges(this.#view);
  }

  get id(): string {
    return this.#idWithin ?? idAt(this.#view, this.#feed.source, this.#position);
  }

  close(): Promise<void> {
    this.#feed.closed(this);
    return Promise.resolve();
  }

  async *batches(): AsyncGenerator<readonly StreamMessage[], void, void> {
    const { counts } = this.#feed;
    try {
      for (const gap of this.#gapsAtStart) yield this.#gapMessage(gap);
      for (;;) {
        const { epoch } = this.#feed;
        const page = await this.#nextPage(epoch);
        if (page === undefined) return;
        for (const gap of this.#gapsBefore(page)) yield this.#gapMessage(gap);
        this.#position = page.to;
        if (page.messages.length > 0) {
          counts.messages += page.messages.length;
          yield page.messages;
        }
        if (page.isFull) continue;
        if (!this.#isReady) {
          this.#isReady = true;
          counts.messages += 1;
          yield [{ type: "ready", id: this.id, data: {} }];
        }
        await this.#feed.endOf(epoch, this);
      }
    } finally {
      await this.close();
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamMessage, void, void> {
    for await (const batch of this.batches()) {
      for (const message of batch) {
        this.#idWithin = message.id;
        yield message;
      }
      this.#idWithin = undefined;
    }
  }

  /** `undefined` once it is closed. */
  async #nextPage(epoch: number): Promise<Page | undefined> {
    if (!this.#feed.isOpen(this)) return undefined;
    const page = await this.#feed.pages.after({
      view: this.#view,
      key: this.#key,
      position: this.#position,
      epoch,
    });
    return this.#feed.isOpen(this) ? page : undefined;
  }

  #gapsBefore({ missed, removed }: Page): readonly StreamGap[] {
    const gaps: StreamGap[] = [];
    if (removed > Math.max(this.#position.event, this.#removed)) {
      this.#removed = removed;
      gaps.push(EXPIRED);
    }
    const topics = changeTopics(this.#view);
    if (missed > 0) {
      gaps.push({ reason: "overrun", topics, missed, complete_since: this.#feed.changesCompleteSince });
    }
    return gaps;
  }

  #gapMessage(gap: StreamGap): readonly StreamMessage[] {
    this.#feed.counts.gaps[gap.reason] += 1;
    this.#feed.counts.messages += 1;
    return [{ type: "gap", id: this.id, data: gap }];
  }
}
