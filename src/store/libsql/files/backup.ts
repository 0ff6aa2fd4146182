import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, open, rm, stat } from "node:fs/promises";
import { EvregError } from "../../../domain/error.ts";
import type { Backup } from "../../../domain/operations.ts";
import { freeBytesAt } from "../../../runtime/files.ts";
import type { FileId } from "./file-guard.ts";
import { singleWrite } from "../../thread/protocol.ts";
import { fileTask } from "../file-task.ts";
import type { StoreThreads } from "../../thread/store-threads.ts";
import { logOf } from "./data-folder.ts";

/** Pieces are so small that hashing one delays no request. */
const READ_BYTES = 256 * 1024;
const FREED_BYTES = 32 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
/**
 * So many bytes are stored on the disk before more are written: a commit's fsync waits for what others have written, seconds
 * for a GB.
 */
const SYNC_BYTES = 8 * 1024 * 1024;
/** So many bytes are left free for what is published meanwhile. */
const RESERVE_BYTES = 64 * 1024 * 1024;

/** Makes backups of one data file, one at a time: each takes as much room as the file until it is read. */
export class Backups {
  readonly #path: string;
  readonly #file: FileId;
  readonly #threads: StoreThreads;
  readonly #closing = new AbortController();
  #source: FileHandle | undefined;
  #current: Promise<Backup> | undefined;

  /** @param path of the data file, which the store has open as `file` */
  constructor(path: string, file: FileId, threads: StoreThreads) {
    this.#path = path;
    this.#file = file;
    this.#threads = threads;
  }

  /**
   * @param signal stops the making, and says that nobody reads it any more
   * @throws EvregError `conflict` while another one is made or read; `unavailable` when it could not be made
   */
  async make(signal?: AbortSignal): Promise<Backup> {
    if (this.#current !== undefined) {
      const why = "Another backup is being made or read just now; try again when it has ended.";
      throw new EvregError("conflict", why);
    }
    const closing = this.#closing.signal;
    if (closing.aborted) throw new EvregError("unavailable", "The store is closed.");
    this.#current = this.#make(signal === undefined ? closing : AbortSignal.any([closing, signal]));
    try {
      return await this.#current;
    } catch (error) {
      this.#current = undefined;
      throw asUnavailable(error);
    }
  }

  async #make(stop: AbortSignal): Promise<Backup> {
    // The copy is made beside the data file, where nobody else has access and the room is known.
    const file = await namelessFile(`${this.#path}.backup-${randomUUID()}`);
    try {
      const bytes = await this.#copyTo(file, stop);
      const hash = createHash("sha256");
      for await (const piece of piecesOf(file, stop)) hash.update(piece);
      let closed: Promise<void> | undefined;
      const close = (): Promise<void> => {
        if (closed === undefined) this.#current = undefined;
        return (closed ??= free(file, bytes));
      };
      const content = () => piecesOf(file, this.#closing.signal);
      return { bytes, sha256: hash.digest("hex"), content, close };
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
  }

  /** Ends what is made or read. To be called while the store still answers. */
  async end(): Promise<void> {
    this.#closing.abort(new EvregError("unavailable", "The server stopped before the backup was made."));
    const backup = await this.#current?.catch(() => undefined);
    await backup?.close().catch(() => undefined);
  }

  /** Closes the data file. To be called only once the store has closed it. */
  async close(): Promise<void> {
    await this.#source?.close();
  }

  /**
   * Copies the data file while it is written to: it does not change while checkpoints are paused, and what is committed
   * meanwhile is then taken from the log.
   * @returns the copy's bytes
   * @throws EvregError `unavailable` when there is no room, or too much was written meanwhile; the reason of `stop`
   */
  async #copyTo(target: FileHandle, stop: AbortSignal): Promise<number> {
    // Closing it would drop the process's lock (see `data-folder.ts`), so it stays open until the store is closed.
    const source = (this.#source ??= await open(this.#path, "r"));
    await this.#threads.readByWriter("file.pauseCheckpoints");
    try {
      // The log does not restart after this commit, either. It fails where the data file at the path is not the one that
      // the store has open.
      await this.#threads.write(singleWrite("file.probe", 0));
      await this.#copyFile(source, target, stop);
      const bytes = await fileTask("addLog", this.#path, target.fd);
      await makePlain(target);
      return bytes;
    } finally {
      // The log may be long by now, so it is moved beside the thread that writes, which would do it with its next commit.
      await fileTask("moveLog", this.#path, this.#file).catch(() => undefined);
      await this.#threads.readByWriter("file.resumeCheckpoints");
    }
  }

  async #copyFile(source: FileHandle, target: FileHandle, stop: AbortSignal): Promise<void> {
    const { size } = await source.stat();
    this.#mustHaveFreeSpace(size);
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    let unsynced = 0;
    for (let at = 0; at < size;) {
      stop.throwIfAborted();
      const { bytesRead } = await source.read(buffer, 0, Math.min(CHUNK_BYTES, size - at), at);
      if (bytesRead === 0) return;
      await target.write(buffer, 0, bytesRead, at);
      at += bytesRead;
      unsynced += bytesRead;
      if (unsynced < SYNC_BYTES) continue;
      unsynced = 0;
      await target.datasync();
      // What is published meanwhile waits in the log, which cannot be moved before.
      this.#mustHaveFreeSpace(await this.#logBytes());
    }
  }

  async #logBytes(): Promise<number> {
    return (await stat(logOf(this.#path)).catch(() => undefined))?.size ?? 0;
  }

  /** Checks the disk of the folder, where the copy is: the data file may be a link to another disk. */
  #mustHaveFreeSpace(bytes: number): void {
    const left = freeBytesAt(this.#path);
    const needed = bytes + RESERVE_BYTES;
    if (left >= needed) return;
    const message = `There is no room for a copy of the data on its disk: ${left} bytes are free, and ${needed} are needed. Make room and try again; nothing was changed.`;
    throw new EvregError("unavailable", message, { free: left, needed });
  }
}

async function* piecesOf(file: FileHandle, stop: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let at = 0; ;) {
    stop.throwIfAborted();
    // Each piece has a buffer of its own: the consumer may still be sending it when the next is read.
    const piece = Buffer.allocUnsafe(READ_BYTES);
    const { bytesRead } = await file.read(piece, 0, READ_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

/** Frees a file piece by piece: freeing a GB at once delays every fsync on its disk. */
async function free(file: FileHandle, bytes: number): Promise<void> {
  try {
    for (let left = bytes - FREED_BYTES; left > 0; left -= FREED_BYTES) await file.truncate(left);
  } finally {
    await file.close();
  }
}

/** Opens a file without a name, so that nothing is left of it however this process ends. */
async function namelessFile(path: string): Promise<FileHandle> {
  const file = await open(path, "wx+", 0o600);
  try {
    await rm(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Where the first page of a file has the formats in which it is written and read. */
const FORMAT_AT = 18;
const WITHOUT_LOG = Buffer.from([1, 1]);

/** Marks a copy as whole without a log. Serving it makes it a file with a log again. */
export async function makePlain(copy: FileHandle): Promise<void> {
  const { size } = await copy.stat();
  if (size > FORMAT_AT) await copy.write(WITHOUT_LOG, 0, WITHOUT_LOG.length, FORMAT_AT);
}

function asUnavailable(error: unknown): unknown {
  if (error instanceof EvregError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== "string") return error;
  const why = code === "ENOSPC" || code === "EDQUOT" ? "the disk of the data is full" : code;
  const message = `The backup could not be made (${why}). Nothing was changed; solve that and try again.`;
  return new EvregError("unavailable", message, {}, { cause: error });
}
