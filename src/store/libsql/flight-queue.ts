import { EvregError } from "../../domain/error.ts";
import type { WireOp, WireOutcome } from "./messages.ts";
import type { Answer } from "./worker-host.ts";

/** A write that waits for its flight. */
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

type Fly = (ops: readonly WireOp[], bytes: ArrayBuffer | undefined) => Promise<Answer>;

interface Waiting {
  readonly write: QueuedWrite;
  readonly resolve: (landed: Landed) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Past either, what waits is split over several flights, so that a read need not wait for all of it. A row takes 2.5 µs
 * (a delivery) to 7 µs (an event), so a flight 10 to 30 ms. One write is one transaction whatever its size: a batch of
 * 1,000 events to an action with 1,000 subscriptions holds all others for about 4 s.
 */
const FLIGHT_ROWS = 4_000;
const FLIGHT_BYTES = 8 * 1024 * 1024;
/** A queue longer than this means callers that do not wait for their answers, or an engine that has stalled. */
const QUEUE_BYTES = 256 * 1024 * 1024;
const QUEUE_WRITES = 100_000;

/**
 * Gathers writes into flights. One flight is under way at a time: a lone write goes at once, and what comes in
 * meanwhile goes together as the next one and shares its fsync.
 */
export class FlightQueue {
  readonly #fly: Fly;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #flying: Promise<void> | undefined;
  #closed = false;

  constructor(fly: Fly) {
    this.#fly = fly;
  }

  /** Resolves once it is committed. */
  add(write: QueuedWrite): Promise<Landed> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new EvregError("unavailable", "The store is closed."));
      if (this.#waiting.length >= QUEUE_WRITES || this.#waitingBytes + write.bytes > QUEUE_BYTES) {
        return reject(
          new EvregError("unavailable", "More is being written than the data folder takes; try again later."),
        );
      }
      this.#waiting.push({ write, resolve, reject });
      this.#waitingBytes += write.bytes;
      this.#flying ??= this.#flyAll();
    });
  }

  /** Takes no more; resolves when nothing waits and nothing is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#flying;
  }

  async #flyAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const aboard = this.#board();
      try {
        const { ops, bytes } = packed(aboard);
        const landed = await this.#fly(ops, bytes);
        for (const [index, { resolve, reject }] of aboard.entries()) {
          const outcome = landed.outcomes[index];
          if (outcome === undefined) reject(new Error("a write was not answered"));
          else resolve({ outcome, bytes: landed.bytes });
        }
      } catch (error) {
        for (const { reject } of aboard) reject(error);
      }
    }
    // In the same turn as the look at the queue: what is added later starts the next flight itself.
    this.#flying = undefined;
  }

  /** Takes the next flight off the queue: at least one write, and no more than the limits. */
  #board(): readonly Waiting[] {
    let rows = 0;
    let bytes = 0;
    let count = 0;
    for (const { write } of this.#waiting) {
      rows += write.rows;
      bytes += write.bytes;
      if (count > 0 && (rows > FLIGHT_ROWS || bytes > FLIGHT_BYTES)) break;
      count += 1;
    }
    const aboard = this.#waiting.slice(0, count);
    this.#waiting = this.#waiting.slice(count);
    for (const { write } of aboard) this.#waitingBytes -= write.bytes;
    return aboard;
  }
}

/** The payloads of the flight one behind the other in one buffer, which is handed over and not copied again. */
function packed(aboard: readonly Waiting[]): { ops: readonly WireOp[]; bytes: ArrayBuffer | undefined } {
  const length = aboard.reduce((sum, { write }) => sum + write.bytes, 0);
  const buffer = new Uint8Array(length);
  let offset = 0;
  const ops = aboard.map(({ write }) => {
    const op = write.pack(buffer, offset);
    offset += write.bytes;
    return op;
  });
  return { ops, bytes: length === 0 ? undefined : buffer.buffer };
}
