import { mkdirSync, rmdirSync } from "node:fs";
import { dirname } from "node:path";
import { syncFolderOf } from "./replace-file.ts";

/**
 * Makes a folder that only this user can enter, with those above it, so that they survive a cut of the power; what is there
 * already, of whatever kind, stays as it is. Not Node's `recursive`, which never ends where the system denies an existing folder its children, as in `/proc`.
 * @param mode other permissions, less those that the process gives nobody
 * @returns the folders it made, the innermost first
 * @throws what the system says
 */
export function makeFolder(folder: string, mode = 0o700): readonly string[] {
  try {
    makeOne(folder, mode);
    return [folder];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return [];
    const parent = dirname(folder);
    if (code !== "ENOENT" || parent === folder) throw error;
    const above = makeFolder(parent, mode);
    makeOne(folder, mode);
    return [folder, ...above];
  }
}

function makeOne(folder: string, mode: number): void {
  mkdirSync(folder, { mode });
  syncFolderOf(folder);
}

/** Takes back what `makeFolder` made, as far as nothing is in there. */
export function removeMade(folders: readonly string[]): void {
  try {
    for (const folder of folders) rmdirSync(folder);
  } catch {
    // Somebody else has put something there, which stays.
  }
}
