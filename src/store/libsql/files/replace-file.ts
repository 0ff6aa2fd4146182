import { existsSync, linkSync, lstatSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { sizeOf, syncFolderOf } from "../../../runtime/files.ts";

/**
 * Gives a whole copy that is on the disk the name of the data file. The file before stays beside it.
 *
 * It gets a second name, and then the copy takes the first one in one step: cut off anywhere, this leaves the old data or the new
 * at their path. A log that could not be moved into the old file has to go with that file, as it would be taken for the new
 * one's. Then, and where files cannot have two names, no data file is there for a moment, and a start that finds none refuses
 * (see `earlier-data.ts`).
 * @param keptAs how the name of the file before goes on
 * @returns the path of the file before
 */
export function replaceFile(file: string, copy: string, keptAs: string): string {
  const kept = `${file}.${keptAs}`;
  const log = `${file}-wal`;
  if (existsSync(file) && (sizeOf(log) > 0 || !isLinked(file, kept))) move(file, kept);
  if (sizeOf(log) > 0) move(log, `${kept}-wal`);
  move(copy, file);
  return kept;
}

function isLinked(file: string, kept: string): boolean {
  try {
    rmSync(kept, { force: true });
    linkSync(file, kept);
    syncFolderOf(kept);
    return true;
  } catch {
    return false;
  }
}

/** Renames a file; the new name is on the disk before anything that relies on it. */
export function move(from: string, to: string): void {
  renameSync(from, to);
  syncFolderOf(to);
}

/** Removes a file that did not become the data file, with whatever the engine put beside it. */
export function removeCopy(copy: string): void {
  for (const path of [copy, `${copy}-wal`, `${copy}-shm`, `${copy}-journal`]) rmSync(path, { force: true });
}

/** Answers where the data file itself is: it may be a link to another disk, on which what replaces it belongs. */
export function fileBehindLink(file: string): string {
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? resolve(dirname(file), readlinkSync(file)) : file;
}
