import { type BigIntStats, realpathSync, renameSync, statSync } from "node:fs";
import { basename } from "node:path";
import { fileTimestamp } from "../../../runtime/clock.ts";
import { syncFolderOf } from "../../../runtime/files.ts";
import { EngineFailure } from "./sql.ts";

/** A log that was longer is cut to this when it restarts: twice the length at which the engine moves it into the file. */
export const LOG_LIMIT_BYTES = 32 * 1024 * 1024;

/** Which file it is, whatever its name. */
export interface FileId {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** The engine has a file open that is not at its path any more. */
export class MovedFile extends EngineFailure {}

/**
 * Answers which file is at a path, without opening it: closing the data file would drop the process's locks on it (see
 * `files/data-folder.ts`).
 */
export function fileIdAt(path: string): FileId | undefined {
  const stats = look(path);
  return stats === undefined ? undefined : { dev: stats.dev, ino: stats.ino };
}

/**
 * The log is looked at once in so long. On current Linux a look at it makes its next fsync store its times as well: 70 µs more
 * for a commit, on ext4.
 */
const LOG_CHECK_MS = 1_000;

/**
 * Checks that the open data file and its log are still at their paths, and no shorter. The system lets both be removed, moved,
 * replaced or cut while they are open. What is committed then goes where no later start would find it, and nothing else fails.
 * `docs/troubleshooting.md` promises that it is noticed of the data file before anything more is acknowledged, and of the log
 * at the first write a second later.
 */
export class FileGuard {
  /** The data file. */
  readonly id: FileId;
  readonly #path: string;
  /** The path without links, which the engine follows: the log is beside it. */
  readonly #realPath: string;
  readonly logPath: string;
  /** The length of the data file, which only grows. */
  #bytes = 0n;
  /** What the log was when it was last looked at. It is unknown until the engine has created it. */
  #log: BigIntStats | undefined;
  #logCheckedMs = -Infinity;

  /** @param path of the data file, which the engine has open by now */
  constructor(path: string, id: FileId) {
    this.id = id;
    this.#path = path;
    this.#realPath = realpathSync(path);
    this.logPath = `${this.#realPath}-wal`;
  }

  /**
   * @returns whether the log did not restart when it was time; `undefined` where it was not looked at
   * @throws MovedFile when one of them is not at its path any more
   * @throws EngineFailure `fatal` when one was cut short
   */
  check(): boolean | undefined {
    const stats = look(this.#path);
    if (!isFile(stats, this.id)) throw dataFileMoved(this.#path);
    if (stats.size < this.#bytes) throw this.#cutShort(this.#realPath);
    this.#bytes = stats.size;
    const nowMs = performance.now();
    if (nowMs - this.#logCheckedMs < LOG_CHECK_MS) return undefined;
    this.#logCheckedMs = nowMs;
    return this.#checkLog();
  }

  /** Forgets what the log was. To be called when it was emptied. */
  forgetLog(): void {
    this.#log = undefined;
  }

  #checkLog(): boolean {
    const stats = look(this.logPath);
    const before = this.#log;
    this.#log = stats;
    const isLong = (stats?.size ?? 0n) > LOG_LIMIT_BYTES;
    if (before === undefined) return isLong;
    if (!isFile(stats, before)) {
      const advice = "leave the files of the data folder alone while evreg runs";
      throw moved(`${basename(this.logPath)}, which holds the newest part of the data,`, advice);
    }
    // The engine cuts a longer log to the limit.
    if (stats.size < before.size && stats.size < LOG_LIMIT_BYTES) throw this.#cutShort(this.logPath);
    return isLong;
  }

  /**
   * Renames what is left of the data file. At its path the engine would move the damaged log into it when it closes, and the
   * next start might go on with that.
   */
  #cutShort(cut: string): EngineFailure {
    const aside = `${this.#realPath}.cut-short-${fileTimestamp(Date.now())}`;
    let next = "restore a backup before the next start, as what is left of the data is damaged";
    try {
      renameSync(this.#realPath, aside);
      syncFolderOf(this.#realPath);
      next = `what is left of the data file is now ${basename(aside)}, beside its log; restore a backup`;
    } catch {
      // The file stays where it is, as the message says.
    }
    return new EngineFailure("fatal", `${basename(cut)} was cut short while evreg was running; ${next}`);
  }
}

/** @throws MovedFile when another file than this is there, or none */
export function mustBeAt(path: string, id: FileId): void {
  if (!isAt(path, id)) throw dataFileMoved(path);
}

export function isAt(path: string, id: FileId): boolean {
  return isFile(look(path), id);
}

function isFile(stats: BigIntStats | undefined, id: FileId): stats is BigIntStats {
  return stats !== undefined && stats.ino === id.ino && stats.dev === id.dev;
}

/** Answers `undefined` for what cannot be seen, which is as bad as gone. */
function look(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function dataFileMoved(path: string): MovedFile {
  const advice = "put the right one back first, as the next start uses whatever is there";
  return moved(`the data file ${basename(path)}`, advice);
}

/** @param what without its folder, as the message is shown to anyone who requests the server's health */
function moved(what: string, advice: string): MovedFile {
  return new MovedFile("fatal", `${what} was removed, moved or replaced while evreg was running; ${advice}`);
}
