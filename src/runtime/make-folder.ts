import { mkdirSync, rmdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder that only this user can enter, with those above it; what is there already, of whatever kind, stays as it
 * is. Not Node's `recursive`, which never ends where the system denies an existing folder its children, as in `/proc`.
 * @returns the folders it made, the innermost first
 * @throws what the system says
 */
export function makeFolder(folder: string): readonly string[] {
  try {
    mkdirSync(folder, { mode: 0o700 });
    return [folder];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return [];
    const parent = dirname(folder);
    if (code !== "ENOENT" || parent === folder) throw error;
    const above = makeFolder(parent);
    mkdirSync(folder, { mode: 0o700 });
    return [folder, ...above];
  }
}

/** Takes back what `makeFolder` made, as far as nothing is in there. */
export function removeMade(folders: readonly string[]): void {
  try {
    for (const folder of folders) rmdirSync(folder);
  } catch {
    // Somebody else has put something there, which stays.
  }
}
