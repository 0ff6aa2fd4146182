import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { replacedDataNames } from "../../../runtime/data-files.ts";
import { isSameFile, syncFolderOf } from "../../../runtime/files.ts";

/** What replaces the data file is made whole under another name first, with whatever the engine puts beside it. */
export function removeCopy(copy: string): void {
  for (const path of [copy, `${copy}-wal`, `${copy}-shm`, `${copy}-journal`]) rmSync(path, { force: true });
}

/**
 * Gives a whole copy the name of the data file, where there is none or an empty one. By a second name, which never
 * replaces a file that was created meanwhile.
 * @throws what the system says, `EEXIST` when one was
 */
export function moveToFreePath(copy: string, file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.size === 0) rmSync(file);
  if (!linked(copy, file)) renameSync(copy, file);
  syncFolderOf(file);
}

/**
 * Gives a whole copy the name of the data file, which is renamed to `replaced`. Wherever this is cut off, the old data or the
 * new are at the path; on a file system without second names there may be none for a moment, and no start creates an empty
 * file then (see `data-folder.ts`).
 * @throws what the system says, `EEXIST` when there is a file named `replaced` already
 */
export function replaceFile(file: string, copy: string, replaced: string): void {
  const hasFile = existsSync(file);
  const isLinked = hasFile && linked(file, replaced);
  // Only a file whose log could not be moved into it has one. Beside the new file it would be taken for that one's.
  if (existsSync(`${file}-wal`)) {
    syncFolderOf(file);
    renameSync(`${file}-wal`, `${replaced}-wal`);
  }
  // Stored before the new file comes: a log that came back would be taken for that file's.
  syncFolderOf(file);
  if (hasFile && !isLinked) {
    renameSync(file, replaced);
    syncFolderOf(file);
  }
  renameSync(copy, file);
  syncFolderOf(file);
  removeOtherNames(replaced);
}

/** Names that restores gave the replaced file before and were then cut off: they would be counted and kept as copies. */
function removeOtherNames(replaced: string): void {
  const folder = dirname(replaced);
  for (const name of replacedDataNames(readdirSync(folder))) {
    const path = join(folder, name);
    if (name !== basename(replaced) && statSync(replaced).nlink > 1 && isSameFile(path, replaced))
      rmSync(path);
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
