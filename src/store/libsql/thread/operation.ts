import type { StoreChange } from "../../store.ts";
import type { ByteWriter, WriteTraits } from "./protocol.ts";
import type { Sql } from "./sql.ts";

// What the store can do is a list of operations (`operations.ts`). Each is one definition: the store's thread runs it, and the
// main thread's side is made from its type and its traits.

/** What an operation works with in the store's thread. */
export interface Work {
  readonly sql: Sql;
  /** The bytes that came with the write batch. Never empty, as the driver binds an empty BLOB as NULL. */
  readonly bytes: Uint8Array;
  /** Takes the bytes that go with the answer. */
  readonly out: ByteWriter;
  /** What the file's secrets are encrypted with, where they are. */
  readonly key: Uint8Array | undefined;
  /** What was done besides what was asked; it goes with the answer once that is committed. */
  readonly changes: StoreChange[];
}

export interface ReadOperation<A extends readonly unknown[] = readonly unknown[], R = unknown> {
  readonly kind: "read";
  /** Whether the read may look at many rows. Short reads then go before it. */
  readonly isLong: boolean;
  run(work: Work, ...args: A): R;
}

export interface WriteOperation<C = unknown, R = unknown> extends WriteTraits {
  /** Does the calls, and answers each of them, in order. */
  run(work: Work, calls: readonly C[]): readonly R[];
}

export type StoreOperation = ReadOperation | WriteOperation;

type WriteOptions = Partial<Pick<WriteTraits, "rows" | "durable">>;

/** A read by the connection alone. */
export function read<A extends readonly unknown[], R>(run: (sql: Sql, ...args: A) => R): ReadOperation<A, R> {
  return readWith(({ sql }, ...args) => run(sql, ...args));
}

/** A read that may look at many rows: a list, a count or a search. */
export function longRead<A extends readonly unknown[], R>(
  run: (sql: Sql, ...args: A) => R,
): ReadOperation<A, R> {
  return { ...read(run), isLong: true };
}

export function readWith<A extends readonly unknown[], R>(
  run: (work: Work, ...args: A) => R,
  isLong = false,
): ReadOperation<A, R> {
  return { kind: "read", isLong, run };
}

/** A write by the connection alone; its calls are done one by one. */
export function write<A extends readonly unknown[], R>(
  run: (sql: Sql, ...args: A) => R,
  options: WriteOptions = {},
): WriteOperation<A, R> {
  return writeWith(({ sql }, ...args) => run(sql, ...args), options);
}

export function writeWith<A extends readonly unknown[], R>(
  run: (work: Work, ...args: A) => R,
  options: WriteOptions = {},
): WriteOperation<A, R> {
  const traits = { kind: "write", rows: 1, durable: "now", isJoined: false } as const;
  return { ...traits, ...options, run: (work, calls) => calls.map((args) => run(work, ...args)) };
}

/** A write of the connection alone that also says what else it did. */
export function reporting<A extends readonly unknown[], R>(
  run: (sql: Sql, ...args: A) => ReportedAnswer<R>,
): WriteOperation<A, R> {
  return writeWith((work, ...args) => report(work, run(work.sql, ...args)));
}

/** An answer, and what else was done. */
export type ReportedAnswer<R> = StoreChange & { readonly answer: R };

export function report<R>({ changes }: Work, { answer, ...change }: ReportedAnswer<R>): R {
  changes.push(change);
  return answer;
}

/** A write of which all calls in a batch are done together, and rows are counted by whoever asks. */
export function joined<C, R>(run: (work: Work, calls: readonly C[]) => readonly R[]): WriteOperation<C, R> {
  return { kind: "write", rows: 1, durable: "now", isJoined: true, run };
}

/** The operations by the parts of the store. */
export type Operations = Readonly<Record<string, Readonly<Record<string, StoreOperation>>>>;
