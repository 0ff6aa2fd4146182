import { realpathSync } from "node:fs";

/**
 * The data folders this process has open, by their real paths.
 *
 * POSIX locks belong to the process and go when it closes any descriptor of the file: looking into a data file this
 * process has open itself would set it free for others without anyone noticing. So whoever is about to touch one looks
 * here first. Kept on the global object, as several copies of this module may be loaded.
 */
const KEY = Symbol.for("evreg.heldFolders");

function held(): Set<string> {
  const holder = globalThis as { [KEY]?: Set<string> };
  return (holder[KEY] ??= new Set());
}

/** Takes the folder for this process; `undefined` when it has it already. The answer gives it back. */
export function holdFolder(folder: string): (() => void) | undefined {
  const path = realpathSync(folder);
  if (held().has(path)) return undefined;
  held().add(path);
  return () => held().delete(path);
}
