import type {
  Operations,
  OperationsTraits,
  OperationTraits,
  ReadOperation,
  WriteOperation,
} from "./operation.ts";
import type { ByteWriter } from "./protocol.ts";
import type { WorkerSupervisor } from "./supervisor.ts";
import type { WriteQueue, WriteReply } from "./write-queue.ts";

/** An operation as the main thread asks for it. */
type Ask<T> =
  T extends ReadOperation<infer A, infer R>
    ? (...args: A) => Promise<R>
    : T extends WriteOperation<infer C, infer R>
      ? C extends readonly unknown[]
        ? (...args: C) => Promise<R>
        : JoinedAsk<C, R>
      : never;

/**
 * A write of which all calls in a batch are done together.
 * @param rows about how many it writes
 * @param call makes the call; what is added to the bytes goes with it
 */
type JoinedAsk<C, R> = (rows: number, call: (bytes: ByteWriter) => C) => Promise<WriteReply<R>>;

/** The main thread's side of the operations, by the parts of the store. */
export type ThreadCalls<O extends Operations> = {
  readonly [P in keyof O]: { readonly [M in keyof O[P]]: Ask<O[P][M]> };
};

type AnyAsk = (...args: readonly unknown[]) => Promise<unknown>;

export function threadCalls<O extends Operations>(
  parts: OperationsTraits,
  supervisor: WorkerSupervisor,
  queue: WriteQueue,
): ThreadCalls<O> {
  const calls = Object.entries(parts).map(([part, operations]) => {
    const own = Object.entries(operations).map(
      ([name, one]) => [name, askFor(`${part}.${name}`, one, supervisor, queue)] as const,
    );
    return [part, Object.fromEntries(own)] as const;
  });
  return Object.fromEntries(calls) as ThreadCalls<O>;
}

function askFor(
  operation: string,
  traits: OperationTraits,
  supervisor: WorkerSupervisor,
  queue: WriteQueue,
): AnyAsk {
  if (traits.kind === "read") return (...args) => supervisor.read(operation, args);
  if (traits.isJoined) {
    const ask: JoinedAsk<unknown, unknown> = (rows, call) => queue.append({ operation, rows, call });
    return ask as AnyAsk;
  }
  const { rows } = traits;
  return async (...args) => {
    // What is left out at the end is cut off, as JSON would make `null` of it.
    const call = args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
    return (await queue.append({ operation, rows, call: () => call })).value;
  };
}
