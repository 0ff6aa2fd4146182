import { parentPort, workerData } from "node:worker_threads";
import { BytesOut } from "./bytes-out.ts";
import { Connection } from "./connection.ts";
import { EngineFailure } from "./engine-failure.ts";
import { DisplacedFile } from "./file-place.ts";
import { fly } from "./flight.ts";
import {
  type FromWorker,
  type OpenReport,
  type ToWorker,
  toWireError,
  type WireError,
  type WireFailure,
  type WorkerSetup,
} from "./messages.ts";
import { admitFile, migrateFile } from "./migrate-file.ts";
import { READS } from "./operations.ts";
import { loadEnds } from "./record-lookups.ts";
import { releaseLeases } from "./release-leases.ts";
import type { Sql } from "./sql.ts";

// The thread that owns the data file. It does one thing at a time, in the order asked: a flight of writes or a read. Its
// end, however it comes, closes the file and frees its lock; nothing less does (see Connection).

const port = parentPort;
if (port === null) throw new Error("this module runs as a worker thread");
const setup = workerData as WorkerSetup;

start();

function start(): void {
  let connection: Connection;
  try {
    connection = Connection.open(setup.path, (sql) => admitFile(sql, setup.path), setup.expected);
    say({ kind: "ready", report: prepare(connection) });
  } catch (error) {
    say({ kind: "refused", refusal: refusalOf(error) });
    port?.close();
    return;
  }
  port?.on("message", (message: ToWorker) => serve(connection, message));
}

function prepare(connection: Connection): OpenReport {
  const { applied, copy } = migrateFile(connection, setup.path);
  const released = setup.release ? connection.write((sql) => releaseLeases(sql, "all", setup.nowMs)) : 0;
  const { event: lastEvent } = loadEnds(connection.read);
  return {
    file: connection.file,
    lastEvent,
    migrated: applied,
    released,
    ...(copy === undefined ? {} : { copy }),
  };
}

function serve(connection: Connection, message: ToWorker): void {
  if (message.kind === "flight") answerFlight(connection, message);
  else if (message.kind === "read") answerRead(connection, message);
  else close(connection);
}

function answerFlight(connection: Connection, { id, ops, bytes }: ToWorker & { kind: "flight" }): void {
  try {
    // Never empty: the driver binds an empty BLOB as NULL.
    const landed = fly(connection, ops, new Uint8Array(bytes ?? new ArrayBuffer(1)));
    say({ kind: "landed", id, outcomes: landed.outcomes, ...withBytes(landed.bytes) }, landed.bytes);
  } catch (error) {
    gatherIn(connection, error);
    say({ kind: "aborted", id, failure: failureOf(error) });
  }
}

function answerRead(connection: Connection, { id, name, args }: ToWorker & { kind: "read" }): void {
  const out = new BytesOut();
  try {
    connection.mustBeInPlace();
    const read = READS[name] as (sql: Sql, ...args: unknown[]) => unknown;
    const ok = read(connection.read, ...args, out);
    const bytes = out.pack();
    say({ kind: "answer", id, outcome: { ok }, ...withBytes(bytes) }, bytes);
  } catch (error) {
    gatherIn(connection, error);
    if (error instanceof EngineFailure) say({ kind: "unread", id, failure: failureOf(error) });
    else say({ kind: "answer", id, outcome: { error: toWireError(error) } });
  }
}

/**
 * Makes a file that was moved away whole, and leaves no log behind: with another file in its place by now, the next start
 * would write this one's log into that.
 */
function gatherIn(connection: Connection, error: unknown): void {
  if (error instanceof DisplacedFile) checkpointIfPossible(connection);
}

function close(connection: Connection): void {
  checkpointIfPossible(connection);
  connection.close();
  port?.close();
}

/** Without room the log stays beside the file and is read again at the next start. */
function checkpointIfPossible(connection: Connection): void {
  try {
    connection.checkpoint();
  } catch {
    // Nothing is lost by it.
  }
}

function say(message: FromWorker, bytes?: ArrayBuffer): void {
  port?.postMessage(message, bytes === undefined ? [] : [bytes]);
}

function withBytes(bytes: ArrayBuffer | undefined): { bytes?: ArrayBuffer } {
  return bytes === undefined ? {} : { bytes };
}

function failureOf(error: unknown): WireFailure {
  if (error instanceof EngineFailure) return { failure: error.kind, reason: error.message };
  return { failure: "replace", reason: error instanceof Error ? error.message : String(error) };
}

function refusalOf(error: unknown): WireFailure | WireError {
  return error instanceof EngineFailure ? failureOf(error) : toWireError(error);
}
