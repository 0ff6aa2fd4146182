import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { EvregError } from "../../domain/error.ts";
import { isSameFile, keptByRestores } from "../../runtime/left-by-restore.ts";
import { syncFolderOf } from "../../runtime/replace-file.ts";

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
    throw isThere(error) ? inUse() : error;
  }
  syncFolderOf(file);
}

/**
 * Gives a whole file the place of the data file, which stays as `kept`. Wherever it is cut off, the old data or the new
 * are in their place; on a file system without second names there may be none for a moment, and no start makes an empty
 * file then (see `cut-off-restore.ts`).
 * @throws EvregError `conflict` when another restore at the same time keeps it by this name
 */
export function takePlaceOf(file: string, copy: string, kept: string, inUse: () => EvregError): void {
  const hasFile = existsSync(file);
  if (existsSync(`${kept}-wal`)) throw inUse();
  const isNamedTwice = hasFile && namedTwice(file, kept, inUse);
  // Beside the restored file it would be taken for that one's. There is none but that of a file that could not be settled.
  if (existsSync(`${file}-wal`)) {
    syncFolderOf(file);
    renameSync(`${file}-wal`, `${kept}-wal`);
  }
  // That no log is there is stored before the other file comes: one that came back would be taken for that file's.
  syncFolderOf(file);
  if (hasFile && !isNamedTwice) {
    renameSync(file, kept);
    syncFolderOf(file);
  }
  renameSync(copy, file);
  syncFolderOf(file);
  dropFurtherNames(kept);
}

function namedTwice(file: string, kept: string, inUse: () => EvregError): boolean {
  try {
    return linked(file, kept);
  } catch (error) {
    throw isThere(error) ? inUse() : error;
  }
}

function isThere(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EEXIST";
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
