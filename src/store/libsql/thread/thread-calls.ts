import type { Operations, ReadOperation, WriteOperation } from "./operation.ts";
import type { ByteWriter } from "./protocol.ts";
import type { ThreadReply } from "./store-threads.ts";
import type { WorkerSupervisor } from "./supervisor.ts";
import type { WriteQueue } from "./write-queue.ts";

/** An operation as the main thread asks for it; the answer comes with the bytes that it refers to. */
type Ask<T> =
  T extends ReadOperation<infer A, infer R>
    ? (...args: A) => Promise<ThreadReply<R>>
    : T extends WriteOperation<infer C, infer R>
      ? C extends readonly unknown[]
        ? (...args: C) => Promise<ThreadReply<R>>
        : JoinedAsk<C, R>
      : never;

/**
 * A write of which all calls in a batch are done together.
 * @param rows about how many it writes
 * @param call makes the call; what is added to the bytes goes with it
 */
type JoinedAsk<C, R> = (rows: number, call: (bytes: ByteWriter) => C) => Promise<ThreadReply<R>>;

/** An operation that answers the value alone. */
type ValueMethod<F> = F extends (...args: infer A) => Promise<ThreadReply<infer R>>
  ? (...args: A) => Promise<R>
  : never;

type ThreadMethods<O extends Operations> = {
  readonly [P in keyof O]: { readonly [M in keyof O[P]]: ValueMethod<Ask<O[P][M]>> };
};

/** The main thread's side of the operations, by the parts of the store. */
export interface ThreadCalls<O extends Operations> {
  readonly replies: { readonly [P in keyof O]: { readonly [M in keyof O[P]]: Ask<O[P][M]> } };
  readonly methods: ThreadMethods<O>;
}

type AnyAsk = (...args: readonly unknown[]) => Promise<ThreadReply>;

/** Makes the main thread's side of operations. */
export function threadCalls<O extends Operations>(
  all: O,
  supervisor: WorkerSupervisor,
  queue: WriteQueue,
): ThreadCalls<O> {
  const replies: Record<string, Record<string, AnyAsk>> = {};
  const methods: Record<string, Record<string, (...args: readonly unknown[]) => Promise<unknown>>> = {};
  for (const [part, operations] of Object.entries(all)) {
    const own = Object.entries(operations).map(
      ([name, one]) => [name, askFor(`${part}.${name}`, one, supervisor, queue)] as const,
    );
    replies[part] = Object.fromEntries(own);
    methods[part] = Object.fromEntries(
      own.map(([name, ask]) => [name, async (...args: readonly unknown[]) => (await ask(...args)).value]),
    );
  }
  return { replies, methods } as ThreadCalls<O>;
}

function askFor(
  operation: string,
  traits: ReadOperation | WriteOperation,
  supervisor: WorkerSupervisor,
  queue: WriteQueue,
): AnyAsk {
  if (traits.kind === "read") return (...args) => supervisor.read(operation, args);
  if (traits.isJoined) {
    return (rows, call) =>
      queue.append({ operation, rows: rows as number, call: call as (bytes: ByteWriter) => unknown });
  }
  return (...args) => {
    // What is left out at the end is cut off, as JSON would make `null` of it.
    const call = args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
    return queue.append({ operation, rows: traits.rows, call: () => call });
  };
}
