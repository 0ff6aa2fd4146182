import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isSameFile, keptByRestores } from "../../runtime/left-by-restore.ts";
import { syncFolderOf } from "../../runtime/replace-file.ts";

/**
 * Gives a whole file the place of the data file, where there is none or an empty one. By a second name, which never takes
 * the place of a file that came meanwhile.
 * @throws what the system says, `EEXIST` when one came
 */
export function takeFreePlace(copy: string, file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.size === 0) rmSync(file);
  if (!linked(copy, file)) renameSync(copy, file);
  syncFolderOf(file);
}

/**
 * Gives a whole file the place of the data file, which stays as `kept`. Wherever it is cut off, the old data or the new
 * are in their place; on a file system without second names there may be none for a moment, and no start makes an empty
 * file then (see `cut-off-restore.ts`).
 * @throws what the system says, `EEXIST` when something is kept by this name already
 */
export function takePlaceOf(file: string, copy: string, kept: string): void {
  const hasFile = existsSync(file);
  const isNamedTwice = hasFile && linked(file, kept);
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
