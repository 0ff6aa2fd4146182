import type { StoreChange } from "../store.ts";
import { OPERATIONS } from "./operations.ts";
import { type Connection, inSavepoint } from "./thread/connection.ts";
import type { Operation, Operations, ReadOperation, Work, WriteOperation } from "./thread/operation.ts";
import {
  ByteWriter,
  type GroupOutcome,
  type OperationTraits,
  toWireError,
  type ToWorker,
  type WireOutcome,
  type WriteBatch,
  type WriteGroup,
} from "./thread/protocol.ts";
import { EngineFailure, type Sql } from "./thread/sql.ts";

const BY_NAME: ReadonlyMap<string, Operation> = named(OPERATIONS);

function named(parts: Operations): ReadonlyMap<string, Operation> {
  const all = Object.entries(parts).flatMap(([part, operations]) =>
    Object.entries(operations).map(([name, operation]) => [`${part}.${name}`, operation] as const),
  );
  return new Map(all);
}

/** What the main thread's side is made from. */
export function operationTraits(): Readonly<Record<string, OperationTraits>> {
  return Object.fromEntries(
    [...BY_NAME].map(([name, operation]): [string, OperationTraits] => {
      if (operation.kind === "read") return [name, { kind: "read" }];
      const { kind, rows, durable, isJoined } = operation;
      return [name, { kind, rows, durable, isJoined }];
    }),
  );
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

/** All writes of one operation in a batch. */
interface Group {
  readonly operation: WriteOperation;
  readonly calls: readonly unknown[];
  /** Of each call, once they are done. */
  outcomes: readonly WireOutcome[] | undefined;
}

interface Committed {
  /** Of the batch's groups, in their order. */
  readonly outcomes: readonly GroupOutcome[];
  readonly changes: readonly StoreChange[];
  readonly bytes: ArrayBuffer | undefined;
}

/**
 * Does all writes of a batch in one transaction. Returns once it is committed, and durable unless none has to be. A write
 * that fails is undone and answered by itself; the others go on.
 * @param key what secrets are encrypted with, where they are
 * @throws EngineFailure when the transaction as a whole failed
 */
export function commitBatch(connection: Connection, batch: WriteBatch, key?: Uint8Array): Committed {
  const out = new ByteWriter();
  const changes: StoreChange[] = [];
  const bytes = batch.bytes === undefined ? new Uint8Array(1) : new Uint8Array(batch.bytes);
  const work: Work = { sql: connection.read, bytes, out, key, changes };
  const groups = batch.groups.map(groupOf);
  const durable = groups.every(({ operation }) => operation.durable === "later") ? "later" : "now";
  const [only] = groups;
  if (only !== undefined && groups.length === 1) {
    // It needs no savepoint, for which the engine would copy every page that changes.
    only.outcomes = tryAll(only, only.calls, work, (run) => connection.write(run, durable));
  }
  const rest = groups.filter(({ outcomes }) => outcomes === undefined);
  if (rest.length > 0) {
    // Published events and results come first, so that a claim in the same transaction sees them.
    const ordered = rest.toSorted((a, b) => Number(b.operation.isJoined) - Number(a.operation.isJoined));
    connection.write(() => {
      for (const group of ordered) group.outcomes = runInSavepoints(group, work);
    }, durable);
  }
  return { outcomes: groups.map(outcomeOf), changes, bytes: out.pack() };
}

function groupOf({ operation, calls }: WriteGroup): Group {
  const list = typeof calls === "string" ? (JSON.parse(calls) as readonly unknown[]) : calls;
  return { operation: writeOf(operation), calls: list, outcomes: undefined };
}

/** Together, or one by one where that fails. */
function runInSavepoints(group: Group, work: Work): readonly WireOutcome[] {
  const attempt = (calls: readonly unknown[]): readonly WireOutcome[] | undefined =>
    tryAll(group, calls, work, (run) => inSavepoint(work.sql, run));
  return attempt(group.calls) ?? group.calls.flatMap((call) => attempt([call]) ?? []);
}

/**
 * @param within runs it, and undoes what it did when it throws
 * @returns `undefined` when several writes failed together, so that nothing says which of them is at fault
 */
function tryAll(
  { operation }: Group,
  calls: readonly unknown[],
  work: Work,
  within: (run: () => readonly unknown[]) => readonly unknown[],
): readonly WireOutcome[] | undefined {
  const changesBefore = work.changes.length;
  try {
    return within(() => operation.run(work, calls)).map((ok) => ({ ok }));
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    work.changes.length = changesBefore;
    return calls.length === 1 ? [{ error: toWireError(error) }] : undefined;
  }
}

function outcomeOf({ operation, outcomes = [] }: Group): GroupOutcome {
  const answers = outcomes.flatMap((outcome) => ("ok" in outcome ? [outcome.ok] : []));
  if (answers.length < outcomes.length) return { outcomes };
  return { answers: operation.isJoined ? JSON.stringify(answers) : answers };
}

/**
 * @param out takes the bytes that go with the answer
 * @param key what secrets are encrypted with, where they are
 */
export function runRead(
  sql: Sql,
  { operation, args }: Pick<ToWorker & { readonly kind: "read" }, "operation" | "args">,
  out = new ByteWriter(),
  key?: Uint8Array,
): unknown {
  return readOf(operation).run({ sql, bytes: new Uint8Array(1), out, key, changes: [] }, ...args);
}
