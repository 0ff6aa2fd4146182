import {
  STREAM_LIMITS,
  type StreamGap,
  type StreamMessage,
  type StreamPosition,
  type StreamTopic,
} from "../../domain/stream.ts";
import type { ChangeStream } from "../../evreg.ts";
import type { StreamCounts } from "../../metrics/counters.ts";
import { toIso } from "../../runtime/clock.ts";
import type { EventStore, NextEvents } from "../../store/events.ts";
import { omitUndefined } from "../requests.ts";
import type { ChangeRing } from "./ring.ts";
import {
  type Batch,
  batchOf,
  idAt,
  keyOf,
  positionIn,
  showsChanges,
  type Source,
  type Span,
  type View,
} from "./view.ts";

/** Events that one read brings, whose payloads are in memory until the reader has taken them. */
export const PAGE = { limit: 500, maxBytes: 128 * 1024 } as const;

/** What readers share. */
export interface ReaderHost {
  readonly events: Pick<EventStore, "next">;
  readonly ring: ChangeRing;
  readonly source: Source;
  readonly counts: StreamCounts;
  /** Takes the reader among the live ones if it misses nothing by that. */
  join(reader: Reader): boolean;
  leave(reader: Reader): void;
  closed(reader: Reader): void;
}

export interface ReaderStart {
  readonly position: Required<StreamPosition>;
  readonly gaps: readonly StreamGap[];
}

/**
 * One stream. At first it reads from the store and the ring at its own pace. Once it has all, it is live: it gets what is read
 * once for all. When its queue is full it is no longer live, and reads by itself again from where it was.
 */
export class Reader implements ChangeStream {
  readonly view: View;
  /** The same for all with such a view. */
  readonly key: string;
  readonly #host: ReaderHost;
  #position: Required<StreamPosition>;
  /** Of what was taken last. */
  #takenPosition: Required<StreamPosition>;
  readonly #queue: { readonly batch: Batch; to: Required<StreamPosition> }[] = [];
  #queuedBytes = 0;
  /** Of the last message that was read alone, while more of its batch are to come. */
  #idWithin: string | undefined;
  #isLive = false;
  #isClosed = false;
  #wake: (() => void) | undefined;

  constructor(host: ReaderHost, view: View, { position, gaps }: ReaderStart) {
    this.#host = host;
    this.view = view;
    this.key = keyOf(view);
    this.#position = this.#takenPosition = position;
    for (const gap of gaps) this.#enqueueGap(gap);
  }

  get position(): Required<StreamPosition> {
    return this.#position;
  }

  get id(): string {
    return this.#idWithin ?? this.#idAt(this.#takenPosition);
  }

  /** Whether what the feed shows between this position and the next can be shared with it. */
  isAt(position: Required<StreamPosition>): boolean {
    const [here, there] = [positionIn(this.view, this.#position), positionIn(this.view, position)];
    return here.event === there.event && here.change === there.change;
  }

  /** For a live one: the next batch; with a full queue, it is live no more. */
  push(batch: Batch, to: Required<StreamPosition>): void {
    if (this.#queuedBytes >= STREAM_LIMITS.queuedBytes) {
      this.#isLive = false;
      this.#host.leave(this);
      this.#enqueueGap({ reason: "slow", topics: [...this.view.topics], missed: 0, complete_since: null });
    } else {
      this.#position = to;
      this.#enqueue(batch, to);
    }
    this.#wake?.();
  }

  /** For a live one: it reads by itself again. */
  detach(): void {
    this.#isLive = false;
    this.#wake?.();
  }

  close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#host.leave(this);
      this.#host.closed(this);
      this.#queue.length = 0;
      this.#wake?.();
    }
    return Promise.resolve();
  }

  async *batches(): AsyncGenerator<readonly StreamMessage[], void, void> {
    try {
      for (;;) {
        if (this.#isClosed) return;
        const next = this.#queue.shift();
        if (next !== undefined) {
          this.#queuedBytes -= next.batch.bytes;
          this.#takenPosition = next.to;
          this.#host.counts.messages += next.batch.messages.length;
          yield next.batch.messages;
        } else if (this.#isLive) {
          const { promise, resolve } = Promise.withResolvers<void>();
          this.#wake = resolve;
          await promise;
          this.#wake = undefined;
        } else await this.#catchUp();
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

  /** One step towards being live. */
  async #catchUp(): Promise<void> {
    const { ring } = this.#host;
    const { view } = this;
    const from = this.#position;
    // Before the events are read: so a delivery's result never comes before its event.
    const through = ring.last;
    let { event } = from;
    let events: Span["events"] = [];
    if (view.topics.has("events")) {
      const { action, applications, payloads } = view;
      const query = omitUndefined<NextEvents>({ after: event, ...PAGE, action, applications, payloads });
      const page = await this.#host.events.next(query);
      if (this.#isClosed) return;
      ({ events, through: event } = page);
      if (page.isFull) return this.#enqueueSpan({ events, changes: [], to: { ...from, event } });
    }
    let { change } = from;
    if (showsChanges(view)) {
      const missed = ring.missedAfter(change);
      if (missed > 0) {
        const complete_since = toIso(ring.completeSinceMs);
        this.#enqueueGap({ reason: "overrun", topics: changeTopics(view), missed, complete_since });
      }
      change = through;
    }
    const changes = ring.between(from.change, change);
    this.#enqueueSpan({ events, changes, to: { event, change } });
    if (change < ring.last && showsChanges(view)) return;
    if (!this.#host.join(this)) return;
    this.#isLive = true;
    this.#enqueue(
      { messages: [{ type: "ready", id: this.#idAt(this.#position), data: {} }], bytes: 0 },
      this.#position,
    );
  }

  #enqueueSpan(span: Span): void {
    const batch = batchOf(this.view, this.#host.source, this.#position, span);
    this.#position = span.to;
    this.#enqueue(batch, span.to);
  }

  #enqueueGap(gap: StreamGap): void {
    this.#host.counts.gaps[gap.reason] += 1;
    const message = { type: "gap", id: this.#idAt(this.#position), data: gap } as const;
    this.#enqueue({ messages: [message], bytes: 0 }, this.#position);
  }

  #enqueue(batch: Batch, to: Required<StreamPosition>): void {
    if (batch.messages.length > 0) {
      this.#queue.push({ batch, to });
      this.#queuedBytes += batch.bytes;
      return;
    }
    // Nothing to be shown on the way there.
    const last = this.#queue.at(-1);
    if (last === undefined) this.#takenPosition = to;
    else last.to = to;
  }

  #idAt(position: Required<StreamPosition>): string {
    return idAt(this.view, this.#host.source, position);
  }
}

export function changeTopics({ topics }: View): readonly StreamTopic[] {
  return [...topics].filter((topic) => topic !== "events");
}
