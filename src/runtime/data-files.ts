import { lstatSync, readSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError } from "../domain/error.ts";
import { sizeOf, withFile } from "./files.ts";

export const DATA_FILE = "evreg.db";
/** Says who has the folder (see `owner-file.ts`). */
export const OWNER_FILE = "owner.json";
/** Holds the first admin token, for commands on this machine. */
export const TOKEN_FILE = "token";

/** Beside a file with one of evreg's names, each of these shows that the folder is a data folder. */
const MARKS = [DATA_FILE, `${DATA_FILE}-wal`, OWNER_FILE, TOKEN_FILE];

/** The names that evreg gives its files in a data folder, but for those of backups. */
export const OWN_FILE_NAME =
  /^(?:evreg\.db(?:-(?:wal|shm|journal)|\.(?:(?:before|unfinished|backup|cut-short|moved)-.*|arriving(?:-(?:wal|shm|journal))?))?|(?:token|owner\.json)(?:\..*)?)$/;

/** What the engine has beside a database. */
const LOG_NAME = /-(?:wal|shm|journal)$/;

/**
 * Refuses to write to a file that evreg has in a data folder, by whatever path, and to a database that a data file may be a link
 * to.
 * @throws EvregError `usage`
 */
export function mustNotBeDataFile(path: string): void {
  if (!isInDataFolder(path) && !isWrittenWithLog(path)) return;
  throw new EvregError(
    "usage",
    `${path} is a file of an evreg data folder, so nothing was written to it: what is in it would be lost. Name another file.`,
    { file: path },
  );
}

function isInDataFolder(path: string): boolean {
  const target = realPathOf(path);
  const name = basename(target);
  // A data file behind a link may have any name, and its log is beside it.
  if (LOG_NAME.test(name)) return true;
  if (!OWN_FILE_NAME.test(name)) return false;
  return MARKS.some((mark) => mark !== name && exists(join(dirname(target), mark)));
}

const MAGIC = "SQLite format 3\0";
/** This byte of a database is 2 where it is written with a log beside it, as a backup never is. */
const FORMAT_AT = MAGIC.length + 2;
const WITH_LOG = 2;

function isWrittenWithLog(path: string): boolean {
  // While a database is open, its log is beside it. Closing the file would then drop the locks that this process may have on it.
  if (exists(`${realPathOf(path)}-wal`)) return true;
  if (sizeOf(path) === 0) return false;
  const header = Buffer.alloc(FORMAT_AT + 1);
  try {
    withFile(path, "r", (descriptor) => readSync(descriptor, header, 0, header.length, 0));
  } catch {
    // Whoever may only write to it learns what the system says when that is tried.
    return false;
  }
  return header.toString("latin1", 0, MAGIC.length) === MAGIC && header[FORMAT_AT] === WITH_LOG;
}

/** Where the links of a path lead; the file itself need not be there. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Neither is its folder, perhaps: then nothing can be written there anyway.
    return exists(dirname(path)) ? join(realpathSync(dirname(path)), basename(path)) : path;
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
