import { constants, statfsSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { EvregError } from "../../../domain/error.ts";
import type { LogPosition, MovedLog } from "../thread/checkpoints.ts";
import type { FileId } from "../thread/file-guard.ts";

/** What is asked of the thread that owns the file. */
export interface LogAsk {
  /** Answers the size of a page. */
  hold(): Promise<number>;
  move(since: LogPosition | undefined): Promise<MovedLog>;
  release(): Promise<void>;
}

interface LiveCopyDependencies {
  /** The data file, open for reading. */
  readonly source: FileHandle;
  /** Where it goes; empty. */
  readonly target: FileHandle;
  readonly log: LogAsk;
  /** Free bytes on the target's disk. */
  readonly freeBytes: () => number;
  readonly signal?: AbortSignal | undefined;
}

const CHUNK_BYTES = 1024 * 1024;
/** Stored on the disk before more is written: a commit's fsync waits for what others have written, seconds for a GB. */
const SYNC_BYTES = 8 * 1024 * 1024;
const MOVE_EVERY_MS = 100;
/** So few changed pages are copied while the log is held still. */
const FEW_PAGES = 512;
const MOST_ROUNDS = 8;
/** Left free for what is published meanwhile. */
const RESERVE_BYTES = 64 * 1024 * 1024;

/** In the first page: how many there are. */
const PAGES_AT = 28;

/**
 * Copies the data file while it is written to, without its owner's thread reading a byte of it.
 *
 * The engine changes the file only where it moves the log into it, and that thread then tells which pages. They are
 * copied again, until few are left; those are copied while the log is not moved, so that the file stands still. What came
 * out of a page that was being changed at that moment is no matter, as that page is told of.
 *
 * @returns the copy's bytes
 * @throws EvregError `unavailable` when there is no room or the store was opened anew; what `signal` gives
 */
export async function liveCopy(dependencies: LiveCopyDependencies): Promise<number> {
  const { log, source, target } = dependencies;
  const pageBytes = await log.hold();
  try {
    let { position } = await log.move(undefined);
    const { size } = await source.stat();
    mustHaveRoom(dependencies, size);
    const changed = new Set<number>();
    const note = (moved: MovedLog): void => {
      position = moved.position;
      for (const page of moved.pages) changed.add(page);
    };
    const copier = new Copier(dependencies, pageBytes);
    await whileMoving(
      async () => note(await log.move(position)),
      async () => {
        await copier.copy(0, size);
        for (let round = 0; changed.size > FEW_PAGES && round < MOST_ROUNDS; round += 1) {
          await copier.copyPages(taken(changed));
        }
      },
    );
    note(await log.move(position));
    await copier.copyPages(taken(changed));
    const first = Buffer.alloc(100);
    await target.read(first, 0, first.length, 0);
    const bytes = first.readUInt32BE(PAGES_AT) * pageBytes;
    await target.truncate(bytes);
    await makePlain(target);
    return bytes;
  } finally {
    await log.release();
  }
}

/** Asks for the log to be moved every so often while `work` goes on, so that it stays short. */
async function whileMoving(move: () => Promise<void>, work: () => Promise<void>): Promise<void> {
  const over = new AbortController();
  const moving = moveOften(move, over.signal);
  try {
    await work();
  } finally {
    over.abort();
    await Promise.allSettled([moving]);
  }
  await moving;
}

async function moveOften(move: () => Promise<void>, over: AbortSignal): Promise<void> {
  for (;;) {
    await pause(MOVE_EVERY_MS, undefined, { signal: over }).catch(() => undefined);
    if (over.aborted) return;
    await move();
  }
}

class Copier {
  readonly #dependencies: LiveCopyDependencies;
  readonly #pageBytes: number;
  readonly #buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  #unsynced = 0;

  constructor(dependencies: LiveCopyDependencies, pageBytes: number) {
    this.#dependencies = dependencies;
    this.#pageBytes = pageBytes;
  }

  async copy(from: number, to: number): Promise<void> {
    const { source, target, signal } = this.#dependencies;
    for (let at = from; at < to;) {
      signal?.throwIfAborted();
      const { bytesRead } = await source.read(this.#buffer, 0, Math.min(CHUNK_BYTES, to - at), at);
      // Past the end of a file that became shorter.
      if (bytesRead === 0) return;
      await target.write(this.#buffer, 0, bytesRead, at);
      at += bytesRead;
      await this.#sync(bytesRead);
    }
  }

  /** @param pages from 1 */
  async copyPages(pages: readonly number[]): Promise<void> {
    const sorted = pages.toSorted((one, other) => one - other);
    for (let first = 0; first < sorted.length;) {
      let end = first + 1;
      while (end < sorted.length && sorted[end] === sorted[end - 1]! + 1) end += 1;
      await this.copy((sorted[first]! - 1) * this.#pageBytes, sorted[end - 1]! * this.#pageBytes);
      first = end;
    }
  }

  async #sync(bytes: number): Promise<void> {
    this.#unsynced += bytes;
    if (this.#unsynced < SYNC_BYTES) return;
    this.#unsynced = 0;
    await this.#dependencies.target.datasync();
    mustHaveRoom(this.#dependencies, 0);
  }
}

function taken(pages: Set<number>): number[] {
  const all = [...pages];
  pages.clear();
  return all;
}

function mustHaveRoom({ freeBytes }: LiveCopyDependencies, bytes: number): void {
  const free = freeBytes();
  if (free >= bytes + RESERVE_BYTES) return;
  throw new EvregError(
    "unavailable",
    `There is no room for a copy of the data on its disk: ${free} bytes are free, and ${bytes + RESERVE_BYTES} are needed. Make room and try again; nothing was changed.`,
    { free, needed: bytes + RESERVE_BYTES },
  );
}

/** Free bytes on the disk of a folder, for this user. */
export function freeBytesOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** A file without a name, so that nothing is left of it however this process ends. */
export async function namelessFile(path: string): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_EXCL } = constants;
  const file = await open(path, O_RDWR | O_CREAT | O_EXCL, 0o600);
  try {
    await rm(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * The data file for reading. Closing it would drop the process's lock (see `data-folder.ts`), so it stays open until the
 * file is let go of.
 * @throws Error when it is not the file that the store has open
 */
export async function openBeside(path: string, file: FileId): Promise<FileHandle> {
  const source = await open(path, "r");
  const { dev, ino } = await source.stat({ bigint: true });
  if (dev === file.dev && ino === file.ino) return source;
  // Another file: closing it is nothing to the lock.
  await source.close();
  throw new EvregError("unavailable", `The data file ${path} is not the one that the store has open.`);
}

/** In the first page of a file: the formats in which it is written and read. */
const FORMAT_AT = 18;
/** Without a log. */
const PLAIN = Buffer.from([1, 1]);

/** Has a copy not ask for a log beside it, as it is whole by itself. Serving it makes it a file with a log again. */
export async function makePlain(copy: FileHandle): Promise<void> {
  const { size } = await copy.stat();
  if (size > FORMAT_AT) await copy.write(PLAIN, 0, PLAIN.length, FORMAT_AT);
}
