import { type BigIntStats, lstatSync, realpathSync, renameSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { fileTimestamp } from "../../../runtime/clock.ts";
import { syncFolderOf } from "../../../runtime/files.ts";
import { EngineFailure } from "./sql.ts";

/** Which file it is, whatever its name. */
export interface FileId {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** The engine has a file open that is not at its path any more. */
export class MovedFile extends EngineFailure {
  constructor(message: string) {
    super("fatal", message);
  }
}

/** A folder whose times are older than this shows every later change: no file system has a coarser clock. */
const CLOCK_STEP_NS = 3_000_000_000n;

/** Without opening it: closing the data file would drop the process's locks on it (see `files/data-folder.ts`). */
export function fileIdAt(path: string): FileId | undefined {
  const found = look(path);
  return found === undefined ? undefined : { dev: found.dev, ino: found.ino };
}

/**
 * Checks that the open data file and its log are still at their paths. The system lets both be removed, moved or replaced
 * while they are open. What is committed then goes where no later start would find it, and nothing else fails. That is promised in
 * `docs/troubleshooting.md`.
 *
 * The folder's times show that nothing in it was created, removed or renamed. Only when they have changed does this look
 * at the files: on current Linux a look at the log makes its next fsync store its times as well. Measured on ext4: 5 µs to
 * look at the folder, 70 µs more for a commit after a look at the log. The size of the data file is checked each time, as
 * nothing else shows that it was cut short; a commit does not fsync that file.
 */
export class FileGuard {
  /** The data file. */
  readonly id: FileId;
  /** Its path without links, which the engine follows: the log is beside it. */
  readonly realPath: string;
  readonly #path: string;
  readonly #folder: string;
  readonly #isLink: boolean;
  readonly #logPath: string;
  readonly #nowMs: () => number;
  /** The data file only grows. */
  #bytes = 0n;
  /** Unknown until the engine has created it, with the first commit into a file that was empty. */
  #log: FileId | undefined;
  /** The folder when both files were last found at their paths, once its times can be relied on. */
  #checked: BigIntStats | undefined;

  /**
   * @param path of the data file, which the engine has open by now
   * @param id the file that was there before the engine opened it
   * @param nowMs the time as the file system has it
   */
  constructor(path: string, id: FileId | undefined, nowMs: () => number = Date.now) {
    const found = id ?? fileIdAt(path);
    if (found === undefined) throw dataFileMoved(path);
    this.id = found;
    this.#path = path;
    this.#folder = dirname(path);
    this.#isLink = lstatSync(path).isSymbolicLink();
    this.realPath = realpathSync(path);
    this.#logPath = `${this.realPath}-wal`;
    this.#nowMs = nowMs;
  }

  /**
   * @throws MovedFile when one of them is not at its path any more
   * @throws EngineFailure `fatal` when the data file was cut short
   */
  check(): void {
    const { size = 0n } = look(this.#path) ?? {};
    // Before the files, so that the next look shows what happens after this one.
    const folder = look(this.#folder);
    if (folder === undefined || !isUnchanged(folder, this.#checked)) {
      mustBeAt(this.#path, this.id);
      if (this.#log === undefined) this.#log = fileIdAt(this.#logPath);
      else if (!isAt(this.#logPath, this.#log)) throw logMoved(this.#logPath);
      // A link may lead through other folders, of which this one shows nothing.
      this.#checked = folder !== undefined && !this.#isLink && this.#isOld(folder) ? folder : undefined;
    }
    if (size < this.#bytes) {
      const cut = `the data file ${basename(this.realPath)} was cut from ${this.#bytes} to ${size} bytes while evreg was running`;
      throw new EngineFailure("fatal", `${cut}; ${setAside(this.realPath, this.#nowMs())}`);
    }
    this.#bytes = size;
  }

  #isOld({ mtimeNs, ctimeNs }: BigIntStats): boolean {
    const since = BigInt(Math.trunc(this.#nowMs())) * 1_000_000n - CLOCK_STEP_NS;
    return mtimeNs < since && ctimeNs < since;
  }
}

/** @throws MovedFile when another file than this is there, or none */
export function mustBeAt(path: string, id: FileId): void {
  if (!isAt(path, id)) throw dataFileMoved(path);
}

function isAt(path: string, id: FileId): boolean {
  const found = look(path);
  return found?.ino === id.ino && found.dev === id.dev;
}

/** `undefined` for what cannot be seen, which is as bad as gone. */
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

/** Names without the folder: the reason is shown to anyone who requests the server's health. */
function dataFileMoved(path: string): MovedFile {
  return new MovedFile(
    `the data file ${basename(path)} was removed, moved or replaced while evreg was running; ` +
      "put the right one back first, as the next start uses whatever is there",
  );
}

function logMoved(path: string): MovedFile {
  return new MovedFile(
    `${basename(path)}, which holds the newest part of the data, was removed, moved or replaced while evreg was ` +
      "running; leave the files of the data folder alone while evreg runs",
  );
}

/** In the name of what is left of a data file. A start without a data file searches for it. */
export const CUT_SHORT = ".cut-short-";

/**
 * Renames what is left of the data file. At its path the engine would move the damaged log into it when it closes, and the
 * next start might go on with that.
 * @returns what to do next, for the message
 */
export function setAside(path: string, nowMs: number): string {
  const newPath = `${path}${CUT_SHORT}${fileTimestamp(nowMs)}`;
  try {
    renameSync(path, newPath);
    syncFolderOf(path);
    return `what is left of the data file is now ${basename(newPath)}, beside its log; restore a backup`;
  } catch {
    return "restore a backup before the next start, as what is left of the data is damaged";
  }
}
