import { createHash, randomUUID } from "node:crypto";
import { realpathSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import type { Backup } from "../../../domain/operations.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { MovedLog } from "../thread/checkpoints.ts";
import type { FileId } from "../thread/file-guard.ts";
import { singleWrite } from "../thread/protocol.ts";
import type { WorkerSupervisor } from "../thread/supervisor.ts";
import { freeBytesOf, liveCopy, type LogAsk, namelessFile, openBeside } from "./live-copy.ts";

/** Small enough that hashing one holds up no request. */
const READ_BYTES = 256 * 1024;
const FREED_BYTES = 32 * 1024 * 1024;

/** The one that is being made or read. */
interface Current {
  readonly over: Promise<void>;
  /** Whether nobody wants more of it, so that it is over in a moment. */
  isEnding(): boolean;
}

/** Makes backups of one data file, one at a time: each takes as much room as the file until it is read. */
export class Backups {
  readonly #path: string;
  readonly #file: FileId;
  readonly #supervisor: WorkerSupervisor;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #source: FileHandle | undefined;
  #current: Current | undefined;

  /** @param path of the data file, which the store has open as `file` */
  constructor(path: string, file: FileId, supervisor: WorkerSupervisor, clock: Clock) {
    this.#path = path;
    this.#file = file;
    this.#supervisor = supervisor;
    this.#clock = clock;
  }

  /**
   * @param signal ends its making, and tells that nobody reads it any more
   * @throws EvregError `conflict` while another one is made or read; `unavailable` when it could not be made
   */
  async make(signal?: AbortSignal): Promise<Backup> {
    await this.#assertFree();
    const { promise, resolve } = Promise.withResolvers<void>();
    let copied: CopiedFile | undefined;
    const isEnding = (): boolean => signal?.aborted === true || copied?.isClosed === true;
    this.#current = { over: promise, isEnding };
    const over = (): void => {
      this.#current = undefined;
      resolve();
    };
    let file: FileHandle | undefined;
    try {
      // Beside the data file, where nobody else can enter and the room is known.
      file = await namelessFile(`${this.#path}.backup-${randomUUID()}`);
      await this.#noteTime();
      const bytes = await this.#fill(file, signal);
      const sha256 = await digestOf(file, this.#closing.signal, signal);
      this.#closing.signal.throwIfAborted();
      copied = new CopiedFile(file, bytes, sha256, this.#closing.signal, over);
      return copied;
    } catch (error) {
      await file?.close();
      over();
      throw asUnavailable(error);
    }
  }

  /** To be called while the store still answers: what is made or read ends. */
  async end(): Promise<void> {
    this.#closing.abort(new EvregError("unavailable", "The server stopped before the backup was made."));
    await this.#current?.over;
  }

  /** Only once the data file is let go of. */
  async close(): Promise<void> {
    await this.#source?.close();
  }

  /** Waits for one that is about to be over, which is the one before of a caller who asks for the next. */
  async #assertFree(): Promise<void> {
    while (this.#current !== undefined) {
      if (!this.#current.isEnding()) throw busy();
      await this.#current.over;
    }
    if (this.#closing.signal.aborted) throw new EvregError("unavailable", "The store is closed.");
  }

  /** So that a restore knows how old it is; see `id-reservation.ts`. Without, it takes it for older. */
  async #noteTime(): Promise<void> {
    await this.#supervisor.write(singleWrite("noteBackup", this.#clock.now())).catch(() => undefined);
  }

  async #fill(target: FileHandle, signal: AbortSignal | undefined): Promise<number> {
    const source = (this.#source ??= await openBeside(this.#path, this.#file));
    const signals = [this.#closing.signal, ...(signal === undefined ? [] : [signal])];
    return liveCopy({
      source,
      target,
      log: this.#log(),
      freeBytes: () => freeBytesOf(dirname(this.#path)),
      signal: AbortSignal.any(signals),
    });
  }

  #log(): LogAsk {
    const log = `${realpathSync(this.#path)}-wal`;
    return {
      hold: () => this.#ask("holdLog") as Promise<number>,
      move: (since) => this.#ask("moveLog", log, since) as Promise<MovedLog>,
      release: () => this.#ask("releaseLog") as Promise<void>,
    };
  }

  async #ask(name: string, ...args: readonly unknown[]): Promise<unknown> {
    return (await this.#supervisor.read(name, args)).value;
  }
}

class CopiedFile implements Backup {
  readonly bytes: number;
  readonly sha256: string;
  readonly #file: FileHandle;
  readonly #closing: AbortSignal;
  readonly #over: () => void;
  #closed: Promise<void> | undefined;

  constructor(file: FileHandle, bytes: number, sha256: string, closing: AbortSignal, over: () => void) {
    this.#file = file;
    this.bytes = bytes;
    this.sha256 = sha256;
    this.#closing = closing;
    this.#over = over;
    closing.addEventListener("abort", this.#onClosing);
  }

  content(): AsyncIterable<Uint8Array> {
    return piecesOf(this.#file, this.#closing);
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  close(): Promise<void> {
    this.#closing.removeEventListener("abort", this.#onClosing);
    return (this.#closed ??= letGo(this.#file, this.bytes).finally(this.#over));
  }

  readonly #onClosing = (): void => void this.close();
}

async function* piecesOf(file: FileHandle, closing: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let at = 0; ;) {
    closing.throwIfAborted();
    // A buffer of its own: whoever takes it may still be sending it when the next is read.
    const piece = Buffer.allocUnsafe(READ_BYTES);
    const { bytesRead } = await file.read(piece, 0, READ_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

/** The room of a GB given back at once holds up every fsync on its disk. */
async function letGo(file: FileHandle, bytes: number): Promise<void> {
  try {
    for (let left = bytes - FREED_BYTES; left > 0; left -= FREED_BYTES) await file.truncate(left);
  } finally {
    await file.close();
  }
}

async function digestOf(file: FileHandle, ...signals: (AbortSignal | undefined)[]): Promise<string> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (let at = 0; ;) {
    for (const signal of signals) signal?.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, READ_BYTES, at);
    if (bytesRead === 0) return hash.digest("hex");
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}

function busy(): EvregError {
  return new EvregError(
    "conflict",
    "Another backup is being made or read just now; try again when it has ended.",
  );
}

function asUnavailable(error: unknown): unknown {
  if (error instanceof EvregError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== "string") return error;
  const why = code === "ENOSPC" || code === "EDQUOT" ? "the disk of the data is full" : code;
  return new EvregError(
    "unavailable",
    `The backup could not be made (${why}). Nothing was changed; try again once that is mended.`,
    {},
    { cause: error },
  );
}
