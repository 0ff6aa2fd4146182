import { randomUUID } from "node:crypto";
import type { ReadStream } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { EvregError } from "../../../domain/error.ts";
import type { Backup } from "../../../domain/operations.ts";
import type { ReaderSetup } from "../connection.ts";
import { singleWrite } from "../../thread/protocol.ts";
import type { StoreThreads } from "../../thread/store-threads.ts";
import { fileTask } from "../file-task.ts";
import { backupFailure } from "./data-folder.ts";

const READ_BYTES = 256 * 1024;
const FREED_BYTES = 32 * 1024 * 1024;

/** Makes backups of one data file, one at a time: each takes as much room as the file until it is read. */
export class Backups {
  readonly #data: ReaderSetup;
  readonly #threads: Pick<StoreThreads, "write">;
  readonly #closing = new AbortController();
  #current: Promise<Backup> | undefined;

  /** @param data the data file that the store has open by these threads */
  constructor(data: ReaderSetup, threads: Pick<StoreThreads, "write">) {
    this.#data = data;
    this.#threads = threads;
  }

  /**
   * @param signal stops the making, and says that nobody reads it any more
   * @throws EvregError `conflict` while another one is made or read; `unavailable` when it could not be made
   */
  async make(signal?: AbortSignal): Promise<Backup> {
    const closing = this.#closing.signal;
    closing.throwIfAborted();
    if (this.#current !== undefined) {
      const why = "Another backup is being made or read just now; try again when it has ended.";
      throw new EvregError("conflict", why);
    }
    this.#current = this.#make(signal === undefined ? closing : AbortSignal.any([closing, signal]));
    try {
      return await this.#current;
    } catch (error) {
      this.#current = undefined;
      throw backupFailure(error);
    }
  }

  async #make(stop: AbortSignal): Promise<Backup> {
    const { path, file: dataFile } = this.#data;
    // The copy is made beside the data file, where nobody else has access and the room is known.
    const copy = `${path}.backup-${randomUUID()}`;
    const file = await open(copy, "wx+", 0o600);
    const stopped = new SharedArrayBuffer(1);
    const end = (): void => void Atomics.store(new Uint8Array(stopped), 0, 1);
    stop.addEventListener("abort", end);
    try {
      // Without a name nothing is left of it however this process ends.
      await rm(copy);
      stop.throwIfAborted();
      // Where a read begins with all of the log moved, the engine tries to move what comes then with each commit, and cannot.
      await this.#threads.write(singleWrite("file.probe", 0));
      const copied = await fileTask("copyData", path, dataFile, file.fd, stopped);
      stop.throwIfAborted();
      let closed: Promise<void> | undefined;
      const close = (): Promise<void> => {
        if (closed === undefined) this.#current = undefined;
        return (closed ??= free(file, copied.bytes));
      };
      const { signal } = this.#closing;
      const reading = { start: 0, autoClose: false, highWaterMark: READ_BYTES, signal };
      // Who reads it learns of an error by that, and nobody else has to.
      const content = (): ReadStream => file.createReadStream(reading).on("error", () => undefined);
      return { ...copied, content, close };
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    } finally {
      stop.removeEventListener("abort", end);
    }
  }

  /** Ends what is made; who reads one gets no further piece. To be called while the store still has the data file open. */
  async end(): Promise<void> {
    this.#closing.abort(new EvregError("unavailable", "The server stopped before the backup was made."));
    await this.#current?.catch(() => undefined);
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
