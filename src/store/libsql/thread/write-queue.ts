import { EvregError } from "../../../domain/error.ts";
import { type Clock, systemClock } from "../../../runtime/clock.ts";
import { fromWireError, type GroupOutcome, type WriteBatch, type WriteGroup } from "./protocol.ts";
import type { Reply } from "./worker-client.ts";

/** A write to be sent. */
export interface PendingWrite {
  readonly name: string;
  /** What the codec of the name takes; without one, a list of arguments. */
  readonly call: unknown;
  /** About how many rows it writes. */
  readonly rows: number;
  /** Bytes that go with it. They are copied once, into the message. */
  readonly payloads?: readonly Uint8Array[];
  /** Whether it may wait for others under load. */
  readonly lingers?: boolean;
}

/** How all writes of one name in a batch cross to the store's thread as one. */
export interface Codec {
  pack(calls: readonly unknown[]): unknown;
  /** The result of each call. */
  unpack(packed: unknown, calls: readonly unknown[]): readonly unknown[];
}

const ONE_BY_ONE: Codec = { pack: (calls) => calls, unpack: (packed) => packed as readonly unknown[] };

/** Commits a batch. */
interface BatchWriter {
  write(batch: WriteBatch): Promise<Reply<readonly GroupOutcome[]>>;
}

interface Waiting {
  readonly write: PendingWrite;
  readonly bytes: number;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/** The writes that go with the next batch. */
interface NextBatch {
  readonly writes: Waiting[];
  rows: number;
  bytes: number;
  /** Those that never linger. */
  urgent: number;
  /** Whether any is to go with the next reply. */
  isDue: boolean;
}

function emptyBatch(): NextBatch {
  return { writes: [], rows: 0, bytes: 0, urgent: 0, isDue: false };
}

/** So many are sent at once: the store's thread then works on them while this one goes on with further requests. */
export const SEND_WRITES = 24;
const SEND_ROWS = 1_000;
const SEND_BYTES = 1024 * 1024;
/** Under load, writes that may linger are sent this often, unless they can go with others before. */
const LINGER_MS = 5;
/** So many of their rows a millisecond are load, counted over this time. */
const LOAD_ROWS_PER_MS = 2;
const LOAD_WINDOW_MS = 10;
/** More without an answer means callers that do not wait for theirs, or an engine that has stalled. */
const OPEN_BYTES = 256 * 1024 * 1024;
const OPEN_WRITES = 100_000;

/**
 * Puts writes into batches for the store's thread, which joins the batches that wait into one transaction and one fsync
 * (see `group-commit.ts`). When nothing is in flight, the writes of a turn of the event loop are sent at its end; else
 * they wait for a reply, or until there are enough for a batch. Any number of batches may be in flight.
 *
 * A commit costs much however little is in it, and a claim or a result is in no hurry. So under load these linger: they
 * go with the next batch of others, or by themselves every few milliseconds. This is by the machine's clock, as it is
 * about work and not about when anything is due.
 */
export class WriteQueue {
  readonly #writer: BatchWriter;
  readonly #codecs: Readonly<Record<string, Codec>>;
  readonly #time: Clock;
  #next = emptyBatch();
  #isFlushDue = false;
  #cancelLinger: (() => void) | undefined;
  /** When writes that may linger were last sent. */
  #lastLingerMs = -Infinity;
  readonly #load = { sinceMs: -Infinity, rows: 0, isHigh: false };
  /** Batches without a reply. */
  #inFlight = 0;
  /** Writes and their bytes that are not answered yet, those that wait included. */
  #open = { writes: 0, bytes: 0 };
  #idle: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
  #closed = false;

  /** @param codecs by the names of the writes that are done together */
  constructor(writer: BatchWriter, codecs: Readonly<Record<string, Codec>>, time: Clock = systemClock) {
    this.#writer = writer;
    this.#codecs = codecs;
    this.#time = time;
  }

  /** Resolves once it is committed; rejects with why it was not. */
  append(write: PendingWrite): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new EvregError("unavailable", "The store is closed."));
      const bytes = write.payloads?.reduce((sum, payload) => sum + payload.byteLength, 0) ?? 0;
      if (this.#open.writes >= OPEN_WRITES || this.#open.bytes + bytes > OPEN_BYTES) {
        return reject(
          new EvregError("unavailable", "More is being written than the data folder takes; try again later."),
        );
      }
      const next = this.#next;
      next.writes.push({ write, bytes, resolve, reject });
      next.rows += write.rows;
      next.bytes += bytes;
      this.#open.writes += 1;
      this.#open.bytes += bytes;
      const lingerMs = write.lingers === true ? this.#lingerMs(write.rows) : 0;
      if (write.lingers !== true) next.urgent += 1;
      if (lingerMs <= 0) next.isDue = true;
      if (this.#isEnough) this.#flush();
      else if (lingerMs > 0) this.#cancelLinger ??= this.#time.setTimer(() => this.#flush(), lingerMs);
      else if (this.#inFlight === 0) this.#flushAtTurnEnd();
    });
  }

  /** Takes no more; resolves when nothing waits and nothing is in flight. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#cancelLinger !== undefined) this.#flush();
    if (this.#open.writes === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  get #isEnough(): boolean {
    const { urgent, rows, bytes } = this.#next;
    return urgent >= SEND_WRITES || rows >= SEND_ROWS || bytes >= SEND_BYTES;
  }

  /** How long a write that may linger waits. */
  #lingerMs(rows: number): number {
    const nowMs = this.#time.monotonicMs();
    const load = this.#load;
    const passedMs = nowMs - load.sinceMs;
    if (passedMs >= LOAD_WINDOW_MS) {
      load.isHigh = load.rows >= LOAD_ROWS_PER_MS * passedMs;
      load.sinceMs = nowMs;
      load.rows = 0;
    }
    load.rows += rows;
    return load.isHigh ? this.#lastLingerMs + LINGER_MS - nowMs : 0;
  }

  #flushAtTurnEnd(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    setImmediate(() => {
      this.#isFlushDue = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#next.writes.length === 0) return;
    const { writes } = this.#next;
    this.#next = emptyBatch();
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    if (writes.some(({ write }) => write.lingers === true)) this.#lastLingerMs = this.#time.monotonicMs();
    void this.#commit(writes);
  }

  async #commit(writes: readonly Waiting[]): Promise<void> {
    const byName = Map.groupBy(writes, ({ write }) => write.name);
    const groups = [...byName].map(([name, ofName]): Group => {
      return { name, codec: this.#codecs[name] ?? ONE_BY_ONE, writes: ofName };
    });
    try {
      const { value, bytes } = await this.#deliver(batchOf(groups));
      for (const [index, group] of groups.entries()) settle(group, value[index]!, bytes);
    } catch (error) {
      for (const { reject } of writes) reject(error);
    }
    this.#open.writes -= writes.length;
    for (const { bytes } of writes) this.#open.bytes -= bytes;
    if (this.#open.writes === 0) this.#idle?.resolve();
  }

  async #deliver(batch: WriteBatch): ReturnType<BatchWriter["write"]> {
    this.#inFlight += 1;
    try {
      return await this.#writer.write(batch);
    } finally {
      this.#inFlight -= 1;
      // Before the callers get the reply, as the store's thread has nothing to do until then.
      if (this.#inFlight === 0 && this.#next.isDue) this.#flush();
    }
  }
}

/** The writes of one name in a batch. */
interface Group {
  readonly name: string;
  readonly codec: Codec;
  readonly writes: readonly Waiting[];
}

function batchOf(groups: readonly Group[]): WriteBatch {
  const writes = groups.flatMap((group) => group.writes);
  let length = 0;
  const packed = groups.map((group): WriteGroup => {
    const offset = length;
    for (const { bytes } of group.writes) length += bytes;
    return { name: group.name, columns: group.codec.pack(callsOf(group)), offset };
  });
  const rows = writes.reduce((sum, { write }) => sum + write.rows, 0);
  const batch: WriteBatch = { groups: packed, writes: writes.length, rows };
  if (length === 0) return batch;
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const payload of writes.flatMap(({ write }) => write.payloads ?? [])) {
    bytes.set(payload, offset);
    offset += payload.byteLength;
  }
  return { ...batch, bytes: bytes.buffer };
}

function callsOf({ writes }: Group): readonly unknown[] {
  return writes.map(({ write }) => write.call);
}

function settle(group: Group, outcome: GroupOutcome, bytes: ArrayBuffer | undefined): void {
  if ("packed" in outcome) {
    const values = group.codec.unpack(outcome.packed, callsOf(group));
    for (const [index, { resolve }] of group.writes.entries()) resolve({ value: values[index], bytes });
    return;
  }
  for (const [index, { resolve, reject }] of group.writes.entries()) {
    const one = outcome.outcomes[index]!;
    if ("error" in one) reject(fromWireError(one.error));
    else resolve({ value: one.ok, bytes });
  }
}
