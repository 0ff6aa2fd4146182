import type { Vault } from "../secret-cipher.ts";
import type { StoreChange } from "../store.ts";
import type { Sql } from "./sql.ts";

// What the store can do is a list of operations (`operations.ts`). Each is one definition: the store's thread runs it, and the
// main thread's side is made from its type and its traits.

/** What operations work with in the store's thread: the connection, and what comes and goes with a write batch or a read. */
export interface Work extends Sql {
  /** The bytes that came with the write batch. */
  readonly bytes: Uint8Array;
  /** The memory of what goes with an answer, which need not be copied. */
  readonly transfer: Set<ArrayBuffer>;
  readonly damaged: number[];
  /** What opens and seals secrets. */
  readonly vault: Vault;
  /** Whether this process sends the deliveries of the subscription, where several have the data open. */
  readonly owns: (subscription: number) => boolean;
  /** What was done besides what was asked; it goes with the answer once that is committed. */
  readonly changes: StoreChange[];
}

/** What goes with the answers besides them. */
export type Taken = Pick<Work, "transfer" | "damaged" | "changes">;

/** Makes the work of one write batch, or of one read. */
export function workOn<S extends Sql>(
  sql: S,
  vault: Vault,
  bytes?: ArrayBuffer,
  owns: Work["owns"] = () => true,
): Omit<Work, keyof Sql> & Pick<S, keyof Sql> {
  const taken: Taken = { transfer: new Set(), damaged: [], changes: [] };
  return { ...sql, vault, owns, bytes: new Uint8Array(bytes ?? new ArrayBuffer()), ...taken };
}

/**
 * When a transaction is on the disk: before `write` resolves, or with the next one that is `now`, or the next checkpoint.
 * After a power cut the file holds all transactions up to some point, and none of the later ones. Without `later`, a delivery to a slow
 * handler takes a tenth more processor time.
 */
export type Durable = "now" | "later";

export interface ReadOperation<A extends readonly unknown[] = readonly unknown[], R = unknown> {
  readonly kind: "read";
  /** Whether the read may look at many rows. Short reads then go before it. */
  readonly isLong: boolean;
  run(work: Work, ...args: A): Promise<R> | R;
}

export interface WriteOperation<A extends readonly unknown[] = readonly unknown[], R = unknown> {
  readonly kind: "write";
  /** About how many rows a call writes. */
  readonly rows: number;
  /**
   * When a write must be on the disk. It is `later` for writes that a power cut may undo: they give nothing an id, and what was
   * claimed is due again after any end.
   */
  readonly durable: Durable;
  /** Whether it changes what all who have the data open keep in memory: it is answered once they know, see `StoreNode.version`. */
  readonly isKept: boolean;
  /** Does all calls of a batch. */
  run(work: Work, calls: readonly A[]): Promise<readonly R[]>;
}

/** The operations by the parts of the store. */
export type Operations = Readonly<Record<string, Readonly<Record<string, ReadOperation | WriteOperation>>>>;

/**
 * What the main thread has to know of the operations. It comes from the thread that writes: whoever imported the operations would
 * load the engine as well.
 */
export type OperationTraits = Pick<ReadOperation, "kind"> | Pick<WriteOperation, "kind" | "rows" | "isKept">;
export type OperationsTraits = Readonly<Record<string, Readonly<Record<string, OperationTraits>>>>;

/** What one call of a long read answers: other reads get their turn before the next, and the log is free to restart. */
export interface ReadPart<T, Q> {
  readonly items: readonly T[];
  /** What is to be asked for the rest; absent where there is none. */
  readonly rest?: Q;
}

export function read<A extends readonly unknown[], R>(
  run: (work: Work, ...args: A) => Promise<R> | R,
): ReadOperation<A, R> {
  return { kind: "read", isLong: false, run };
}

/** A read that may look at many rows: a list, a count or a search. */
export function longRead<A extends readonly unknown[], R>(
  run: (work: Work, ...args: A) => Promise<R>,
): ReadOperation<A, R> {
  return { kind: "read", isLong: true, run };
}

const USUAL = { kind: "write", rows: 1, durable: "now", isKept: false } as const;

type WriteOptions = Partial<Pick<WriteOperation, "rows" | "durable">>;

/** A write whose calls are done one by one. */
export function write<A extends readonly unknown[], R>(
  run: (work: Work, ...args: A) => Promise<R>,
  options: WriteOptions = {},
): WriteOperation<A, R> {
  return { ...USUAL, ...options, run: (work, calls) => each(calls, (args) => run(work, ...args)) };
}

/** A call removes so many rows of what is too old, or an event with all its rows; each row takes some five microseconds. */
export const MAX_REMOVED_ROWS = 400;

/** Does one after the other. */
export async function each<C, R>(calls: readonly C[], run: (call: C) => Promise<R>): Promise<readonly R[]> {
  const answers: R[] = [];
  for (const call of calls) answers.push(await run(call));
  return answers;
}

/** Answers the first rows whose sum is within the limit, and at least one, with those behind that add nothing. */
export function firstWithin<T>(rows: readonly T[], amountOf: (row: T) => number, max: number): readonly T[] {
  let sum = 0;
  for (const [index, row] of rows.entries()) {
    const amount = amountOf(row);
    sum += amount;
    if (index > 0 && amount > 0 && sum > max) return rows.slice(0, index);
  }
  return rows;
}

/** A write whose calls, of one argument each, are done together. */
export function joined<C, R>(
  run: (work: Work, calls: readonly C[]) => Promise<readonly R[]>,
): WriteOperation<readonly [C], R> {
  return {
    ...USUAL,
    run: (work, calls) =>
      run(
        work,
        calls.map(([call]) => call),
      ),
  };
}

/** A write that changes what all who have the data open keep in memory. */
export function kept<A extends readonly unknown[], R>(operation: WriteOperation<A, R>): WriteOperation<A, R> {
  return { ...operation, isKept: true };
}

/** What the log is to say of data that were opened. */
export interface Notice {
  readonly level: "info" | "warn";
  readonly details: object;
  readonly message: string;
}
