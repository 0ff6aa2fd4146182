import { statfsSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import type { LogPosition, MovedLog } from "../thread/checkpoints.ts";
import type { FileId } from "../thread/file-guard.ts";
import type { WorkerSupervisor } from "../thread/supervisor.ts";
import { logOf } from "../thread/wal-check.ts";

interface LiveCopyOptions {
  /** Of the data file. */
  readonly path: string;
  /** The data file, open for reading. */
  readonly source: FileHandle;
  /** Where it goes, on the same disk; empty. */
  readonly target: FileHandle;
  readonly supervisor: WorkerSupervisor;
  readonly signal: AbortSignal;
}

const CHUNK_BYTES = 1024 * 1024;
/** Stored on the disk before more is written: a commit's fsync waits for what others have written, seconds for a GB. */
const SYNC_BYTES = 8 * 1024 * 1024;
const MOVE_EVERY_MS = 100;
/** So few changed pages are copied while the log is not moved. */
const MAX_LAST_PAGES = 512;
const MAX_ROUNDS = 8;
/** Left free for what is published meanwhile. */
const RESERVE_BYTES = 64 * 1024 * 1024;

/** In the first page: how many there are. */
const PAGES_AT = 28;

/**
 * Copies the data file while it is written to, without its owner's thread reading a byte of it.
 *
 * The engine changes the file only where it moves the log into it. That is done now and then between two chunks, and the
 * pages that it changed are copied again, until few are left. Those are copied while the log is not moved, so that the
 * file does not change.
 *
 * @returns the copy's bytes
 * @throws EvregError `unavailable` when there is no room or the store was opened anew; the reason of `signal`
 */
export async function liveCopy(options: LiveCopyOptions): Promise<number> {
  const { path, source, target, supervisor } = options;
  const pageBytes = (await supervisor.readByWriter("file.holdLog", [])).value as number;
  try {
    const copy = new LiveCopy(options, pageBytes);
    await copy.moveLog();
    const { size } = await source.stat();
    mustHaveFreeSpace(path, size);
    await copy.copyAll(size);
    const first = Buffer.alloc(100);
    await target.read(first, 0, first.length, 0);
    const bytes = first.readUInt32BE(PAGES_AT) * pageBytes;
    await target.truncate(bytes);
    await makePlain(target);
    return bytes;
  } finally {
    await supervisor.readByWriter("file.releaseLog", []);
  }
}

class LiveCopy {
  readonly #options: LiveCopyOptions;
  readonly #pageBytes: number;
  readonly #logPath: string;
  readonly #buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  #unsynced = 0;
  #position: LogPosition | undefined;
  #movedAtMs = 0;
  /** Pages, from 1, that the file has changed since they were copied. */
  #changed = new Set<number>();

  constructor(options: LiveCopyOptions, pageBytes: number) {
    this.#options = options;
    this.#pageBytes = pageBytes;
    this.#logPath = logOf(options.path);
  }

  async moveLog(): Promise<void> {
    const { value } = await this.#options.supervisor.readByWriter("file.moveLog", [
      this.#logPath,
      this.#position,
    ]);
    const { position, pages } = value as MovedLog;
    this.#position = position;
    this.#movedAtMs = performance.now();
    for (const page of pages) this.#changed.add(page);
  }

  async copyAll(bytes: number): Promise<void> {
    await this.#copy(0, bytes, true);
    for (let round = 0; this.#changed.size > MAX_LAST_PAGES && round < MAX_ROUNDS; round += 1) {
      await this.#copyChanged(true);
    }
    await this.moveLog();
    await this.#copyChanged(false);
  }

  async #copyChanged(movesLog: boolean): Promise<void> {
    const pages = [...this.#changed].toSorted((one, other) => one - other);
    this.#changed = new Set();
    for (let first = 0; first < pages.length;) {
      let end = first + 1;
      while (end < pages.length && pages[end] === pages[end - 1]! + 1) end += 1;
      await this.#copy((pages[first]! - 1) * this.#pageBytes, pages[end - 1]! * this.#pageBytes, movesLog);
      first = end;
    }
  }

  async #copy(from: number, to: number, movesLog: boolean): Promise<void> {
    const { source, target, signal } = this.#options;
    for (let at = from; at < to;) {
      signal.throwIfAborted();
      const { bytesRead } = await source.read(this.#buffer, 0, Math.min(CHUNK_BYTES, to - at), at);
      // Past the end of a file that became shorter.
      if (bytesRead === 0) return;
      await target.write(this.#buffer, 0, bytesRead, at);
      at += bytesRead;
      await this.#sync(bytesRead);
      if (movesLog && performance.now() - this.#movedAtMs >= MOVE_EVERY_MS) await this.moveLog();
    }
  }

  async #sync(bytes: number): Promise<void> {
    this.#unsynced += bytes;
    if (this.#unsynced < SYNC_BYTES) return;
    this.#unsynced = 0;
    await this.#options.target.datasync();
    mustHaveFreeSpace(this.#options.path, 0);
  }
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
