import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder that only this user can enter, with those above it; what is there already, of whatever kind, stays as it
 * is. Not Node's `recursive`, which never ends where the system denies an existing folder its children, as in `/proc`.
 * @throws what the system says
 */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    const parent = dirname(folder);
    if (code !== "ENOENT" || parent === folder) throw error;
    makeFolder(parent);
    mkdirSync(folder, { mode: 0o700 });
  }
}
