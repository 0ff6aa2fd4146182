import { existsSync, lstatSync, readdirSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { syncFolderOf } from "../../../runtime/files.ts";

// What replaces the data file is written whole under another name first. Then it is renamed to say that it is whole and what the
// file before will be called, as in `evreg.db.next-before-restore-20260301T120000000Z`. Only then the data file gets that other
// name, and the new one its name. Wherever this is cut off, the old data or the new are at their path, or the next start
// finishes it.

const NEXT = ".next-";

/** Removes a file that did not become the data file, with whatever the engine put beside it. */
export function removeCopy(copy: string): void {
  for (const path of [copy, `${copy}-wal`, `${copy}-shm`, `${copy}-journal`]) rmSync(path, { force: true });
}

/**
 * Gives a whole copy that is on the disk the name of the data file. The file before, with its log, stays beside it.
 * @param keptAs how its name goes on
 * @returns the path of the file before
 */
export function replaceFile(file: string, copy: string, keptAs: string): string {
  const next = `${file}${NEXT}${keptAs}`;
  renameSync(copy, next);
  syncFolderOf(file);
  moveIfThere(file, keptOf(next));
  finishReplacement(file);
  return keptOf(next);
}

/**
 * Finishes a replacement that was cut off after the old data file got its other name. Earlier ones changed nothing: what they
 * left is a copy that nobody needs.
 */
export function finishReplacement(file: string): void {
  for (const path of [file, fileBehindLink(file)]) {
    const next = pendingReplacement(path);
    if (next === undefined) continue;
    // Only a file whose log could not be moved into it has one. Beside the new file it would be taken for that one's.
    moveIfThere(`${path}-wal`, `${keptOf(next)}-wal`);
    moveIfThere(next, path);
  }
}

/** The whole file that is to become the data file, where there is none at the path any more. */
export function pendingReplacement(file: string): string | undefined {
  if (existsSync(file) || !existsSync(dirname(file))) return undefined;
  const names = readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}${NEXT}`));
  const newest = names.toSorted().at(-1);
  return newest === undefined ? undefined : join(dirname(file), newest);
}

function keptOf(next: string): string {
  return next.replace(NEXT, ".");
}

/** Another process may be finishing the same. The name is on the disk before anything that relies on it. */
function moveIfThere(from: string, to: string): void {
  if (!existsSync(from)) return;
  renameSync(from, to);
  syncFolderOf(to);
}

/** Where the data file itself is: it may be a link to another disk, on which what replaces it belongs. */
export function fileBehindLink(file: string): string {
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? resolve(dirname(file), readlinkSync(file)) : file;
}
