import { setTimeout as pause } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { StreamMessage, StreamPosition } from "../../domain/stream.ts";
import type { EventStore, NextEvents, NextPage } from "../../store/events.ts";
import { omitUndefined } from "../requests.ts";
import type { ChangeRing } from "./ring.ts";
import { streamTurns } from "./turns.ts";
import { MESSAGE_BYTES, messagesOf, showsChanges, type Source, type View } from "./view.ts";

/** What one page may have: it is made and encoded in one go, while all else waits. A single event may have more. */
const PAGE = { limit: 200, maxBytes: 64 * 1024 } as const;
/** Between two reads of the store. */
const MAX_REST_MS = 50;
/** What was read last, and the pages that were made of it, each about so large. */
const KEPT_BYTES = 512 * 1024;

/** What one view shows after a position. Its messages are one list for all readers, so that they are encoded once. */
export interface Page {
  readonly messages: readonly StreamMessage[];
  readonly to: Required<StreamPosition>;
  /** Whether there may be more, even if nothing has happened since. */
  readonly isFull: boolean;
  /** That of the feed when the read began: everything that had been signalled is in it, or before it. */
  readonly version: number;
  /** Changes after the position that are kept no more. */
  readonly missed: number;
  /** The largest rowid of an event that was removed by then. */
  readonly removed: number;
}

/** What the store and the ring had when it was read. */
interface Read extends NextPage {
  /** In the names of the pages that are made of it. */
  readonly name: string;
  readonly version: number;
  /** The number of the last change. */
  readonly change: number;
}

interface SharedPagesOptions {
  readonly events: Pick<EventStore, "next">;
  readonly ring: ChangeRing;
  readonly source: Source;
  /** Of the feed; rises with everything that happens. */
  readonly version: () => number;
}

/** Who asks for a page, and where it is. */
interface Place {
  readonly view: View;
  /** See `keyOf`. */
  readonly key: string;
  readonly position: Required<StreamPosition>;
  /** Whether it has had everything, and keeps up: then it shares its reads with all views, and else with those of its filter. */
  readonly isCurrent: boolean;
}

/**
 * The pages of all streams. Readers at the same place share what is read there, and those that show the same share the page.
 * The store has one read at a time, and readers get their pages in turn, in short slices of time. So however many catch up,
 * everybody else waits for a page or two.
 */
export class SharedPages {
  readonly #options: SharedPagesOptions;
  readonly #reads = new LRUCache<string, Promise<Read>>({ maxSize: KEPT_BYTES });
  readonly #pages = new LRUCache<string, Page>({ maxSize: KEPT_BYTES });
  #readCount = 0;
  #storeIsFree: Promise<void> = Promise.resolve();

  constructor(options: SharedPagesOptions) {
    this.#options = options;
  }

  /** The page after a position. Resolves when it is the reader's turn. */
  async after(place: Place): Promise<Page> {
    const read = await this.#readAfter(place);
    await streamTurns.yield();
    const { view, key, position } = place;
    const name = `${read.name} ${showsChanges(view) ? position.change : ""} ${key}`;
    return this.#pages.get(name) ?? this.#pageOf(name, view, position, read);
  }

  /** Once nobody reads. */
  clear(): void {
    this.#reads.clear();
    this.#pages.clear();
  }

  #readAfter({ view, position, isCurrent }: Place): Promise<Read> {
    const { topics, action, applications, payloads } = view;
    const after = position.event;
    const { events, version } = this.#options;
    if (!topics.has("events")) {
      const none = { events: [], through: after, isFull: false, removed: 0 };
      return this.#read(`changes at ${version()}`, () => none);
    }
    const filters = isCurrent ? {} : { action, applications };
    const query = omitUndefined<NextEvents>({ after, ...PAGE, ...filters, payloads });
    const name = JSON.stringify(query);
    const shared = this.#reads.get(name);
    if (shared !== undefined) return shared;
    this.#readCount += 1;
    const readName = `read ${this.#readCount}`;
    const reading = this.#inTurn(() => this.#read(readName, () => events.next(query)), isCurrent);
    this.#reads.set(name, reading, { size: 1 });
    void this.#keepIfUseful(name, reading, after);
    return reading;
  }

  /**
   * After a read for one that catches up comes as long a rest, so half of the time of the store's thread is never theirs. What
   * just happened is read once for all, and is not to wait.
   */
  #inTurn(read: () => Promise<Read>, isCurrent: boolean): Promise<Read> {
    let startedMs = 0;
    const reading = this.#storeIsFree.then(() => {
      startedMs = performance.now();
      return read();
    });
    const rest = async ({ isFull }: Read): Promise<void> => {
      if (isFull && !isCurrent) await pause(Math.min(performance.now() - startedMs, MAX_REST_MS));
    };
    this.#storeIsFree = reading.then(rest, () => undefined);
    return reading;
  }

  async #keepIfUseful(name: string, reading: Promise<Read>, after: number): Promise<void> {
    const read = await reading.catch(() => undefined);
    // Where nothing was there, the next who asks may find something.
    if (read === undefined || (read.through === after && !read.isFull)) this.#reads.delete(name);
    else this.#reads.set(name, reading, { size: bytesIn(read) });
  }

  async #read(name: string, next: () => NextPage | Promise<NextPage>): Promise<Read> {
    const { ring, version } = this.#options;
    // Before the events are read: so a delivery's result never comes before its event.
    const mark = { version: version(), change: ring.last };
    return { ...(await next()), ...mark, name };
  }

  #pageOf(name: string, view: View, from: Required<StreamPosition>, read: Read): Page {
    const { ring, source } = this.#options;
    const { events, version, removed } = read;
    const event = Math.max(from.event, read.through);
    let { change } = from;
    let { isFull } = read;
    let missed = 0;
    if (!isFull && showsChanges(view)) {
      missed = ring.missedAfter(change);
      change = Math.max(change, Math.min(read.change, change + missed + PAGE.limit));
      isFull = change < read.change;
    }
    const to = { event, change };
    const { messages, bytes } = messagesOf(view, source, from, {
      events,
      changes: ring.between(from.change, change),
      to,
    });
    const page = { messages, to, isFull, version, missed, removed };
    // With what they are encoded as.
    this.#pages.set(name, page, { size: 1 + 2 * bytes });
    return page;
  }
}

function bytesIn({ events }: NextPage): number {
  return events.reduce((sum, { payload }) => sum + MESSAGE_BYTES + (payload?.length ?? 0), 1);
}
