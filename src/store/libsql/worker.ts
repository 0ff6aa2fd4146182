import { messageOf } from "../../domain/error.ts";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../runtime/clock.ts";
import { compactHeap, onIdle, threadCpuMs } from "../../runtime/heap.ts";
import { ensureServiceActions } from "./catalog/actions.ts";
import { deleteExpiredSecrets } from "./catalog/credentials.ts";
import { closeBlocks, isIndexWhole } from "./events/counts.ts";
import { dataIdentity } from "./files/id-reservation.ts";
import { openDataFile } from "./files/open-file.ts";
import { commitBatch, operationTraits, runRead } from "./group-commit.ts";
import { FILE_TASKS, type FileTask } from "./operations.ts";
import { moveWaitsAtStart } from "./queue/move-waits.ts";
import { releaseLeases } from "./queue/release.ts";
import { Reader } from "./reader.ts";
import type { Connection } from "./thread/connection.ts";
import {
  type OpenReport,
  post,
  type ReaderSetup,
  takeWaiting,
  toWireError,
  type ToWorker,
  type WireOutcome,
  type WorkerSetup,
} from "./thread/protocol.ts";
import { EngineFailure, type Sql } from "./thread/sql.ts";
import { loadLastNumbers } from "./events/timeline.ts";

// The thread that writes the data file, the one that reads it (see Reader), or one for a single task on a file that nobody
// has open. The writer does one thing at a time: a write batch, and then the next one. Its end, however it comes, closes the
// file; nothing less does (see Connection).

if (parentPort === null) throw new Error("this module runs as a worker thread");
const port: MessagePort = parentPort;
const task = workerData as FileTask | ReaderSetup | WorkerSetup;

type WriteMessage = ToWorker & { readonly kind: "write" };
type ReadMessage = ToWorker & { readonly kind: "read" };

const waitingWrites: WriteMessage[] = [];
const reads: ReadMessage[] = [];
let isClosing = false;
/** After this, the connection might acknowledge writes that never reach the file. */
let connectionFailure: EngineFailure | undefined;

if ("run" in task) port.postMessage(outcomeOf(task));
else if ("role" in task) new Reader(port).start();
else start(task);

function start(setup: WorkerSetup): void {
  let connection: Connection;
  try {
    const { connection: opened, ...report } = openDataFile(setup.path, setup);
    connection = opened;
    post(port, { kind: "ready", report: { ...report, ...prepare(connection, setup) } });
  } catch (error) {
    post(port, { kind: "openFailed", error: toWireError(error) });
    port.close();
    return;
  }
  port.on("message", (message: ToWorker) => {
    take(message);
    serve(connection, setup.encryption?.key);
  });
  const compact = (): void => {
    connection.read.run("PRAGMA shrink_memory");
    compactHeap();
  };
  onIdle(systemClock, threadCpuMs, compact);
}

function prepare(
  connection: Connection,
  { release, nowMs }: WorkerSetup,
): Omit<OpenReport, "copy" | "encrypted" | "dropped"> {
  const taken = ensureServiceActions(connection, nowMs);
  const setBack = release ? connection.write((sql) => moveWaitsAtStart(sql, nowMs)) : undefined;
  const released = release ? connection.write((sql) => cleanUp(sql, nowMs)) : 0;
  const { event: lastEvent } = loadLastNumbers(connection.read);
  // Only in a file that was just upgraded, or one that another program wrote events into, are blocks left open.
  connection.write((sql) => closeBlocks(sql, lastEvent));
  return {
    operations: operationTraits(),
    file: connection.file,
    dataId: dataIdentity(connection.read),
    lastEvent,
    released,
    setBack,
    taken,
    isIndexWhole: isIndexWhole(connection.read, lastEvent),
  };
}

/** Not for a worker that replaces another one. Returns how many leases were released. */
function cleanUp(sql: Sql, nowMs: number): number {
  deleteExpiredSecrets(sql, nowMs);
  return releaseLeases(sql, "all", nowMs);
}

function take(message: ToWorker): void {
  if (message.kind === "write") waitingWrites.push(message);
  else if (message.kind === "read") reads.push(message);
  else if (message.kind === "close") isClosing = true;
}

function serve(connection: Connection, key: Uint8Array | undefined): void {
  for (;;) {
    takeWaiting(port, take);
    if (waitingWrites.length + reads.length === 0) break;
    const batch = waitingWrites.shift();
    if (batch !== undefined) write(connection, batch, key);
    const message = reads.shift();
    if (message !== undefined) read(connection, message);
  }
  if (!isClosing) return;
  connection.checkpointIfPossible();
  connection.close();
  port.close();
}

function write(connection: Connection, batch: WriteMessage, key: Uint8Array | undefined): void {
  const { id, writes } = batch;
  if (connectionFailure !== undefined) {
    return post(port, { kind: "rolledBack", id, error: toWireError(connectionFailure) });
  }
  try {
    connection.lastCommitMs = undefined;
    const startedMs = performance.now();
    const committed = commitBatch(connection, batch, key);
    const tookMs = performance.now() - startedMs;
    const { lastCommitMs: commitMs, lastFsyncs: fsyncs, checkpointFailure } = connection;
    const commit =
      commitMs === undefined ? undefined : { writes, tookMs, commitMs, fsyncs, checkpointFailure };
    post(port, { kind: "committed", id, ...committed, commit });
  } catch (error) {
    const failure =
      error instanceof EngineFailure
        ? error
        : new EngineFailure("replace", messageOf(error), { cause: error });
    if (failure.kind !== "full") connectionFailure = failure;
    post(port, { kind: "rolledBack", id, error: toWireError(failure) });
  }
}

function read(connection: Connection, message: ReadMessage): void {
  const { id } = message;
  try {
    connection.mustBeInPlace();
    post(port, { kind: "readDone", id, outcome: { ok: runRead(connection.read, message) } });
  } catch (error) {
    post(port, { kind: "readDone", id, outcome: { error: toWireError(error) } });
  }
}

function outcomeOf({ run, args }: FileTask): WireOutcome {
  try {
    return { ok: (FILE_TASKS[run] as (...all: readonly unknown[]) => unknown)(...args) };
  } catch (error) {
    return { error: toWireError(error) };
  }
}
