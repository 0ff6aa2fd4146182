import type { StoreChange } from "../store.ts";
import { OPERATIONS } from "./operations.ts";
import { type WriteConnection, inSavepoint } from "./thread/connection.ts";
import type { StoreOperation, Operations, ReadOperation, Work, WriteOperation } from "./thread/operation.ts";
import {
  ByteWriter,
  type OperationsTraits,
  type ReadCall,
  toWireError,
  type WireOutcome,
  type WriteBatch,
  type WriteCall,
} from "./thread/protocol.ts";
import { EngineFailure, type Sql } from "./thread/sql.ts";

const BY_NAME: ReadonlyMap<string, StoreOperation> = new Map(
  Object.entries(OPERATIONS as Operations).flatMap(([part, operations]) =>
    Object.entries(operations).map(([name, operation]) => [`${part}.${name}`, operation] as const),
  ),
);

/** Answers what the main thread's side is made from: all of each operation but what runs here. */
export function operationTraits(): OperationsTraits {
  return JSON.parse(JSON.stringify(OPERATIONS)) as OperationsTraits;
}

function writeOf(name: string): WriteOperation {
  const operation = BY_NAME.get(name);
  if (operation?.kind !== "write") throw new Error(`the store has no write ${name}`);
  return operation;
}

export function readOf(name: string): ReadOperation {
  const operation = BY_NAME.get(name);
  if (operation?.kind !== "read") throw new Error(`the store has no read ${name}`);
  return operation;
}

/** What came of a batch. */
interface CommittedBatch {
  /** What came of each call, in order. */
  readonly outcomes: readonly WireOutcome[];
  readonly changes: readonly StoreChange[];
  readonly bytes: ArrayBuffer | undefined;
}

/**
 * Does all writes of a batch in one transaction. Returns once it is committed, and durable unless none has to be. A write
 * that fails is undone and answered by itself; the others are done.
 * @param key what secrets are encrypted with, where they are
 * @throws EngineFailure when the transaction as a whole failed
 */
export function commitBatch(
  connection: WriteConnection,
  batch: WriteBatch,
  key?: Uint8Array,
): CommittedBatch {
  const calls = JSON.parse(batch.calls) as readonly WriteCall[];
  const bytes = batch.bytes === undefined ? NO_BYTES : new Uint8Array(batch.bytes);
  const isUrgent = calls.some(([name]) => writeOf(name).durable === "now");
  const commit = (run: (work: Work) => readonly WireOutcome[]): CommittedBatch => {
    const [changes, out]: [StoreChange[], ByteWriter] = [[], new ByteWriter()];
    const work: Work = { sql: connection.read, bytes, out, key, changes };
    const outcomes = connection.write(() => run(work), isUrgent ? "now" : "later");
    return { outcomes, changes, bytes: out.pack() };
  };
  try {
    return commit((work) => byOperation(calls, (name, own) => runTogether(work, name, own)));
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    if (calls.length === 1)
      return { outcomes: [{ error: toWireError(error) }], changes: [], bytes: undefined };
  }
  // All of it was undone, and nothing says which call is at fault. So that is found out in savepoints, for which the engine
  // copies every page that changes.
  return commit((work) => byOperation(calls, (name, own) => runGuarded(work, name, own)));
}

/** Stands for no bytes; it is not empty, as the driver binds an empty BLOB as NULL. */
const NO_BYTES = new Uint8Array(1);

/**
 * @param run does all calls of one operation
 * @returns what came of each call, in order
 */
function byOperation(
  calls: readonly WriteCall[],
  run: (name: string, own: readonly unknown[]) => readonly WireOutcome[],
): readonly WireOutcome[] {
  const outcomes: WireOutcome[] = [];
  const places = Map.groupBy(calls.keys(), (place) => calls[place]![0]);
  for (const [name, own] of places) {
    const answers = run(
      name,
      own.map((place) => calls[place]![1]),
    );
    for (const [index, place] of own.entries()) outcomes[place] = answers[index]!;
  }
  return outcomes;
}

function runTogether(work: Work, name: string, calls: readonly unknown[]): readonly WireOutcome[] {
  return writeOf(name)
    .run(work, calls)
    .map((ok) => ({ ok }));
}

/** Does calls of one operation together and, where that fails, one by one. */
function runGuarded(work: Work, name: string, calls: readonly unknown[]): readonly WireOutcome[] {
  const changesBefore = work.changes.length;
  try {
    return inSavepoint(work.sql, () => runTogether(work, name, calls));
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    work.changes.length = changesBefore;
    if (calls.length === 1) return [{ error: toWireError(error) }];
    return calls.flatMap((call) => runGuarded(work, name, [call]));
  }
}

/**
 * @param out takes the bytes that go with the answer
 * @param key what secrets are encrypted with, where they are
 */
export function runRead(
  sql: Sql,
  { operation, args }: ReadCall,
  out = new ByteWriter(),
  key?: Uint8Array,
): unknown {
  return readOf(operation).run({ sql, bytes: NO_BYTES, out, key, changes: [] }, ...args);
}
