import { statfsSync } from "node:fs";
import { type FileHandle, open, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import type { FileId } from "../thread/file-guard.ts";
import { singleWrite } from "../thread/protocol.ts";
import type { WorkerSupervisor } from "../thread/supervisor.ts";
import { logOf } from "../thread/wal-check.ts";
import { fileTask } from "./file-tasks.ts";

interface LiveCopyOptions {
  /** Of the data file. */
  readonly path: string;
  /** Which file the store has open. */
  readonly file: FileId;
  /** The data file, open for reading. */
  readonly source: FileHandle;
  /** Where it goes, on the same disk; empty. */
  readonly target: FileHandle;
  readonly supervisor: WorkerSupervisor;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

const CHUNK_BYTES = 1024 * 1024;
/** Stored on the disk before more is written: a commit's fsync waits for what others have written, seconds for a GB. */
const SYNC_BYTES = 8 * 1024 * 1024;
/** Left free for what is published meanwhile. */
const RESERVE_BYTES = 64 * 1024 * 1024;
/** With more in its log every page takes longer to find, and a start after a crash longer than some seconds. */
const MAX_LOG_BYTES = 4 * 1024 * 1024 * 1024;
/** A log that is longer is moved into the file beside the thread that writes, which would do it with its next commit. */
const LONG_LOG_BYTES = 32 * 1024 * 1024;

/**
 * Copies the data file while it is written to: it does not change while checkpoints are paused, and what is committed
 * meanwhile is then taken from the log.
 *
 * @returns the copy's bytes
 * @throws EvregError `unavailable` when there is no room, too much was written meanwhile or the store was opened anew; the
 * reason of `signal`
 */
export async function liveCopy(options: LiveCopyOptions): Promise<number> {
  const { path, file, source, target, supervisor, nowMs } = options;
  await supervisor.readByWriter("file.pauseCheckpoints", []);
  let bytes: number;
  try {
    // So that a restore knows how old it is (see `id-reservation.ts`). After this commit the log does not restart, either.
    await supervisor.write(singleWrite("file.noteBackup", nowMs));
    const { size } = await source.stat();
    mustHaveFreeSpace(path, size);
    await copyFile(options, size);
    bytes = await fileTask("addLog", path, target.fd);
    await makePlain(target);
  } finally {
    // Where that fails, the engine does it with its next commit.
    if ((await logBytes(path)) > LONG_LOG_BYTES) await fileTask("moveLog", path, file).catch(() => undefined);
    await supervisor.readByWriter("file.resumeCheckpoints", []);
  }
  return bytes;
}

async function copyFile({ path, source, target, signal }: LiveCopyOptions, bytes: number): Promise<void> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let unsynced = 0;
  for (let at = 0; at < bytes;) {
    signal.throwIfAborted();
    const { bytesRead } = await source.read(buffer, 0, Math.min(CHUNK_BYTES, bytes - at), at);
    if (bytesRead === 0) return;
    await target.write(buffer, 0, bytesRead, at);
    at += bytesRead;
    unsynced += bytesRead;
    if (unsynced < SYNC_BYTES) continue;
    unsynced = 0;
    await target.datasync();
    const waiting = await logBytes(path);
    mustHaveFreeSpace(path, waiting);
    if (waiting > MAX_LOG_BYTES) throw tooMuchWritten(waiting);
  }
}

async function logBytes(path: string): Promise<number> {
  return (await stat(logOf(path)).catch(() => undefined))?.size ?? 0;
}

function tooMuchWritten(bytes: number): EvregError {
  return new EvregError(
    "unavailable",
    `The backup was given up: ${bytes} bytes were written to the log while the data file was copied, and that cannot grow without end. Try again when less is published, or on a faster disk; nothing was changed.`,
    { bytes },
  );
}

function mustHaveFreeSpace(path: string, bytes: number): void {
  // Of the folder, where the copy is: the data file may be a link to another disk.
  const { bavail, bsize } = statfsSync(dirname(path));
  const free = bavail * bsize;
  const needed = bytes + RESERVE_BYTES;
  if (free >= needed) return;
  throw new EvregError(
    "unavailable",
    `There is no room for a copy of the data on its disk: ${free} bytes are free, and ${needed} are needed. Make room and try again; nothing was changed.`,
    { free, needed },
  );
}

/** A file without a name, so that nothing is left of it however this process ends. */
export async function namelessFile(path: string): Promise<FileHandle> {
  const file = await open(path, "wx+", 0o600);
  try {
    await rm(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Opens the data file for reading. Closing it would drop the process's lock (see `data-folder.ts`), so it stays open until
 * the store is closed.
 * @throws EvregError `unavailable` when it is not the file that the store has open
 */
export async function openBeside(path: string, file: FileId): Promise<FileHandle> {
  const source = await open(path, "r");
  const { dev, ino } = await source.stat({ bigint: true });
  if (dev === file.dev && ino === file.ino) return source;
  // It is another file, so closing it does not touch the lock.
  await source.close();
  throw new EvregError("unavailable", `The data file ${path} is not the one that the store has open.`);
}

/** In the first page of a file: the formats in which it is written and read. */
const FORMAT_AT = 18;
const WITHOUT_LOG = Buffer.from([1, 1]);

/** Marks a copy as whole without a log. Serving it makes it a file with a log again. */
export async function makePlain(copy: FileHandle): Promise<void> {
  const { size } = await copy.stat();
  if (size > FORMAT_AT) await copy.write(WITHOUT_LOG, 0, WITHOUT_LOG.length, FORMAT_AT);
}
