import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError } from "../domain/error.ts";

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

/**
 * Refuses to write to a file that evreg has in a data folder, by whatever path.
 * @throws EvregError `usage`
 */
export function mustNotBeDataFile(path: string): void {
  if (!isInDataFolder(path)) return;
  throw new EvregError(
    "usage",
    `${path} is a file of an evreg data folder, so nothing was written to it: what is in it would be lost. Name another file.`,
    { file: path },
  );
}

function isInDataFolder(path: string): boolean {
  const target = realPathOf(path);
  const name = basename(target);
  if (!OWN_FILE_NAME.test(name)) return false;
  return MARKS.some((mark) => mark !== name && exists(join(dirname(target), mark)));
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
