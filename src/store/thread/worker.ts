import { type MessagePort, parentPort, receiveMessageOnPort } from "node:worker_threads";
import { messageOf } from "../../domain/error.ts";
import { systemClock } from "../../runtime/clock.ts";
import { compactHeap, onIdle, threadCpuMs } from "../../runtime/heap.ts";
import {
  type Durable,
  each,
  type Operations,
  type OperationsTraits,
  type ReadOperation,
  type Taken,
  type Work,
  type WriteOperation,
} from "../sql/operation.ts";
import { EngineFailure, type Sql } from "../sql/sql.ts";
import {
  type Committed,
  type FromThread,
  type NamedCall,
  type OpenReport,
  type ToThread,
  toWireError,
  type WireOutcome,
  type WriteBatch,
  type WriteCall,
} from "./protocol.ts";
import { parseText } from "../../json/parse.ts";

/** A connection that a thread of the store reads by. */
export interface ReaderConnection {
  /** Does a read that was asked for. */
  answer<T>(read: (work: Work) => Promise<T>): Promise<T>;
  /** Gives back the memory of its cache, where it has one. */
  shrink?(): void;
  /** Lets go of the data, whose files stay as they are after a failure. */
  close(failure: EngineFailure | undefined): Promise<void> | void;
}

/** A connection that also writes. */
export interface WriterConnection extends ReaderConnection {
  /** How long making the last transaction durable took. */
  readonly lastCommitMs: number;
  /**
   * Does `work` in one transaction. Resolves when it is committed: durable, unless it may be `later`. What `work` throws undoes
   * the transaction and is passed on; an engine's failure is an `EngineFailure`.
   * @param bytes what came with a write batch
   */
  write<T>(work: (work: Work) => Promise<T>, durable: Durable, bytes: ArrayBuffer | undefined): Promise<T>;
}

/** What an engine does in its threads. */
export interface StoreEngine {
  readonly operations: Operations;
  /** What a thread of its own can be asked for, by name. */
  readonly tasks: Readonly<Record<string, (...args: never[]) => unknown>>;
  openToWrite(setup: never): Promise<{ readonly connection: WriterConnection; readonly report: OpenReport }>;
  openToRead(setup: never): Promise<ReaderConnection> | ReaderConnection;
}

type AnyOperation = ReadOperation | WriteOperation;

/**
 * A thread of the store: it writes the data, or reads them beside the thread that writes, or does single tasks. It does one thing at
 * a time. A file is closed only when its thread ends, however that comes about (see `WriteConnection`).
 */
export class StoreWorker {
  readonly #engine: StoreEngine;
  readonly #byName: ReadonlyMap<string, AnyOperation>;
  readonly #port: MessagePort;
  #connection: ReaderConnection | undefined;
  #writer: WriterConnection | undefined;
  #isServing = false;
  /** After this, the connection might acknowledge writes that are never stored. */
  #failure: EngineFailure | undefined;
  readonly #requests: ToThread[] = [];
  /** Long reads, of which one at most goes before other requests, and the request to close, which comes last. */
  readonly #long: ToThread[] = [];

  constructor(engine: StoreEngine) {
    if (parentPort === null) throw new Error("this module runs as a worker thread");
    this.#port = parentPort;
    this.#engine = engine;
    this.#byName = new Map(
      Object.entries(engine.operations).flatMap(([part, operations]) =>
        Object.entries(operations).map(([name, operation]) => [`${part}.${name}`, operation] as const),
      ),
    );
  }

  start(): void {
    this.#port.on("message", (message: ToThread) => {
      this.#take(message);
      if (!this.#isServing) void this.#serve();
    });
    onIdle(systemClock, threadCpuMs, () => {
      this.#connection?.shrink?.();
      compactHeap();
    });
  }

  #take(message: ToThread): void {
    const isLong =
      message.kind === "close" ||
      (message.kind === "read" && this.#operation("read", message.ask.operation).isLong);
    (isLong ? this.#long : this.#requests).push(message);
  }

  async #serve(): Promise<void> {
    this.#isServing = true;
    for (;;) {
      // The messages that wait are taken without a turn of the event loop.
      for (let next = receiveMessageOnPort(this.#port); next; next = receiveMessageOnPort(this.#port)) {
        this.#take(next.message as ToThread);
      }
      const request = this.#requests.shift() ?? this.#long.shift();
      if (request === undefined) break;
      await this.#respond(request);
      if (request.kind === "close") return this.#port.close();
    }
    this.#isServing = false;
  }

  async #respond(request: ToThread): Promise<void> {
    let answered: ThreadAnswer = {};
    let outcome: WireOutcome;
    try {
      answered = await this.#answer(request);
      outcome = { ok: answered.value };
    } catch (error) {
      outcome = { error: toWireError(error) };
    }
    const { damaged = [], transfer = [] } = answered.work ?? {};
    this.#port.postMessage({ id: request.id, outcome, damaged } satisfies FromThread, [...transfer]);
  }

  async #answer({ kind, ask }: ToThread): Promise<ThreadAnswer> {
    switch (kind) {
      case "openToWrite": {
        const { connection, report } = await this.#engine.openToWrite(ask as never);
        this.#connection = this.#writer = connection;
        return { value: report };
      }
      case "openToRead":
        this.#connection = await this.#engine.openToRead(ask as never);
        return {};
      case "write":
        return await this.#write(ask);
      case "read":
        return await this.#read(ask);
      case "task":
        return { value: await this.#task(ask) };
      case "close":
        break;
    }
    await this.#connection?.close(this.#failure);
    return {};
  }

  async #write(batch: WriteBatch): Promise<ThreadAnswer> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#writer === undefined) throw new Error("this thread has nothing open to write");
    try {
      const { outcomes, work } = await this.#commitBatch(this.#writer, batch);
      const { lastCommitMs: commitMs } = this.#writer;
      return { value: { outcomes, changes: work.changes, commitMs } satisfies Committed, work };
    } catch (error) {
      const failure =
        error instanceof EngineFailure
          ? error
          : new EngineFailure("failed", messageOf(error), { cause: error });
      if (failure.isFatal) this.#failure = failure;
      throw failure;
    }
  }

  #task({ operation, args }: NamedCall): unknown {
    const task = this.#engine.tasks[operation] as (...all: readonly unknown[]) => unknown;
    return task(...args);
  }

  #operation<K extends AnyOperation["kind"]>(kind: K, name: string): Extract<AnyOperation, { kind: K }> {
    const operation = this.#byName.get(name);
    if (operation?.kind !== kind) throw new Error(`the store has no ${kind} ${name}`);
    return operation as Extract<AnyOperation, { kind: K }>;
  }

  async #read({ operation, args }: NamedCall): Promise<ThreadAnswer> {
    if (this.#connection === undefined) throw new Error("this thread has nothing open");
    return await this.#connection.answer(async (work) => {
      return { value: await this.#operation("read", operation).run(work, ...args), work };
    });
  }

  /**
   * Does all writes of a batch in one transaction. Returns once it is committed, and durable unless none has to be. A write
   * that fails is undone and answered by itself; the others are done.
   * @throws EngineFailure when the transaction as a whole failed
   */
  async #commitBatch(connection: WriterConnection, { calls: text, bytes }: WriteBatch): Promise<DoneBatch> {
    const calls = parseText(text) as readonly WriteCall[];
    const isDueNow = calls.some(([name]) => this.#operation("write", name).durable === "now");
    const commit = (run: (work: Work) => Promise<readonly WireOutcome[]>): Promise<DoneBatch> => {
      const done = async (work: Work): Promise<DoneBatch> => ({ outcomes: await run(work), work });
      return connection.write(done, isDueNow ? "now" : "later", bytes);
    };
    try {
      return await commit((work) => this.#runTogether(work, calls));
    } catch (error) {
      if (error instanceof EngineFailure) throw error;
    }
    // All of it was undone, and nothing says which call is at fault. So each is done in a savepoint, for which the engine copies
    // every page that changes.
    return await commit((work) => each(calls, (call) => this.#runAlone(work, call)));
  }

  /** Does the calls, those of one operation together. */
  async #runTogether(work: Work, calls: readonly WriteCall[]): Promise<readonly WireOutcome[]> {
    const outcomes: WireOutcome[] = [];
    for (const [name, places] of Map.groupBy(calls.keys(), (place) => calls[place]![0])) {
      const own = places.map((place) => calls[place]![1]);
      for (const [index, ok] of (await this.#operation("write", name).run(work, own)).entries())
        outcomes[places[index]!] = { ok };
    }
    return outcomes;
  }

  async #runAlone(work: Work, call: WriteCall): Promise<WireOutcome> {
    const changesBefore = work.changes.length;
    try {
      return (await inSavepoint(work, () => this.#runTogether(work, [call])))[0]!;
    } catch (error) {
      if (error instanceof EngineFailure) throw error;
      work.changes.length = changesBefore;
      return { error: toWireError(error) };
    }
  }
}

interface ThreadAnswer {
  readonly value?: unknown;
  readonly work?: Taken;
}

interface DoneBatch extends Pick<Committed, "outcomes"> {
  readonly work: Taken;
}

/** Undoes what `act` did inside an open transaction when it throws, and only that. */
async function inSavepoint<T>(sql: Sql, act: () => Promise<T>): Promise<T> {
  await sql.run("SAVEPOINT op");
  try {
    const result = await act();
    await sql.run("RELEASE op");
    return result;
  } catch (error) {
    if (!(error instanceof EngineFailure)) {
      await sql.run("ROLLBACK TO op");
      await sql.run("RELEASE op");
    }
    throw error;
  }
}

/** The traits of operations: JSON leaves out what runs. */
export function traitsOf(operations: Operations): OperationsTraits {
  return JSON.parse(JSON.stringify(operations)) as OperationsTraits;
}
