import {
  type DeliveryResult,
  parseSince,
  shortId,
  STREAM_LIMITS,
  type StreamGap,
  type StreamMessage,
  streamOfBatches,
  type StreamPosition,
  type StreamStart,
} from "../domain/stream.ts";
import type { ChangeStream } from "../evreg.ts";
import { parseText } from "../json/parse.ts";
import { type Clock, toIso } from "../runtime/clock.ts";
import { Shares } from "../runtime/shares.ts";
import type { EventPage, EventStore } from "../store/events.ts";
import type { OtherNodes, Store } from "../store/store.ts";
import {
  idAt,
  type Page,
  ResultRing,
  SharedPages,
  showsResults,
  type StreamSource,
  type View,
} from "./stream-pages.ts";

/** The pause between two wake-ups of all readers: the more there are, the fewer and larger are the writes. */
const PAUSE_MS = 10;
const PAUSE_OF_EACH_MS = 0.5;

/** After the last stream of deliveries, this node goes on receiving the results of others for so long. */
const RECEIVING_MS = 60_000;

/** Selects the first event that there is. */
const FIRST = { order: "asc", page: 1, limit: 1, after: 0, total: false, payloads: false } as const;
/** What a stream without events has of them. */
const NO_EVENTS: Pick<EventPage, "ids" | "newest" | "removed"> = {
  ids: [],
  newest: 0,
  removed: { event: 0, ms: 0 },
};

/** Events after the reader's position were removed. */
const EXPIRED: StreamGap = {
  reason: "expired",
  topics: ["events"],
  missed: null,
  complete_since: null,
};

interface FeedOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** New at each start. */
  readonly instance: string;
}

/** Where a stream begins. */
interface ReaderStart {
  readonly position: Required<StreamPosition>;
  readonly gaps: readonly StreamGap[];
  /** The largest rowid of an event that was removed by then. */
  readonly removed: number;
}

/** One stream. */
interface Reader {
  readonly view: View;
  readonly gapsAtStart: readonly StreamGap[];
  /** The position of what was taken last. */
  position: Required<StreamPosition>;
  /** The reader knows that events up to this rowid may be missing. */
  removed: number;
  /** Ends its wait for a signal. */
  wake: () => void;
  isOpen: boolean;
}

/**
 * What happens, for all streams. Each reader asks for the page after its position once it has taken the one before, and waits
 * for a signal once it has everything. Events come from the store, and results of deliveries from a ring. Without streams only the
 * ring costs anything.
 */
export class Feed {
  readonly #clock: Clock;
  readonly #source: StreamSource;
  readonly #events: EventStore;
  readonly #ring: ResultRing;
  readonly #pages: SharedPages;
  readonly #open = new Set<Reader>();
  readonly #places = new Shares(STREAM_LIMITS.streams);
  /** Rises with each wake-up and each new stream. What is read in one has all that happened before that began. */
  #epoch = 0;
  #lastWakeUpMs = -Infinity;
  #isPlanned = false;
  /** Where others have the data open, too. */
  readonly #others: OtherNodes | undefined;
  /** Resolves once this node receives the results of others; `undefined` while nobody needs them. */
  #receiving: Promise<void> | undefined;

  constructor({ store, clock, instance }: FeedOptions) {
    this.#others = store.node.others;
    this.#events = store.events;
    this.#clock = clock;
    this.#source = { data: shortId(store.dataId), instance: shortId(instance) };
    // Before the data were made, nothing had happened.
    this.#ring = new ResultRing(store.isNew ? 0 : clock.now());
    this.#pages = new SharedPages(store.events, this.#ring, this.#source);
  }

  /** How many streams are open. */
  get streamsOpen(): number {
    return this.#open.size;
  }

  /** Signals that events may have been recorded. */
  recorded(): void {
    if (this.#open.size > 0) this.#planWakeUp();
  }

  /** An attempt has ended, or a delivery without one, and that is stored. */
  readonly ended = (result: DeliveryResult): void => {
    this.#others?.broadcast(result);
    this.#ring.add(result, this.#clock.now());
    this.recorded();
  };

  /** @param results those of other nodes, as JSON */
  received(results: readonly string[]): void {
    for (const result of results) this.#ring.add(parseText(result) as DeliveryResult, this.#clock.now());
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
    let reader: Reader;
    try {
      if (showsResults(view)) await this.#receiveOthers();
      const { position, gaps: gapsAtStart, removed } = await this.#startOf(view, since);
      const state = { position, removed, wake: () => {}, isOpen: true };
      reader = { view, gapsAtStart, ...state };
    } catch (error) {
      this.#places.release(caller);
      throw error;
    }
    const close = (): Promise<void> => {
      this.#close(reader, caller);
      return Promise.resolve();
    };
    this.#open.add(reader);
    this.#epoch += 1;
    if (signal?.aborted === true) void close();
    signal?.addEventListener("abort", () => void close(), { once: true });
    return streamOfBatches(
      () => this.#idOf(reader),
      () => this.#read(reader, close),
      close,
    );
  }

  #close(reader: Reader, caller: unknown): void {
    reader.isOpen = false;
    if (this.#open.delete(reader)) this.#places.release(caller);
    reader.wake();
    if (this.#open.size === 0) this.#pages.clear();
  }

  #idOf({ view, position }: Reader): string {
    return idAt(view, this.#source, position);
  }

  async *#read(
    reader: Reader,
    close: () => Promise<void>,
  ): AsyncGenerator<readonly StreamMessage[], void, void> {
    let isReady = false;
    try {
      for (const gap of reader.gapsAtStart) yield this.#gapMessage(reader, gap);
      for (;;) {
        const epoch = this.#epoch;
        const page = reader.isOpen ? await this.#pages.after(reader, epoch) : undefined;
        if (page === undefined || !reader.isOpen) return;
        for (const gap of this.#gapsBefore(page, reader)) yield this.#gapMessage(reader, gap);
        reader.position = page.to;
        if (page.messages.length > 0) yield page.messages;
        if (page.isFull) continue;
        if (!isReady) {
          isReady = true;
          yield [{ type: "ready", id: this.#idOf(reader), data: {} }];
        }
        if (epoch === this.#epoch && reader.isOpen) {
          await new Promise<void>((resolve) => (reader.wake = resolve));
        }
      }
    } finally {
      await close();
    }
  }

  #gapsBefore({ missed, removed }: Page, reader: Reader): readonly StreamGap[] {
    const gaps: StreamGap[] = [];
    if (removed > Math.max(reader.position.event, reader.removed)) {
      reader.removed = removed;
      gaps.push(EXPIRED);
    }
    if (missed > 0) gaps.push(this.#resultsMissed("overrun", missed));
    return gaps;
  }

  /** Results are not kept. */
  #resultsMissed(reason: "overrun" | "restart", missed: number | null): StreamGap {
    return { reason, topics: ["deliveries"], missed, complete_since: toIso(this.#ring.completeSinceMs) };
  }

  #gapMessage(reader: Reader, gap: StreamGap): readonly StreamMessage[] {
    return [{ type: "gap", id: this.#idOf(reader), data: gap }];
  }

  async #startOf(view: View, since: string | undefined): Promise<ReaderStart> {
    const start = since === undefined ? undefined : parseSince(since, this.#clock.now());
    const fromMs = start?.kind === "time" ? start.ms : undefined;
    // The ring is read before the events' end, so that nothing which follows from a later event is left out.
    const result = this.#ring.last;
    const selection = { ...FIRST, ...(fromMs === undefined ? {} : { fromMs }) };
    const events = view.topics.has("events") ? await this.#events.first(selection) : NO_EVENTS;
    const { ids, newest, removed } = events;
    const before = (ids[0] ?? newest + 1) - 1;
    const { position, gaps } = this.#placeOf(view, start, { event: newest, result }, before);
    const { event, ms } = removed;
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
    if (start.kind === "time") {
      const isWhole = !showsResults(view) || ring.completeSinceMs <= start.ms;
      const gaps = isWhole ? [] : [this.#resultsMissed("overrun", null)];
      return { position: { event: before, result: ring.before(start.ms) }, gaps };
    }
    if (start.kind === "event") {
      return { position: { ...last, event: Math.min(start.rowid, last.event) }, gaps: [] };
    }
    const { cursor } = start;
    const isOtherData = cursor.data !== this.#source.data;
    const gaps: StreamGap[] = [];
    if (isOtherData) {
      gaps.push({ reason: "other_data", topics: [...view.topics], missed: null, complete_since: null });
    }
    const position = { ...last, event: Math.min(cursor.event ?? last.event, last.event) };
    if (!showsResults(view) || cursor.result === undefined) return { position, gaps };
    if (cursor.instance === this.#source.instance) {
      return { position: { ...position, result: Math.min(cursor.result, last.result) }, gaps };
    }
    if (!isOtherData) gaps.push(this.#resultsMissed("restart", null));
    // All that is kept has happened since.
    return { position: { ...position, result: ring.missedAfter(0) }, gaps };
  }

  /** Has the ring take the results of others as well, while there are streams of deliveries. */
  async #receiveOthers(): Promise<void> {
    if (this.#others === undefined) return;
    this.#receiving ??= this.#beginReceiving(this.#others);
    await this.#receiving;
  }

  async #beginReceiving(others: OtherNodes): Promise<void> {
    try {
      await others.receive(true);
    } catch (error) {
      this.#receiving = undefined;
      throw error;
    }
    this.#ring.incompleteBefore(this.#clock.now());
    this.#endReceivingLater(others);
  }

  #endReceivingLater(others: OtherNodes): void {
    this.#clock.setTimer(() => {
      if ([...this.#open].some(({ view }) => showsResults(view))) return this.#endReceivingLater(others);
      this.#receiving = undefined;
      // To receive more than is needed does no harm.
      others.receive(false).catch(() => undefined);
    }, RECEIVING_MS);
  }

  #planWakeUp(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    const pauseMs = PAUSE_MS + PAUSE_OF_EACH_MS * this.#open.size;
    const waitMs = this.#lastWakeUpMs + pauseMs - this.#clock.monotonicMs();
    const wakeUp = (): void => this.#wakeUp();
    if (waitMs > 0) this.#clock.setTimer(wakeUp, waitMs);
    else setImmediate(wakeUp);
  }

  #wakeUp(): void {
    this.#isPlanned = false;
    this.#epoch += 1;
    this.#lastWakeUpMs = this.#clock.monotonicMs();
    for (const reader of this.#open) reader.wake();
  }
}
