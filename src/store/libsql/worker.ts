import { type MessagePort, parentPort, receiveMessageOnPort } from "node:worker_threads";
import { messageOf } from "../../domain/error.ts";
import { systemClock } from "../../runtime/clock.ts";
import { compactHeap, onIdle, threadCpuMs } from "../../runtime/heap.ts";
import { ensureServiceActions } from "./catalog/actions.ts";
import { deleteExpiredSecrets } from "./catalog/credentials.ts";
import { countStoredEvents, isIndexWhole } from "./events/counts.ts";
import { loadLastNumbers } from "./events/timeline.ts";
import { dataIdentity } from "./files/id-reservation.ts";
import { openDataFile } from "./files/open-file.ts";
import { FILE_TASKS, OPERATIONS } from "./operations.ts";
import { releaseLeases } from "./queue/leases.ts";
import { moveWaitsAtStart } from "./queue/move-waits.ts";
import { inSavepoint, ReadConnection, WriteConnection } from "./thread/connection.ts";
import {
  each,
  type Operations,
  type OperationsTraits,
  type ReadOperation,
  type Work,
  type WriteOperation,
} from "./thread/operation.ts";
import {
  type Committed,
  type NamedCall,
  type Notice,
  type OpenReport,
  respond,
  type ThreadAnswer,
  type ToThread,
  toWireError,
  type WireOutcome,
  type WriteBatch,
  type WriteCall,
  type WriterSetup,
} from "./thread/protocol.ts";
import { EngineFailure } from "./thread/sql.ts";

/**
 * A thread of the store: it writes the data file, or reads it beside the thread that writes, or does single tasks on a file. It does
 * one thing at a time. A file is closed only when its thread ends, however that comes about (see `WriteConnection`).
 */
class StoreWorker {
  readonly #port: MessagePort;
  #connection: WriteConnection | ReadConnection | undefined;
  #isServing = false;
  /** After this, the connection might acknowledge writes that never reach the file. */
  #failure: EngineFailure | undefined;
  readonly #requests: ToThread[] = [];
  /** Long reads, of which one at most goes before other requests, and the request to close, which comes last. */
  readonly #long: ToThread[] = [];

  constructor(port: MessagePort) {
    this.#port = port;
  }

  start(): void {
    this.#port.on("message", (message: ToThread) => {
      this.#take(message);
      if (!this.#isServing) void this.#serve();
    });
    onIdle(systemClock, threadCpuMs, () => {
      this.#connection?.shrink();
      compactHeap();
    });
  }

  #take(message: ToThread): void {
    const isLong =
      message.kind === "close" || (message.kind === "read" && readOf(message.ask.operation).isLong);
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
      await respond(this.#port, request.id, () => this.#answer(request));
      if (request.kind === "close") return this.#port.close();
    }
    this.#isServing = false;
  }

  async #answer({ kind, ask }: ToThread): Promise<ThreadAnswer> {
    switch (kind) {
      case "openToWrite":
        return { value: await this.#open(ask) };
      case "openToRead":
        this.#connection = ReadConnection.open(ask);
        return {};
      case "write":
        return await this.#write(ask);
      case "read":
        return await runRead(this.#opened(), ask);
      case "task":
        return { value: await runTask(ask) };
      case "close":
        break;
    }
    // After a failure the files stay as they are.
    if (this.#failure !== undefined) return {};
    if (this.#connection instanceof WriteConnection) this.#connection.checkpointIfPossible();
    this.#connection?.close();
    return {};
  }

  #opened(): WriteConnection | ReadConnection {
    if (this.#connection === undefined) throw new Error("the data file is not open");
    return this.#connection;
  }

  async #open(setup: WriterSetup): Promise<OpenReport> {
    const { connection, notices } = await openDataFile(setup.path, setup.encryption);
    this.#connection = connection;
    return await prepare(connection, setup, notices);
  }

  async #write(batch: WriteBatch): Promise<ThreadAnswer> {
    if (this.#failure !== undefined) throw this.#failure;
    const connection = this.#opened();
    if (!(connection instanceof WriteConnection)) throw new Error("this thread only reads");
    try {
      const { outcomes, work, commit } = await commitBatch(connection, batch);
      const { changes, payloads, transfer, damaged } = work;
      const value: Committed = { outcomes: JSON.stringify(outcomes), payloads, changes, commit };
      return { value, transfer, damaged };
    } catch (error) {
      const failure =
        error instanceof EngineFailure
          ? error
          : new EngineFailure("failed", messageOf(error), { cause: error });
      if (failure.isFatal) this.#failure = failure;
      throw failure;
    }
  }
}

function runTask({ operation, args }: NamedCall): unknown {
  const task = FILE_TASKS[operation as keyof typeof FILE_TASKS] as (...all: readonly unknown[]) => unknown;
  return task(...args);
}

/** Brings what is in the file up to date. */
async function prepare(
  connection: WriteConnection,
  { nowMs }: WriterSetup,
  opened: readonly Notice[],
): Promise<OpenReport> {
  const notices = [...opened];
  await connection.write((sql) => ensureServiceActions(sql, nowMs));
  const setBack = await connection.write((sql) => moveWaitsAtStart(sql, nowMs));
  if (setBack !== undefined) {
    const message =
      "The clock is behind the latest time in the data file, and what waits was moved with it. Let a time service set the clock.";
    notices.push({ level: "warn", details: setBack, message });
  }
  await connection.write((sql) => deleteExpiredSecrets(sql, nowMs));
  // The file's lock proves that nobody works on its leases.
  const deliveries = await connection.write((sql) => releaseLeases(sql, "all", nowMs));
  if (deliveries > 0) {
    const message = "Deliveries that were under way at a crash are due again.";
    notices.push({ level: "info", details: { deliveries }, message });
  }
  await connection.write(countStoredEvents);
  const { event: last } = await loadLastNumbers(connection.read);
  if (!(await isIndexWhole(connection.read, last))) {
    const message =
      "The data file is damaged: some of the last events are missing from lists and totals. `evreg doctor --deep` says what is damaged; restore a backup from before that.";
    notices.push({ level: "warn", details: {}, message });
  }
  return {
    // JSON leaves out what runs here.
    operations: JSON.parse(JSON.stringify(OPERATIONS)) as OperationsTraits,
    file: connection.file,
    dataId: dataIdentity(connection.read),
    notices,
  };
}

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

function readOf(name: string): ReadOperation {
  const operation = BY_NAME.get(name);
  if (operation?.kind !== "read") throw new Error(`the store has no read ${name}`);
  return operation;
}

function runRead(
  connection: ReadConnection | WriteConnection,
  { operation, args }: NamedCall,
): Promise<ThreadAnswer> {
  return connection.answer(async (work) => {
    const value = await readOf(operation).run(work, ...args);
    return { value, transfer: work.transfer, damaged: work.damaged };
  });
}

/**
 * Does all writes of a batch in one transaction. Returns once it is committed, and durable unless none has to be. A write
 * that fails is undone and answered by itself; the others are done.
 * @throws EngineFailure when the transaction as a whole failed
 */
async function commitBatch(connection: WriteConnection, batch: WriteBatch): Promise<CommittedBatch> {
  const calls = JSON.parse(batch.calls) as readonly WriteCall[];
  const durable = calls.some(([name]) => writeOf(name).durable === "now") ? "now" : "later";
  const startedMs = performance.now();
  const commit = async (run: (work: Work) => Promise<readonly WireOutcome[]>): Promise<CommittedBatch> => {
    const [work, outcomes] = await connection.write(
      async (all) => [all, await run(all)] as const,
      durable,
      batch.bytes,
    );
    const tookMs = performance.now() - startedMs;
    return { outcomes, work, commit: { ...connection.lastCommit, writes: calls.length, tookMs } };
  };
  try {
    return await commit((work) => runTogether(work, calls));
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    if (calls.length === 1)
      return { outcomes: [{ error: toWireError(error) }], work: connection.task(), commit: undefined };
  }
  // All of it was undone, and nothing says which call is at fault. So each is done in a savepoint, for which the engine copies
  // every page that changes.
  return await commit((work) => each(calls, (call) => runAlone(work, call)));
}

interface CommittedBatch extends Pick<Committed, "commit"> {
  /** What came of each call, in order. */
  readonly outcomes: readonly WireOutcome[];
  /** What goes with the answer. */
  readonly work: Work;
}

/** Does the calls, those of one operation together. */
async function runTogether(work: Work, calls: readonly WriteCall[]): Promise<readonly WireOutcome[]> {
  const outcomes: WireOutcome[] = [];
  for (const [name, places] of Map.groupBy(calls.keys(), (place) => calls[place]![0])) {
    const own = places.map((place) => calls[place]![1]);
    for (const [index, ok] of (await writeOf(name).run(work, own)).entries())
      outcomes[places[index]!] = { ok };
  }
  return outcomes;
}

async function runAlone(work: Work, call: WriteCall): Promise<WireOutcome> {
  const changesBefore = work.changes.length;
  try {
    return (await inSavepoint(work, () => runTogether(work, [call])))[0]!;
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    work.changes.length = changesBefore;
    return { error: toWireError(error) };
  }
}

if (parentPort === null) throw new Error("this module runs as a worker thread");
new StoreWorker(parentPort).start();
