import { randomUUID } from "node:crypto";
import { closeSync, fstatSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Puts a text in a file's place in one step, readable by its owner only; when it fails, nothing is left behind.
 * @param options `durable`: it survives a cut of the power once this is done, for what cannot be made again
 * @throws what the system says
 */
export function replaceFile(path: string, text: string, options: { durable: boolean }): void {
  // Where others may write too, a name they could guess might be a link of theirs by now.
  const temporary = `${path}.${randomUUID()}`;
  try {
    const file = openSync(temporary, "wx", 0o600);
    try {
      writeSync(file, text);
      if (options.durable) fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  if (options.durable) syncFolderOf(path);
}

/**
 * Has an open file survive a cut of the power, with its name. A pipe or a device has nothing to bring to a disk.
 * @throws what the system says
 */
export function syncFile(descriptor: number, path: string): void {
  if (!fstatSync(descriptor).isFile()) return;
  fsyncSync(descriptor);
  syncFolderOf(path);
}

/** A folder that this user may not read, and a file system that has no fsync for folders. */
const CANNOT_SYNC = new Set(["EACCES", "EPERM", "EINVAL", "ENOTSUP", "EOPNOTSUPP"]);

/**
 * Has the name of a file survive a cut of the power: that it was made, renamed or removed. An fsync of the file alone
 * stores what is in it, and its name only by luck.
 * @throws what the system says
 */
export function syncFolderOf(path: string): void {
  // Folders cannot be opened there.
  if (process.platform === "win32") return;
  try {
    const folder = openSync(dirname(path), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  } catch (error) {
    if (!CANNOT_SYNC.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
