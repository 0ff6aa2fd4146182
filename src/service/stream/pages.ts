import { LRUCache } from "lru-cache";
import type { StreamMessage, StreamPosition } from "../../domain/stream.ts";
import type { EventStore, NextEvents, NextPage } from "../../store/events.ts";
import { Yielder } from "../../runtime/yielding.ts";
import { omitUndefined } from "../requests.ts";
import { type ResultRing, messagesOf, showsResults, type StreamSource, type View } from "./view.ts";

/** What one page may have: it is made and encoded in one go, while all else waits. A single event may have more. */
const PAGE = { limit: 200, maxBytes: 64 * 1024 } as const;
/** What the pages that are kept may take, with what they are encoded as. */
const KEPT_BYTES = 1024 * 1024;

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
interface PageRead extends NextPage {
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
  readonly #events: Pick<EventStore, "next">;
  readonly #ring: ResultRing;
  readonly #source: StreamSource;
  readonly #kept = new LRUCache<string, KeptPage>({ maxSize: KEPT_BYTES });
  #lastRead: Promise<unknown> = Promise.resolve();

  constructor(events: Pick<EventStore, "next">, ring: ResultRing, source: StreamSource) {
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
      this.#kept.set(name, kept, { size: 1 });
    }
    const read = await kept.read;
    await streamTurns.yield();
    if (kept.page === undefined) {
      const { page, bytes } = this.#pageOf(view, position, read);
      kept.page = page;
      if (this.#kept.peek(name) === kept) {
        // The cache goes by the size that an entry had when it was added, so the entry is added again.
        this.#kept.delete(name);
        this.#kept.set(name, kept, { size: 1 + 2 * bytes });
      }
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
    const query = omitUndefined<NextEvents>({ after, ...PAGE, action, applications, payloads });
    const reading = this.#lastRead.then(async () => {
      // The ring is read before the events, so that a delivery's result never comes before its event.
      const result = this.#ring.last;
      return { ...(await this.#events.next(query)), result };
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
