import type { StreamGap, StreamMessage, StreamPosition } from "../../domain/stream.ts";
import type { ChangeStream } from "../../evreg.ts";
import type { StreamCounts } from "../../metrics/counters.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Page, SharedPages } from "./pages.ts";
import { changeTopics, idAt, keyOf, type Source, type View } from "./view.ts";

/** How long a reader may take for what it gets, while more has come than one page, before it counts as slow. */
const SLOW_MS = 2_000;

/** Events after the reader's position were removed. */
export const EXPIRED: StreamGap = {
  reason: "expired",
  topics: ["events"],
  missed: null,
  complete_since: null,
};

/** What readers share. */
export interface ReaderHost {
  readonly clock: Clock;
  readonly counts: StreamCounts;
  readonly source: Source;
  readonly pages: SharedPages;
  /** See `Feed`. */
  readonly epoch: number;
  /** ISO 8601 UTC: the changes since then are kept. */
  readonly changesCompleteSince: string;
  isOpen(reader: Reader): boolean;
  /** Resolves once that epoch is over, or the reader is closed. */
  endOf(epoch: number, reader: Reader): Promise<void>;
  closed(reader: Reader): void;
}

export interface ReaderStart {
  readonly position: Required<StreamPosition>;
  readonly gaps: readonly StreamGap[];
  /** The largest rowid of an event that was removed by then. */
  readonly removed: number;
}

/** One stream. It asks for a page when the one before was taken, and waits for a signal when it has everything. */
export class Reader implements ChangeStream {
  readonly #host: ReaderHost;
  readonly #view: View;
  readonly #key: string;
  readonly #gapsAtStart: readonly StreamGap[];
  /** Of what was taken last. */
  #position: Required<StreamPosition>;
  /** Of the last message that was read alone, while more of its batch are to come. */
  #idWithin: string | undefined;
  /** The reader knows that events up to this rowid may be missing. */
  #removed: number;
  #isReady = false;
  /** How long it took what it got since it last had everything. */
  #takingMs = 0;
  #isSlow = false;

  constructor(host: ReaderHost, view: View, { position, gaps, removed }: ReaderStart) {
    this.#host = host;
    this.#view = view;
    this.#key = keyOf(view);
    this.#position = position;
    this.#gapsAtStart = gaps;
    this.#removed = removed;
  }

  get id(): string {
    return this.#idWithin ?? idAt(this.#view, this.#host.source, this.#position);
  }

  close(): Promise<void> {
    this.#host.closed(this);
    return Promise.resolve();
  }

  async *batches(): AsyncGenerator<readonly StreamMessage[], void, void> {
    const { clock, counts } = this.#host;
    try {
      for (const gap of this.#gapsAtStart) yield this.#gapMessage(gap);
      for (;;) {
        const { epoch } = this.#host;
        const page = await this.#nextPage(epoch);
        if (page === undefined) return;
        for (const gap of this.#gapsBefore(page)) yield this.#gapMessage(gap);
        this.#position = page.to;
        if (page.messages.length > 0) {
          counts.messages += page.messages.length;
          const startedMs = clock.monotonicMs();
          yield page.messages;
          this.#takingMs += clock.monotonicMs() - startedMs;
        }
        if (page.isFull) continue;
        if (!this.#isReady) {
          this.#isReady = true;
          counts.messages += 1;
          yield [{ type: "ready", id: this.id, data: {} }];
        }
        await this.#host.endOf(epoch, this);
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
    if (!this.#host.isOpen(this)) return undefined;
    const page = await this.#host.pages.after({
      view: this.#view,
      key: this.#key,
      position: this.#position,
      epoch,
    });
    return this.#host.isOpen(this) ? page : undefined;
  }

  #gapsBefore({ isFull, missed, removed }: Page): readonly StreamGap[] {
    const gaps: StreamGap[] = [];
    if (removed > Math.max(this.#position.event, this.#removed)) {
      this.#removed = removed;
      gaps.push(EXPIRED);
    }
    const topics = changeTopics(this.#view);
    if (missed > 0) {
      gaps.push({ reason: "overrun", topics, missed, complete_since: this.#host.changesCompleteSince });
    }
    if (!isFull) {
      this.#takingMs = 0;
      this.#isSlow = false;
    } else if (this.#isReady && !this.#isSlow && this.#takingMs > SLOW_MS) {
      this.#isSlow = true;
      gaps.push({ reason: "slow", topics: [...this.#view.topics], missed: 0, complete_since: null });
    }
    return gaps;
  }

  #gapMessage(gap: StreamGap): readonly StreamMessage[] {
    this.#host.counts.gaps[gap.reason] += 1;
    this.#host.counts.messages += 1;
    return [{ type: "gap", id: this.id, data: gap }];
  }
}
