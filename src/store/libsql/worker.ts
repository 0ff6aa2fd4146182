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

/** Messages wait here while one is being served. */
const waiting: ToWorker[] = [];
let serving = false;

await start();

async function start(): Promise<void> {
  let connection: Connection;
  try {
    connection = await Connection.open(setup.path, (sql) => admitFile(sql, setup.path), setup.expected);
    say({ kind: "ready", report: await prepare(connection) });
  } catch (error) {
    say({ kind: "refused", refusal: refusalOf(error) });
    port?.close();
    return;
  }
  port?.on("message", (message: ToWorker) => {
    waiting.push(message);
    if (!serving) void serve(connection);
  });
}

async function prepare(connection: Connection): Promise<OpenReport> {
  const { applied, copy } = await migrateFile(connection, setup.path);
  const released = setup.release
    ? await connection.write((sql) => releaseLeases(sql, "all", setup.nowMs))
    : 0;
  const { event: lastEvent } = await loadEnds(connection.read);
  return {
    file: connection.file,
    lastEvent,
    migrated: applied,
    released,
    ...(copy === undefined ? {} : { copy }),
  };
}

async function serve(connection: Connection): Promise<void> {
  serving = true;
  for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
    if (message.kind === "flight") await answerFlight(connection, message);
    else if (message.kind === "read") await answerRead(connection, message);
    else await close(connection);
  }
  serving = false;
}

async function answerFlight(
  connection: Connection,
  { id, ops, bytes }: ToWorker & { kind: "flight" },
): Promise<void> {
  try {
    // Never empty: the driver binds an empty BLOB as NULL.
    const landed = await fly(connection, ops, new Uint8Array(bytes ?? new ArrayBuffer(1)));
    say({ kind: "landed", id, outcomes: landed.outcomes, ...withBytes(landed.bytes) }, landed.bytes);
  } catch (error) {
    await gatherIn(connection, error);
    say({ kind: "aborted", id, failure: failureOf(error) });
  }
}

async function answerRead(
  connection: Connection,
  { id, name, args }: ToWorker & { kind: "read" },
): Promise<void> {
  const out = new BytesOut();
  try {
    connection.mustBeInPlace();
    const read = READS[name] as (sql: Sql, ...args: unknown[]) => Promise<unknown>;
    const ok = await read(connection.read, ...args, out);
    const bytes = out.pack();
    say({ kind: "answer", id, outcome: { ok }, ...withBytes(bytes) }, bytes);
  } catch (error) {
    await gatherIn(connection, error);
    if (error instanceof EngineFailure) say({ kind: "unread", id, failure: failureOf(error) });
    else say({ kind: "answer", id, outcome: { error: toWireError(error) } });
  }
}

/**
 * Makes a file that was moved away whole, and leaves no log behind: with another file in its place by now, the next start
 * would write this one's log into that.
 */
async function gatherIn(connection: Connection, error: unknown): Promise<void> {
  if (error instanceof DisplacedFile) await connection.checkpoint().catch(() => undefined);
}

async function close(connection: Connection): Promise<void> {
  // Without room the log stays beside the file and is read again at the next start.
  await connection.checkpoint().catch(() => undefined);
  connection.close();
  port?.close();
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
