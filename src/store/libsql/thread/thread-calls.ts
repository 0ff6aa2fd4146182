import type { AnswerOf, CallOf, Named, OperationName, Operations } from "./operation.ts";
import type { ByteWriter, OperationTraits } from "./protocol.ts";
import type { WorkerSupervisor } from "./supervisor.ts";
import type { Reply } from "./store-threads.ts";
import type { WriteQueue } from "./write-queue.ts";

/** Operations as methods that answer values, by the parts of the store. */
export type Methods<O extends Operations> = {
  readonly [P in keyof O]: { readonly [M in keyof O[P]]: Method<O[P][M]> };
};

type Method<T> =
  CallOf<T> extends infer A extends readonly unknown[] ? (...args: A) => Promise<AnswerOf<T>> : never;

/** The main thread's side of the operations: asks the store's thread for each by its name. */
export class ThreadCalls<O extends Operations> {
  readonly #traits: Readonly<Record<string, OperationTraits>>;
  readonly #supervisor: WorkerSupervisor;
  readonly #queue: WriteQueue;
  readonly methods: Methods<O>;

  /** @param traits of all operations, as the store's thread reports them when it has opened the file */
  constructor(
    traits: Readonly<Record<string, OperationTraits>>,
    supervisor: WorkerSupervisor,
    queue: WriteQueue,
  ) {
    this.#traits = traits;
    this.#supervisor = supervisor;
    this.#queue = queue;
    const parts: Record<string, Record<string, (...args: readonly unknown[]) => Promise<unknown>>> = {};
    for (const operation of Object.keys(traits)) {
      const [part = "", name = ""] = operation.split(".");
      const own = (parts[part] ??= {});
      own[name] = async (...args) => (await this.#ask(operation, args)).value;
    }
    this.methods = parts as Methods<O>;
  }

  /** The answer with the bytes that it refers to. */
  ask<N extends OperationName<O>>(
    operation: N,
    ...args: CallOf<Named<O, N>> & readonly unknown[]
  ): Promise<Reply<AnswerOf<Named<O, N>>>> {
    return this.#ask(operation, args) as Promise<Reply<AnswerOf<Named<O, N>>>>;
  }

  /**
   * A write of which all calls in a batch are done together.
   * @param rows about how many it writes
   * @param call makes the call; what is added to the bytes goes with it
   */
  async join<N extends OperationName<O>>(
    operation: N,
    rows: number,
    call: (bytes: ByteWriter) => CallOf<Named<O, N>>,
  ): Promise<AnswerOf<Named<O, N>>> {
    const { value } = await this.#queue.append({ operation, rows, call });
    return value as AnswerOf<Named<O, N>>;
  }

  #ask(operation: string, args: readonly unknown[]): Promise<Reply> {
    const traits = this.#traits[operation];
    if (traits?.kind !== "write") return this.#supervisor.read(operation, args);
    // JSON would make `null` of what is left out.
    const call = args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
    return this.#queue.append({ operation, rows: traits.rows, call: () => call });
  }
}
