import {
  type BigIntStats,
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readvSync,
  realpathSync,
  renameSync,
  statSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { toIso } from "../../../runtime/clock.ts";
import { syncFolderOf } from "../../../runtime/files.ts";
import { EngineFailure } from "./sql.ts";

/** Which file it is, whatever it is called. */
export interface FileId {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** The engine has a file open that is not at its path any more. */
export class DisplacedFile extends EngineFailure {
  constructor(message: string) {
    super("fatal", message);
  }
}

/** Older than this, a folder's times tell of every later change: no file system counts them more coarsely. */
const SETTLED_NS = 3_000_000_000n;

/** By looking only: opening and closing the data file would drop the process's locks on it (see `files/data-folder.ts`). */
export function fileIdAt(path: string): FileId | undefined {
  const found = look(path);
  return found === undefined ? undefined : { dev: found.dev, ino: found.ino };
}

/**
 * Holds the open data file and its log to their paths. The system lets both be removed, moved or replaced while they
 * are open; what is committed then goes where no later start would find it, and nothing else fails.
 *
 * The folder tells by its times that nothing in it came, went or was renamed. Only when it has changed are the files
 * looked at: current Linux gives a file that was looked at a new time with its next write, and an fsync of the log then
 * has to store that as well. Measured on ext4: 5 µs a look at the folder, 70 µs a commit for looking at the log. The size
 * of the data file is looked at each time, as nothing else tells that it was cut short; that one is not fsync'd by a commit.
 */
export class FilePlace {
  /** The data file. */
  readonly id: FileId;
  readonly #path: string;
  readonly #folder: string;
  readonly #isLink: boolean;
  readonly #realPath: string;
  readonly #logPath: string;
  readonly #written: WrittenLog;
  readonly #nowMs: () => number;
  /** The data file only grows. */
  #bytes = 0n;
  /** Unknown until the engine has made it, with the first commit into a file that was empty. */
  #log: FileId | undefined;
  /** The folder as it was when both files were last found in place, once its times could be relied on. */
  #settled: BigIntStats | undefined;

  /**
   * @param path of the data file, which the engine has open by now
   * @param id which file was there before the engine opened it
   * @param nowMs the time as the file system has it
   */
  constructor(path: string, id: FileId | undefined, nowMs: () => number = Date.now) {
    const there = id ?? fileIdAt(path);
    if (there === undefined) throw displaced(path);
    this.id = there;
    this.#path = path;
    this.#folder = dirname(path);
    this.#isLink = lstatSync(path).isSymbolicLink();
    // The engine follows a link, and puts the log beside the file itself.
    this.#realPath = realpathSync(path);
    this.#logPath = `${this.#realPath}-wal`;
    this.#written = new WrittenLog(this.#logPath);
    this.#nowMs = nowMs;
  }

  /**
   * @throws DisplacedFile when one of them is not at its path any more
   * @throws EngineFailure `fatal` when the data file was cut short
   */
  check(): void {
    const { size = 0n } = look(this.#path) ?? {};
    // Before the files: what happens after this look makes the next one differ.
    const folder = look(this.#folder);
    if (folder !== undefined && isUnchanged(folder, this.#settled)) return this.#mustNotBeShorter(size);
    mustBeAt(this.#path, this.id);
    if (this.#log === undefined) this.#log = fileIdAt(this.#logPath);
    else if (!isAt(this.#logPath, this.#log)) throw logDisplaced(this.#logPath);
    // A link may lead through other folders, of which this one tells nothing.
    this.#settled = folder !== undefined && !this.#isLink && this.#isOld(folder) ? folder : undefined;
    this.#mustNotBeShorter(size);
  }

  #mustNotBeShorter(bytes: bigint): void {
    if (bytes < this.#bytes) throw cutShort(this.#realPath, this.#bytes, bytes, this.#nowMs());
    this.#bytes = bytes;
  }

  /**
   * Of the log, what is told by nothing but reading it; see `WrittenLog`.
   * @param isCommitted whether a transaction has just been added to it
   * @throws EngineFailure `fatal` when it was cut short
   */
  checkLog(isCommitted: boolean): void {
    let isWhole = true;
    try {
      isWhole = isCommitted ? this.#written.follow() : this.#written.isWhole();
    } catch {
      // The disk failed to read it, which says nothing of what is there.
      this.#written.forget();
    }
    if (!isWhole) throw logCutShort(this.#realPath, this.#nowMs());
  }

  /** How many pages the log had before the last commit, which was added behind them. */
  get logGrownFrom(): number {
    return this.#written.grownFrom;
  }

  /** To be called when the log was emptied, or a transaction failed in it. */
  forgetLog(): void {
    this.#written.forget();
  }

  close(): void {
    this.#written.close();
  }

  /**
   * Has the log be on the disk as it is now. No lock is ever held on it, so opening and closing it is harmless.
   * @throws what the system says
   */
  syncLog(): void {
    let log: number;
    try {
      log = openSync(this.#logPath, "r+");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    try {
      fsyncSync(log);
    } finally {
      closeSync(log);
    }
  }

  #isOld({ mtimeNs, ctimeNs }: BigIntStats): boolean {
    const since = BigInt(Math.trunc(this.#nowMs())) * 1_000_000n - SETTLED_NS;
    return mtimeNs < since && ctimeNs < since;
  }
}

/** @throws DisplacedFile when another file than this is there, or none */
export function mustBeAt(path: string, id: FileId): void {
  if (!isAt(path, id)) throw displaced(path);
}

function isAt(path: string, id: FileId): boolean {
  const found = look(path);
  return found?.ino === id.ino && found.dev === id.dev;
}

/** What cannot be seen is no more in its place than what is gone. */
function look(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isUnchanged(folder: BigIntStats, before: BigIntStats | undefined): boolean {
  return (
    folder.ino === before?.ino &&
    folder.mtimeNs === before.mtimeNs &&
    folder.ctimeNs === before.ctimeNs &&
    folder.dev === before.dev
  );
}

/** Names without the folder: the reason is shown to anyone who asks for the server's health. */
function displaced(path: string): DisplacedFile {
  return new DisplacedFile(
    `the data file ${basename(path)} was removed, moved or replaced while evreg was running; ` +
      "put the right one back first, as the next start goes on with whatever it finds there",
  );
}

/** What is left of a data file, by the time it was found; a start without a data file looks for it. */
export const CUT_SHORT = ".cut-short-";

function cutShort(path: string, from: bigint, to: bigint, nowMs: number): EngineFailure {
  const cut = `the data file ${basename(path)} was cut from ${from} to ${to} bytes while evreg was running`;
  return new EngineFailure("fatal", `${cut}; ${setAside(path, nowMs)}`);
}

function logCutShort(path: string, nowMs: number): EngineFailure {
  const cut =
    `${basename(path)}-wal, which holds the newest part of the data, was cut short while evreg was running, ` +
    "and some of what was acknowledged is lost";
  return new EngineFailure("fatal", `${cut}; ${setAside(path, nowMs)}`);
}

/**
 * Sets what is left of the data file aside. At its path the engine would move the log into it when it closes it, with
 * nothing where either was cut, and the next start might go on with that.
 * @returns what to do next, for the message
 */
function setAside(path: string, nowMs: number): string {
  const left = `${path}${CUT_SHORT}${toIso(nowMs).replaceAll(/[-:.]/g, "")}`;
  try {
    renameSync(path, left);
    syncFolderOf(path);
    return `what is left of the data file is now ${basename(left)}, beside its log; restore a backup`;
  } catch {
    return "restore a backup before the next start, as what is left of the data is damaged";
  }
}

function logDisplaced(path: string): DisplacedFile {
  return new DisplacedFile(
    `${basename(path)}, which holds the newest part of the data, was removed, moved or replaced while evreg was ` +
      "running; leave the files of the data folder alone while evreg runs",
  );
}

const HEADER_BYTES = 32;
const MAGIC = 0x377f0682;
const SALTS_AT = 16;
const FRAME_HEADER_BYTES = 24;
const FRAME_BYTES = FRAME_HEADER_BYTES + 4_096;
/** In the header of a frame: how many pages the file has with it, in the last one of a commit; and the log's salts. */
const COMMIT_AT = 4;
const FRAME_SALTS_AT = 8;
const SALTS_BYTES = 8;

/**
 * Holds the log to what was written to it. The system lets it be cut short while it is open: the engine then writes on
 * behind where it was, with nothing but zeros between, takes those for pages, and moves them into the data file.
 *
 * So the head of the last commit's last frame is read again before and after each transaction, and must be as it was; only
 * a log that was started anew has another there, and other salts. Nothing asks for the log's length: current Linux would
 * then have the next fsync store its times as well (see above).
 */
class WrittenLog {
  readonly #path: string;
  readonly #found = Buffer.alloc(FRAME_HEADER_BYTES);
  readonly #last = Buffer.alloc(FRAME_HEADER_BYTES);
  #salts: Buffer = Buffer.alloc(SALTS_BYTES);
  /** Where the last frame of the last commit begins; 0 while none is known. */
  #lastAt = 0;
  #log: number | undefined;
  #grownFrom = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** @returns whether what `follow` found last is still there */
  isWhole(): boolean {
    if (this.#log === undefined || this.#lastAt === 0) return true;
    this.#readHead(this.#log, this.#lastAt);
    if (this.#found.equals(this.#last)) return true;
    const header = readHeader(this.#log);
    const isBegunAnew = isHeader(header) && !saltsIn(header, SALTS_AT).equals(this.#salts);
    if (isBegunAnew) this.#lastAt = 0;
    return isBegunAnew;
  }

  /**
   * Finds the commit that was just made. A log of some hundred new frames is found the end of in a dozen reads.
   * @returns whether what was found last before is still there
   */
  follow(): boolean {
    const log = (this.#log ??= openIfThere(this.#path));
    if (log === undefined) return true;
    const header = readHeader(log);
    if (!isHeader(header)) return this.#lastAt === 0;
    const salts = saltsIn(header, SALTS_AT);
    // Begun anew: what is far behind is still as it was.
    if (!salts.equals(this.#salts)) this.#lastAt = 0;
    else if (!this.isWhole()) return false;
    this.#salts = salts;
    const before = this.#lastAt === 0 ? HEADER_BYTES - FRAME_BYTES : this.#lastAt;
    this.#grownFrom = (before + FRAME_BYTES - HEADER_BYTES) / FRAME_BYTES;
    let newest = before;
    let step = FRAME_BYTES;
    for (; this.#isOurs(log, newest + step); step *= 2) newest += step;
    while (step > FRAME_BYTES) {
      step /= 2;
      if (this.#isOurs(log, newest + step)) newest += step;
    }
    // One that was undone may have left frames, which the next one writes over.
    for (; newest > before; newest -= FRAME_BYTES) {
      if (!this.#isOurs(log, newest) || this.#found.readUInt32BE(COMMIT_AT) === 0) continue;
      this.#found.copy(this.#last);
      this.#lastAt = newest;
      break;
    }
    return true;
  }

  /** How many pages it had before the last commit, which was added behind them; 0 where that began it anew. */
  get grownFrom(): number {
    return this.#grownFrom;
  }

  /** To be called when it was emptied, or may hold what was not committed. */
  forget(): void {
    this.#lastAt = 0;
    this.#grownFrom = 0;
  }

  close(): void {
    if (this.#log !== undefined) closeSync(this.#log);
    this.#log = undefined;
  }

  /** Whether a frame of this round begins there. */
  #isOurs(log: number, at: number): boolean {
    this.#readHead(log, at);
    return saltsIn(this.#found, FRAME_SALTS_AT).equals(this.#salts);
  }

  /** By another call than the engine reads with, so that a trial that has those fail (`disk-errors`) meets only the engine. */
  #readHead(log: number, at: number): void {
    this.#found.fill(0, readvSync(log, [this.#found], at));
  }
}

function isHeader(header: Buffer): boolean {
  const magic = header.readUInt32BE(0);
  return magic - (magic % 2) === MAGIC;
}

function saltsIn(header: Buffer, at: number): Buffer {
  return header.subarray(at, at + SALTS_BYTES);
}

function readHeader(log: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  readvSync(log, [header], 0);
  return header;
}

/** No lock is ever held on it, so opening and closing it is harmless. */
function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    return undefined;
  }
}
