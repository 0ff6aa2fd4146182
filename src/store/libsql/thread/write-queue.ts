import { EvregError } from "../../../domain/error.ts";
import type { Cargo, WireOp, WireOutcome } from "./protocol.ts";
import type { Answer } from "./worker-client.ts";

/** A write that waits to be sent. */
export interface QueuedWrite {
  readonly bytes: number;
  /** It writes, about. */
  readonly rows: number;
  /** Makes the message's part, having put its bytes at `offset` of `buffer`. */
  readonly pack: (buffer: Uint8Array, offset: number) => WireOp;
}

export interface Landed {
  readonly outcome: WireOutcome;
  readonly bytes: ArrayBuffer | undefined;
}

type Send = (cargo: Cargo) => Promise<Answer>;

interface Waiting {
  readonly write: QueuedWrite;
  readonly resolve: (landed: Landed) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * So many go off at once: while requests come in by the dozen, the store's thread then works on the first of them as this
 * one goes on with the others.
 */
export const SEND_WRITES = 24;
const SEND_ROWS = 1_000;
const SEND_BYTES = 1024 * 1024;
/** More without an answer means callers that do not wait for theirs, or an engine that has stalled. */
const OPEN_BYTES = 256 * 1024 * 1024;
const OPEN_WRITES = 100_000;

/**
 * Gathers writes into messages to the store's thread, which puts what it finds waiting together into one flight and one
 * fsync (see `boarding.ts`). What a turn of the event loop brings goes off at its end when nothing is under way; else it
 * waits for the answer, or until there is enough for a message. Any number of those may be under way, so that the thread
 * never waits for this one to come round.
 */
export class FlightQueue {
  readonly #send: Send;
  #waiting: Waiting[] = [];
  /** What they come to. */
  #waitingRows = 0;
  #waitingBytes = 0;
  #isFlushDue = false;
  /** Messages without an answer. */
  #underWay = 0;
  /** Writes and their bytes that are not answered yet, those that wait included. */
  #open = { writes: 0, bytes: 0 };
  #idle: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
  #closed = false;

  constructor(send: Send) {
    this.#send = send;
  }

  /** Resolves once it is committed. */
  add(write: QueuedWrite): Promise<Landed> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new EvregError("unavailable", "The store is closed."));
      if (this.#open.writes >= OPEN_WRITES || this.#open.bytes + write.bytes > OPEN_BYTES) {
        return reject(
          new EvregError("unavailable", "More is being written than the data folder takes; try again later."),
        );
      }
      this.#waiting.push({ write, resolve, reject });
      this.#waitingRows += write.rows;
      this.#waitingBytes += write.bytes;
      this.#open.writes += 1;
      this.#open.bytes += write.bytes;
      if (this.#isEnough) this.#flush();
      else if (this.#underWay === 0) this.#flushAtTurnEnd();
    });
  }

  get #isEnough(): boolean {
    return (
      this.#waiting.length >= SEND_WRITES ||
      this.#waitingRows >= SEND_ROWS ||
      this.#waitingBytes >= SEND_BYTES
    );
  }

  /** Takes no more; resolves when nothing waits and nothing is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#open.writes === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
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
    const aboard = this.#waiting;
    this.#waiting = [];
    this.#waitingRows = 0;
    this.#waitingBytes = 0;
    void this.#carry(aboard);
  }

  async #deliver(cargo: Cargo): Promise<Answer> {
    this.#underWay += 1;
    try {
      return await this.#send(cargo);
    } finally {
      this.#underWay -= 1;
      // Before anyone hears of the answer, as the store has nothing to do until then.
      if (this.#underWay === 0) this.#flush();
    }
  }

  async #carry(aboard: readonly Waiting[]): Promise<void> {
    try {
      const landed = await this.#deliver(packed(aboard));
      for (const [index, { resolve, reject }] of aboard.entries()) {
        const outcome = landed.outcomes[index];
        if (outcome === undefined) reject(new Error("a write was not answered"));
        else resolve({ outcome, bytes: landed.bytes });
      }
    } catch (error) {
      for (const { reject } of aboard) reject(error);
    }
    this.#open.writes -= aboard.length;
    for (const { write } of aboard) this.#open.bytes -= write.bytes;
    if (this.#open.writes === 0) this.#idle?.resolve();
  }
}

/** The payloads one behind the other in one buffer, which is handed over and not copied again. */
function packed(aboard: readonly Waiting[]): Cargo {
  let rows = 0;
  let length = 0;
  for (const { write } of aboard) {
    rows += write.rows;
    length += write.bytes;
  }
  const buffer = new Uint8Array(length);
  let offset = 0;
  const ops = aboard.map(({ write }) => {
    const op = write.pack(buffer, offset);
    offset += write.bytes;
    return op;
  });
  return length === 0 ? { ops, rows } : { ops, rows, bytes: buffer.buffer };
}
