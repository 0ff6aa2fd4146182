import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../../domain/error.ts";
import { systemClock } from "../../runtime/clock.ts";
import { compactHeap, onIdle, threadCpuMs } from "../../runtime/heap.ts";
import { ensureServiceActions } from "./catalog/actions.ts";
import { deleteExpiredSecrets } from "./catalog/credentials.ts";
import { recountEvents } from "./events/counts.ts";
import { loadLastNumbers } from "./events/timeline.ts";
import { dataIdentity } from "./files/id-reservation.ts";
import { openDataFile } from "./files/open-file.ts";
import { commitBatch, operationTraits, runRead } from "./group-commit.ts";
import { moveWaitsAtStart } from "./queue/move-waits.ts";
import { releaseLeases } from "./queue/release.ts";
import type { WriteConnection } from "./thread/connection.ts";
import {
  type Committed,
  type OpenReport,
  respond,
  type ThreadAnswer,
  type ToThread,
  type WriteBatch,
  type WriterSetup,
} from "./thread/protocol.ts";
import { EngineFailure, type Sql } from "./thread/sql.ts";

/** The thread that writes the data file. It does one thing at a time, in the order in which it is asked. */
export class WriterThread {
  readonly #port: MessagePort;
  #connection: WriteConnection | undefined;
  #key: Uint8Array | undefined;
  /** After this, the connection might acknowledge writes that never reach the file. */
  #failure: EngineFailure | undefined;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  start(): void {
    this.#port.on("message", (message: ToThread) => {
      respond(this.#port, message.id, () => this.#answer(message));
      if (message.kind === "close") this.#port.close();
    });
    onIdle(systemClock, threadCpuMs, () => {
      this.#connection?.read.run("PRAGMA shrink_memory");
      compactHeap();
    });
  }

  #answer({ kind, ask }: ToThread): ThreadAnswer {
    if (kind === "openToWrite") return { value: this.#open(ask) };
    const connection = this.#connection;
    if (connection === undefined) throw new Error(`the file has to be open for ${kind}`);
    switch (kind) {
      case "write":
        return this.#write(connection, ask);
      case "read":
        connection.mustBeInPlace();
        return { value: runRead(connection.read, ask) };
      case "close":
        connection.checkpointIfPossible();
        connection.close();
        return {};
      case "openToRead":
        break;
    }
    throw new Error(`${kind} is not for the thread that writes`);
  }

  #open(setup: WriterSetup): OpenReport {
    const { connection, ...opened } = openDataFile(setup.path, setup);
    this.#connection = connection;
    this.#key = setup.encryption?.key;
    return { ...opened, ...prepare(connection, setup) };
  }

  #write(connection: WriteConnection, batch: WriteBatch): ThreadAnswer {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      connection.lastCommitMs = undefined;
      const startedMs = performance.now();
      const { outcomes, changes, bytes } = commitBatch(connection, batch, this.#key);
      const tookMs = performance.now() - startedMs;
      const { lastCommitMs: commitMs, lastFsyncs: fsyncs, checkpointFailure } = connection;
      const writes = outcomes.length;
      const commit =
        commitMs === undefined ? undefined : { writes, tookMs, commitMs, fsyncs, checkpointFailure };
      const value: Committed = { outcomes: JSON.stringify(outcomes), changes, commit };
      return { value, bytes };
    } catch (error) {
      const failure =
        error instanceof EngineFailure
          ? error
          : new EngineFailure("replace", messageOf(error), { cause: error });
      if (failure.kind !== "full") this.#failure = failure;
      throw failure;
    }
  }
}

function prepare(
  connection: WriteConnection,
  { expected, nowMs }: WriterSetup,
): Omit<OpenReport, "copy" | "encrypted" | "dropped"> {
  const taken = ensureServiceActions(connection, nowMs);
  // At a first start the file's lock proves that nobody works on its leases. Otherwise the main thread of this process still
  // does.
  const isFirst = expected === undefined;
  const setBack = isFirst ? connection.write((sql) => moveWaitsAtStart(sql, nowMs)) : undefined;
  const released = isFirst ? connection.write((sql) => cleanUp(sql, nowMs)) : 0;
  const { event: lastEvent } = loadLastNumbers(connection.read);
  return {
    operations: operationTraits(),
    file: connection.file,
    dataId: dataIdentity(connection.read),
    lastEvent,
    released,
    setBack,
    taken,
    isIndexWhole: connection.write((sql) => recountEvents(sql, lastEvent)),
  };
}

/** Deletes expired secrets and releases leases. Returns how many leases were released. */
function cleanUp(sql: Sql, nowMs: number): number {
  deleteExpiredSecrets(sql, nowMs);
  return releaseLeases(sql, "all", nowMs);
}
