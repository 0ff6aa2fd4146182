import { EvregError } from "../../domain/error.ts";
import type { StoreChange } from "../store.ts";
import { type Committed, fromWireError, type WriteCall } from "./protocol.ts";
import { NOTHING_STORED, type StoreThreads } from "./store-threads.ts";
import { joinPieces } from "../../json/raw-json.ts";

export interface PendingWrite {
  readonly operation: string;
  /** About how many rows the write writes. */
  readonly rows: number;
  /** Whether it is answered once all others who have the data open know of it, where they have to. */
  readonly isKept?: boolean;
  /** What goes with the call, as bytes: joined to those of the other writes of its batch, as one buffer is transferred. */
  readonly pieces?: readonly Uint8Array[];
  /** Makes the arguments, by where the bytes begin among those of the batch. */
  readonly call: (start: number) => readonly unknown[];
}

interface WriteCaller extends Pick<PromiseWithResolvers<unknown>, "resolve" | "reject"> {
  readonly isKept: boolean;
}

interface Batch {
  readonly calls: WriteCall[];
  /** The callers, in the order of the calls. */
  readonly callers: WriteCaller[];
  readonly pieces: Uint8Array[];
  /** How many bytes the pieces come to. */
  bytes: number;
  rows: number;
}

/**
 * Where what waits comes to more than this, or than `BATCH_BYTES`, it is split into several batches, so that the first need not
 * wait for the last. A row takes 2.5 µs (a delivery) to 7 µs (an event), so a transaction takes 5 to 15 ms. A write is never
 * split.
 */
export const BATCH_ROWS = 2_000;
const BATCH_BYTES = 8 * 1024 * 1024;
/** So many batches are sent before they are answered: while the store's thread works on one, the next is there already. */
const MAX_IN_FLIGHT = 2;
/**
 * Writes are refused beyond so many bytes without an answer: callers then do not wait for their answers, or the engine has
 * stalled.
 */
const MAX_HELD_BYTES = 256 * 1024 * 1024;
/** About how many bytes a write holds besides those that go with it. */
const WRITE_BYTES = 2_048;

/**
 * Puts writes into batches for the store's thread, which does each batch in one transaction with one fsync. The writes of a turn
 * of the event loop are sent at its end; while two batches are in flight, all that comes waits and goes together.
 */
export class WriteQueue {
  readonly #writer: Pick<StoreThreads, "write">;
  readonly #onChange: (change: StoreChange) => void;
  readonly #seenByAll: (version: number) => Promise<void>;
  /** The batches that wait; only the last one may have room. */
  readonly #waiting: Batch[] = [];
  #isSendDue = false;
  #inFlight = 0;
  /** The bytes that are held by all writes that are not answered yet. */
  #heldBytes = 0;
  #idle: PromiseWithResolvers<void> | undefined;
  #isClosed = false;

  /**
   * @param onChange is given what committed writes did besides, once they are answered
   * @param seenByAll waits until all who have the data open know of a change, see `StoreChange.version`
   */
  constructor(
    writer: Pick<StoreThreads, "write">,
    onChange: (change: StoreChange) => void,
    seenByAll: (version: number) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#writer = writer;
    this.#onChange = onChange;
    this.#seenByAll = seenByAll;
  }

  /** Takes a write. Resolves once it is committed; rejects with why it was not. */
  append({ operation, rows, isKept = false, pieces = [], call }: PendingWrite): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const refusal = this.#refusal();
      if (refusal !== undefined) return reject(new EvregError("unavailable", refusal, NOTHING_STORED));
      const batch = this.#batchWithRoom();
      const bytes = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
      batch.calls.push([operation, call(batch.bytes)]);
      batch.callers.push({ resolve, reject, isKept });
      batch.pieces.push(...pieces);
      batch.bytes += bytes;
      batch.rows += rows;
      this.#heldBytes += WRITE_BYTES + bytes;
      this.#sendAtTurnEnd();
    });
  }

  #refusal(): string | undefined {
    if (this.#isClosed) return "The store is closed.";
    const isFull = this.#heldBytes >= MAX_HELD_BYTES;
    return isFull ? "More is being written than the data folder takes; try again later." : undefined;
  }

  /** Takes no more writes; resolves when none waits and none is in flight. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#heldBytes === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  #batchWithRoom(): Batch {
    const last = this.#waiting.at(-1);
    if (last !== undefined && last.rows < BATCH_ROWS && last.bytes < BATCH_BYTES) return last;
    const next = { calls: [], callers: [], pieces: [], bytes: 0, rows: 0 };
    this.#waiting.push(next);
    return next;
  }

  #sendAtTurnEnd(): void {
    if (this.#isSendDue || this.#inFlight >= MAX_IN_FLIGHT) return;
    this.#isSendDue = true;
    setImmediate(() => {
      this.#isSendDue = false;
      this.#send();
    });
  }

  #send(): void {
    while (this.#inFlight < MAX_IN_FLIGHT) {
      const batch = this.#waiting.shift();
      if (batch === undefined) return;
      void this.#commit(batch);
    }
  }

  async #commit(batch: Batch): Promise<void> {
    this.#inFlight += 1;
    const { calls, callers, pieces, bytes } = batch;
    const joined = bytes === 0 ? undefined : joinPieces(pieces).buffer;
    const message = { calls: JSON.stringify(calls), bytes: joined };
    const [written] = await Promise.allSettled([this.#writer.write(message)]);
    this.#inFlight -= 1;
    // The next batch is sent before the callers get their answers, so that the store's thread has something to do meanwhile.
    this.#send();
    if (written.status === "fulfilled") this.#answer(callers, written.value);
    else for (const { reject } of callers) reject(written.reason);
    this.#heldBytes -= WRITE_BYTES * calls.length + bytes;
    if (this.#heldBytes === 0) this.#idle?.resolve();
  }

  #answer(callers: readonly WriteCaller[], { outcomes, changes }: Committed): void {
    const version = changes.find((change) => change.version !== undefined)?.version;
    const seen = version === undefined ? undefined : this.#seenByAll(version);
    for (const [place, { resolve, reject, isKept }] of callers.entries()) {
      const outcome = outcomes[place]!;
      if ("error" in outcome) reject(fromWireError(outcome.error));
      // Claims and results must not wait: another one may be dead, which takes as long as its lease.
      else resolve(isKept && seen !== undefined ? seen.then(() => outcome.ok) : outcome.ok);
    }
    for (const change of changes) this.#onChange(change);
  }
}
