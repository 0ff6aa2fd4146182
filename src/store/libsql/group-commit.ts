import { OPERATIONS } from "./operations.ts";
import { inSavepoint, type ReadConnection, type WriteConnection } from "./thread/connection.ts";
import type { Operations, ReadOperation, Work, WriteOperation } from "./thread/operation.ts";
import {
  type Committed,
  type NamedCall,
  type ThreadAnswer,
  toWireError,
  type WireOutcome,
  type WriteBatch,
  type WriteCall,
} from "./thread/protocol.ts";
import { EngineFailure } from "./thread/sql.ts";

const BY_NAME: ReadonlyMap<string, ReadOperation | WriteOperation> = new Map(
  Object.entries(OPERATIONS as Operations).flatMap(([part, operations]) =>
    Object.entries(operations).map(([name, operation]) => [`${part}.${name}`, operation] as const),
  ),
);

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

export function runRead(
  connection: ReadConnection | WriteConnection,
  { operation, args }: NamedCall,
): ThreadAnswer {
  return connection.answer((work) => {
    const value = readOf(operation).run(work, ...args);
    return { value, transfer: work.transfer, damaged: work.damaged };
  });
}

/**
 * Does all writes of a batch in one transaction. Returns once it is committed, and durable unless none has to be. A write
 * that fails is undone and answered by itself; the others are done.
 * @throws EngineFailure when the transaction as a whole failed
 */
export function commitBatch(connection: WriteConnection, batch: WriteBatch): CommittedBatch {
  const calls = JSON.parse(batch.calls) as readonly WriteCall[];
  const durable = calls.some(([name]) => writeOf(name).durable === "now") ? "now" : "later";
  const startedMs = performance.now();
  const commit = (run: (work: Work) => readonly WireOutcome[]): CommittedBatch => {
    const [work, outcomes] = connection.write((all) => [all, run(all)] as const, durable, batch.bytes);
    const tookMs = performance.now() - startedMs;
    return { outcomes, work, commit: { ...connection.lastCommit, writes: calls.length, tookMs } };
  };
  try {
    return commit((work) => runTogether(work, calls));
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    if (calls.length === 1)
      return { outcomes: [{ error: toWireError(error) }], work: connection.task(), commit: undefined };
  }
  // All of it was undone, and nothing says which call is at fault. So each is done in a savepoint, for which the engine copies
  // every page that changes.
  return commit((work) => calls.map((call) => runAlone(work, call)));
}

interface CommittedBatch extends Pick<Committed, "commit"> {
  /** What came of each call, in order. */
  readonly outcomes: readonly WireOutcome[];
  /** What goes with the answer. */
  readonly work: Work;
}

/** Does the calls, those of one operation together. */
function runTogether(work: Work, calls: readonly WriteCall[]): readonly WireOutcome[] {
  const outcomes: WireOutcome[] = [];
  for (const [name, places] of Map.groupBy(calls.keys(), (place) => calls[place]![0])) {
    const own = places.map((place) => calls[place]![1]);
    for (const [index, ok] of writeOf(name).run(work, own).entries()) outcomes[places[index]!] = { ok };
  }
  return outcomes;
}

function runAlone(work: Work, call: WriteCall): WireOutcome {
  const changesBefore = work.changes.length;
  try {
    return inSavepoint(work, () => runTogether(work, [call]))[0]!;
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    work.changes.length = changesBefore;
    return { error: toWireError(error) };
  }
}
