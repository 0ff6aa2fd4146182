import { EvregError } from "../../../domain/error.ts";
import { type Clock, systemClock } from "../../../runtime/clock.ts";
import {
  type BatchedCalls,
  type BatchedOutcomes,
  fromWireError,
  type WireOutcome,
  type WriteBatch,
} from "./protocol.ts";
import type { WriteReply } from "./worker-client.ts";

/** A write that waits to be sent: a call by itself or, of a kind that has a codec, one for that. */
export interface PendingWrite {
  readonly name: string;
  /** A list of arguments, or what the codec takes. */
  readonly call: unknown;
  /** About how many rows it writes. */
  readonly rows: number;
  /** Bytes that go with it, which are copied once, into the message. */
  readonly payloads?: readonly Uint8Array[];
  /** Whether it may wait for others under load. */
  readonly lingers?: boolean;
}

/** How all writes of one kind in a batch cross to the store's thread as one. */
export interface Codec {
  pack(calls: readonly unknown[]): unknown;
  /** What came of each call. */
  unpack(packed: unknown, calls: readonly unknown[]): readonly unknown[];
}

export interface Committed {
  readonly value: unknown;
  /** Of all that was committed together. */
  readonly bytes: ArrayBuffer | undefined;
}

type Send = (batch: WriteBatch) => Promise<WriteReply>;

interface Waiting {
  readonly write: PendingWrite;
  readonly bytes: number;
  readonly resolve: (committed: Committed) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * So many go off at once: while requests come in by the dozen, the store's thread then works on the first of them as this
 * one goes on with the others.
 */
export const SEND_WRITES = 24;
const SEND_ROWS = 1_000;
const SEND_BYTES = 1024 * 1024;
/** Under load, writes that may linger go off this often, unless they can go with others before. */
const LINGER_MS = 5;
/** So many rows of them a millisecond are load; counted over so long. */
const LOAD_ROWS_PER_MS = 2;
const LOAD_WINDOW_MS = 10;
/** More without an answer means callers that do not wait for theirs, or an engine that has stalled. */
const OPEN_BYTES = 256 * 1024 * 1024;
const OPEN_WRITES = 100_000;

/**
 * Puts writes into batches for the store's thread, which joins the batches that wait into one transaction and one fsync
 * (see `group-commit.ts`). What a turn of the event loop brings goes off at its end when nothing is in flight; else it
 * waits for a reply, or until there is enough for a batch. Any number of batches may be in flight, so that the thread
 * never waits for this one to come round.
 *
 * A commit costs much however little is in it, and a claim or a result is in no hurry. So under load these linger: they go
 * with the next batch of others, or by themselves every few milliseconds. The time is the machine's, as it is about work
 * and not about when anything is due.
 */
export class WriteQueue {
  readonly #send: Send;
  readonly #codecs: Readonly<Record<string, Codec>>;
  readonly #time: Clock;
  #waiting: Waiting[] = [];
  /** Those at the front that were deferred. */
  #again = 0;
  #waitingRows = 0;
  #waitingBytes = 0;
  /** Those that never linger. */
  #urgent = 0;
  /** Whether any is to go with the next reply. */
  #isDue = false;
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
  constructor(
    send: Send,
    codecs: Readonly<Record<string, Codec>>,
    time: Clock = { ...systemClock, now: () => performance.now() },
  ) {
    this.#send = send;
    this.#codecs = codecs;
    this.#time = time;
  }

  /**
   * Resolves once it is committed; rejects with why it was not.
   * @param isAgain whether it was deferred, and so goes before the others
   */
  append(write: PendingWrite, isAgain = false): Promise<Committed> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new EvregError("unavailable", "The store is closed."));
      const bytes = write.payloads?.reduce((sum, payload) => sum + payload.byteLength, 0) ?? 0;
      if (this.#open.writes >= OPEN_WRITES || this.#open.bytes + bytes > OPEN_BYTES) {
        return reject(
          new EvregError("unavailable", "More is being written than the data folder takes; try again later."),
        );
      }
      this.#waiting.splice(isAgain ? this.#again : this.#waiting.length, 0, {
        write,
        bytes,
        resolve,
        reject,
      });
      this.#again += isAgain ? 1 : 0;
      this.#waitingRows += write.rows;
      this.#waitingBytes += bytes;
      this.#open.writes += 1;
      this.#open.bytes += bytes;
      const lingerMs = write.lingers === true ? this.#lingerMs(write.rows) : 0;
      if (write.lingers !== true) this.#urgent += 1;
      if (lingerMs <= 0) this.#isDue = true;
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
    return this.#urgent >= SEND_WRITES || this.#waitingRows >= SEND_ROWS || this.#waitingBytes >= SEND_BYTES;
  }

  /** How long a write that may linger does. */
  #lingerMs(rows: number): number {
    const nowMs = this.#time.now();
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
    if (this.#waiting.length === 0) return;
    const writes = this.#waiting;
    this.#waiting = [];
    this.#again = 0;
    this.#urgent = 0;
    this.#isDue = false;
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    if (writes.some(({ write }) => write.lingers === true)) this.#lastLingerMs = this.#time.now();
    this.#waitingRows = 0;
    this.#waitingBytes = 0;
    void this.#commit(writes);
  }

  async #commit(writes: readonly Waiting[]): Promise<void> {
    const calls = writes.filter(({ write }) => !(write.name in this.#codecs));
    const kinds = Object.entries(this.#codecs).flatMap(([name, codec]): Kind[] => {
      const ofKind = writes.filter(({ write }) => write.name === name);
      return ofKind.length === 0 ? [] : [{ name, codec, writes: ofKind }];
    });
    try {
      const reply = await this.#deliver(batchOf(calls, kinds));
      settle(calls, reply.calls, reply.bytes);
      for (const [index, kind] of kinds.entries()) {
        settleKind(kind, reply.batched[index]!, reply.bytes);
      }
    } catch (error) {
      for (const { reject } of writes) reject(error);
    }
    this.#open.writes -= writes.length;
    for (const { bytes } of writes) this.#open.bytes -= bytes;
    if (this.#open.writes === 0) this.#idle?.resolve();
  }

  async #deliver(batch: WriteBatch): Promise<WriteReply> {
    this.#inFlight += 1;
    try {
      return await this.#send(batch);
    } finally {
      this.#inFlight -= 1;
      // Before anyone hears of the reply, as the store's thread has nothing to do until then.
      if (this.#inFlight === 0 && this.#isDue) this.#flush();
    }
  }
}

/** The writes of one kind in a batch. */
interface Kind {
  readonly name: string;
  readonly codec: Codec;
  readonly writes: readonly Waiting[];
}

/** The payloads one behind the other in one buffer, which is handed over and not copied again. */
function batchOf(calls: readonly Waiting[], kinds: readonly Kind[]): WriteBatch {
  const payloads: Uint8Array[] = [];
  let length = 0;
  const batched = kinds.map(({ name, codec, writes }): BatchedCalls => {
    const offset = length;
    for (const { write, bytes } of writes) {
      for (const payload of write.payloads ?? []) payloads.push(payload);
      length += bytes;
    }
    return { name, columns: codec.pack(writes.map(({ write }) => write.call)), offset };
  });
  const all = [...calls, ...kinds.flatMap(({ writes }) => writes)];
  const batch: WriteBatch = {
    calls: calls.map(({ write: { name, call } }) => ({ name, args: call as readonly unknown[] })),
    batched,
    writes: all.length,
    rows: all.reduce((sum, { write }) => sum + write.rows, 0),
  };
  if (length === 0) return batch;
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const payload of payloads) {
    bytes.set(payload, offset);
    offset += payload.byteLength;
  }
  return { ...batch, bytes: bytes.buffer };
}

function settleKind(
  { codec, writes }: Kind,
  outcomes: BatchedOutcomes,
  bytes: ArrayBuffer | undefined,
): void {
  if ("outcomes" in outcomes) return settle(writes, outcomes.outcomes, bytes);
  const values = codec.unpack(
    outcomes.packed,
    writes.map(({ write }) => write.call),
  );
  for (const [index, { resolve }] of writes.entries()) resolve({ value: values[index], bytes });
}

function settle(
  writes: readonly Waiting[],
  outcomes: readonly WireOutcome[],
  bytes: ArrayBuffer | undefined,
): void {
  for (const [index, { resolve, reject }] of writes.entries()) {
    const outcome = outcomes[index]!;
    if ("error" in outcome) reject(fromWireError(outcome.error));
    else resolve({ value: outcome.ok, bytes });
  }
}
