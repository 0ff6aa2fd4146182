import { EvregError } from "../../../domain/error.ts";
import type { StoreChange } from "../../store.ts";
import {
  ByteWriter,
  fromWireError,
  type GroupOutcome,
  type WireOutcome,
  type WriteBatch,
} from "./protocol.ts";
import type { Reply, WriteReply } from "./worker-client.ts";

/** A write to be sent. */
export interface PendingWrite {
  readonly operation: string;
  /** Whether all calls of the operation in a batch are done together. */
  readonly isJoined: boolean;
  /** About how many rows it writes. */
  readonly rows: number;
  /** Makes the call; what is added to the bytes goes with it. */
  readonly call: (bytes: ByteWriter) => unknown;
}

/** Commits a batch. */
interface BatchWriter {
  write(batch: WriteBatch): Promise<WriteReply>;
}

interface Waiting {
  readonly call: unknown;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

/** The calls of one operation in a batch. */
interface Group {
  readonly isJoined: boolean;
  readonly waiting: Waiting[];
}

/**
 * Beyond either, what waits is split into several batches, so that a read need not wait for all of it. A row takes 2.5 µs (a
 * delivery) to 7 µs (an event), so a transaction takes 5 to 15 ms. A write is never split.
 */
export const BATCH_ROWS = 2_000;
const BATCH_BYTES = 8 * 1024 * 1024;
/** While the store's thread works on one, the next is there already. */
const MAX_IN_FLIGHT = 2;
/** More without an answer means callers that do not wait for theirs, or an engine that has stalled. */
const OPEN_BYTES = 256 * 1024 * 1024;
const OPEN_WRITES = 100_000;

/**
 * Puts writes into batches for the store's thread, which does each batch in one transaction with one fsync. The writes of a turn
 * of the event loop are sent at its end; while two batches are in flight, all that comes waits and goes together.
 */
export class WriteQueue {
  readonly #writer: BatchWriter;
  readonly #onChange: (change: StoreChange) => void;
  /** Only the last one may have room. */
  readonly #waiting: Batch[] = [];
  #isSendDue = false;
  #inFlight = 0;
  /** Writes and their bytes that are not answered yet, those that wait included. */
  readonly #open = { writes: 0, bytes: 0 };
  #idle: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
  #closed = false;

  /** @param onChange is given what committed writes did besides */
  constructor(writer: BatchWriter, onChange: (change: StoreChange) => void) {
    this.#writer = writer;
    this.#onChange = onChange;
  }

  /** Resolves once it is committed; rejects with why it was not. */
  append(write: PendingWrite): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new EvregError("unavailable", "The store is closed."));
      if (this.#open.writes >= OPEN_WRITES || this.#open.bytes >= OPEN_BYTES) {
        return reject(
          new EvregError("unavailable", "More is being written than the data folder takes; try again later."),
        );
      }
      const bytes = this.#batchWithRoom().add(write, { resolve, reject });
      this.#open.writes += 1;
      this.#open.bytes += bytes;
      this.#sendAtTurnEnd();
    });
  }

  /** Takes no more; resolves when nothing waits and nothing is in flight. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#open.writes === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  #batchWithRoom(): Batch {
    const last = this.#waiting.at(-1);
    if (last?.isFull === false) return last;
    const next = new Batch();
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
    let settle: () => void;
    try {
      const reply = await this.#writer.write(batch.message());
      for (const change of reply.changes) this.#onChange(change);
      settle = () => batch.answer(reply);
    } catch (error) {
      settle = () => batch.fail(error);
    }
    this.#inFlight -= 1;
    // Before the callers get their answers, so that the store's thread has something to do meanwhile.
    this.#send();
    settle();
    this.#open.writes -= batch.writes;
    this.#open.bytes -= batch.length;
    if (this.#open.writes === 0) this.#idle?.resolve();
  }
}

/** Writes that are sent together. */
class Batch {
  readonly #groups = new Map<string, Group>();
  readonly #bytes = new ByteWriter();
  #rows = 0;
  writes = 0;

  get length(): number {
    return this.#bytes.length;
  }

  get isFull(): boolean {
    return this.#rows >= BATCH_ROWS || this.length >= BATCH_BYTES;
  }

  /** Returns how many bytes go with it. */
  add({ operation, isJoined, rows, call }: PendingWrite, caller: Omit<Waiting, "call">): number {
    const before = this.length;
    const group = this.#groups.get(operation) ?? { isJoined, waiting: [] };
    this.#groups.set(operation, group);
    group.waiting.push({ call: call(this.#bytes), ...caller });
    this.#rows += rows;
    this.writes += 1;
    return this.length - before;
  }

  message(): WriteBatch {
    const groups = [...this.#groups].map(([operation, { isJoined, waiting }]) => {
      const calls = waiting.map(({ call }) => call);
      return { operation, calls: isJoined ? JSON.stringify(calls) : calls };
    });
    return { groups, writes: this.writes, bytes: this.#bytes.pack() };
  }

  answer({ outcomes, bytes }: WriteReply): void {
    for (const [index, { waiting }] of [...this.#groups.values()].entries()) {
      const answers = answersOf(outcomes[index]!);
      for (const [place, { resolve, reject }] of waiting.entries()) {
        const answer = answers[place]!;
        if ("error" in answer) reject(fromWireError(answer.error));
        else resolve({ value: answer.ok, bytes });
      }
    }
  }

  fail(error: unknown): void {
    for (const { waiting } of this.#groups.values()) for (const { reject } of waiting) reject(error);
  }
}

function answersOf(outcome: GroupOutcome): readonly WireOutcome[] {
  if ("outcomes" in outcome) return outcome.outcomes;
  const { answers } = outcome;
  const all = typeof answers === "string" ? (JSON.parse(answers) as readonly unknown[]) : answers;
  return all.map((ok) => ({ ok }));
}
