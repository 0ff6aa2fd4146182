import { createHash, randomUUID } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { EvregError } from "../../../domain/error.ts";
import type { Backup } from "../../../domain/operations.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { FileId } from "../thread/file-guard.ts";
import type { WorkerSupervisor } from "../thread/supervisor.ts";
import { liveCopy, namelessFile, openBeside } from "./live-copy.ts";

/** Small enough that hashing one delays no request. */
const READ_BYTES = 256 * 1024;
const FREED_BYTES = 32 * 1024 * 1024;

/** Makes backups of one data file, one at a time: each takes as much room as the file until it is read. */
export class Backups {
  readonly #path: string;
  readonly #file: FileId;
  readonly #supervisor: WorkerSupervisor;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #source: FileHandle | undefined;
  /** The end of the backup that is being made or read. */
  #current: Promise<void> | undefined;

  /** @param path of the data file, which the store has open as `file` */
  constructor(path: string, file: FileId, supervisor: WorkerSupervisor, clock: Clock) {
    this.#path = path;
    this.#file = file;
    this.#supervisor = supervisor;
    this.#clock = clock;
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
    const stop = signal === undefined ? closing : AbortSignal.any([closing, signal]);
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#current = ended;
    const end = (): void => {
      this.#current = undefined;
      resolve();
    };
    let target: FileHandle | undefined;
    try {
      // Beside the data file, where nobody else has access and the room is known.
      target = await namelessFile(`${this.#path}.backup-${randomUUID()}`);
      const source = (this.#source ??= await openBeside(this.#path, this.#file));
      const nowMs = this.#clock.now();
      const bytes = await liveCopy({
        path: this.#path,
        file: this.#file,
        source,
        target,
        supervisor: this.#supervisor,
        nowMs,
        signal: stop,
      });
      const hash = createHash("sha256");
      for await (const piece of piecesOf(target, stop)) hash.update(piece);
      closing.throwIfAborted();
      const file = target;
      let closed: Promise<void> | undefined;
      const onClosing = (): void => void close();
      const close = (): Promise<void> => {
        closing.removeEventListener("abort", onClosing);
        return (closed ??= free(file, bytes).finally(end));
      };
      closing.addEventListener("abort", onClosing);
      return { bytes, sha256: hash.digest("hex"), content: () => piecesOf(file, closing), close };
    } catch (error) {
      await target?.close();
      end();
      throw asUnavailable(error);
    }
  }

  /** To be called while the store still answers. What is made or read ends. */
  async end(): Promise<void> {
    this.#closing.abort(new EvregError("unavailable", "The server stopped before the backup was made."));
    await this.#current;
  }

  /** Only once the store has closed the data file. */
  async close(): Promise<void> {
    await this.#source?.close();
  }
}

async function* piecesOf(file: FileHandle, stop: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let at = 0; ;) {
    stop.throwIfAborted();
    // A buffer of its own: the consumer may still be sending it when the next is read.
    const piece = Buffer.allocUnsafe(READ_BYTES);
    const { bytesRead } = await file.read(piece, 0, READ_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

/** Piece by piece: freeing a GB at once delays every fsync on its disk. */
async function free(file: FileHandle, bytes: number): Promise<void> {
  try {
    for (let left = bytes - FREED_BYTES; left > 0; left -= FREED_BYTES) await file.truncate(left);
  } finally {
    await file.close();
  }
}

function asUnavailable(error: unknown): unknown {
  if (error instanceof EvregError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== "string") return error;
  const why = code === "ENOSPC" || code === "EDQUOT" ? "the disk of the data is full" : code;
  return new EvregError(
    "unavailable",
    `The backup could not be made (${why}). Nothing was changed; solve that and try again.`,
    {},
    { cause: error },
  );
}
