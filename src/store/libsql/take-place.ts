import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { EvregError } from "../../domain/error.ts";
import { isSameFile, keptByRestores } from "../../runtime/left-by-restore.ts";

/**
 * Gives a whole file the place of the data file, where there is none or an empty one. By a second name, which never takes
 * the place of a file that came meanwhile.
 * @throws EvregError `conflict` when one came
 */
export function takeFreePlace(copy: string, file: string, inUse: () => EvregError): void {
  if (statSync(file, { throwIfNoEntry: false })?.size === 0) rmSync(file);
  try {
    if (!linked(copy, file)) renameSync(copy, file);
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "EEXIST" ? inUse() : error;
  }
  makeNamesDurable(file);
}

/**
 * Gives a whole file the place of the data file, which stays as `kept`. Wherever it is cut off, the old data or the new
 * are in their place; on a file system without second names there may be none for a moment, and no start makes an empty
 * file then (see `cut-off-restore.ts`).
 */
export function takePlaceOf(file: string, copy: string, kept: string): void {
  const hasFile = existsSync(file);
  const isNamedTwice = hasFile && linked(file, kept);
  if (isNamedTwice) makeNamesDurable(file);
  // Beside the restored file it would be taken for that one's. There is none but that of a file that could not be settled.
  if (existsSync(`${file}-wal`)) {
    renameSync(`${file}-wal`, `${kept}-wal`);
    makeNamesDurable(file);
  }
  if (hasFile && !isNamedTwice) renameSync(file, kept);
  renameSync(copy, file);
  makeNamesDurable(file);
  dropFurtherNames(kept);
}

/** Of the kept data, names that restores before gave it and were cut off then: as copies they would be counted and kept. */
function dropFurtherNames(kept: string): void {
  const folder = dirname(kept);
  for (const name of keptByRestores(readdirSync(folder))) {
    const path = join(folder, name);
    if (name !== basename(kept) && statSync(kept).nlink > 1 && isSameFile(path, kept)) rmSync(path);
  }
}

/** @returns false where the file system has no second names */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EPERM" || code === "ENOTSUP" || code === "EOPNOTSUPP") return false;
    throw error;
  }
}

/** Has the names in a file's folder survive a cut of the power, where a folder can be opened. */
function makeNamesDurable(file: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(dirname(file), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
