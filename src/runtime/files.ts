import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

/**
 * Opens a file for `work`, then closes it.
 * @param mode of a file that is made
 * @throws what the system says
 */
export function withFile<T>(
  path: string,
  flags: string | number,
  work: (descriptor: number) => T,
  mode?: number,
): T {
  const descriptor = openSync(path, flags, mode);
  try {
    return work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Replaces a file by a text in one step, readable by its owner only; when it fails, nothing remains.
 * @param textOf makes the text, which may name the number of the new file
 * @param options `durable`: it survives a power cut once this is done, for what cannot be made again
 * @throws what the system says
 */
export function replaceFile(
  path: string,
  textOf: (inode: number) => string,
  options: { durable: boolean },
): void {
  // Where others may write too, a name that they can guess may be a link of theirs.
  const temporary = `${path}.${randomUUID()}`;
  const write = (file: number): void => {
    writeFileSync(file, textOf(fstatSync(file).ino));
    if (options.durable) fsyncSync(file);
  };
  try {
    withFile(temporary, "wx", write, 0o600);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  if (options.durable) syncFolderOf(path);
}

/** Answers how many bytes are free on the disk of the folder that a path is in. */
export function freeBytesAt(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path));
  return bavail * bsize;
}

/** A folder that this user may not read, and a file system that has no fsync for folders. */
const CANNOT_SYNC = new Set(["EACCES", "EPERM", "EINVAL", "ENOTSUP", "EOPNOTSUPP"]);

/**
 * Makes the creation, renaming or removal of a file survive a power cut. An fsync of the file stores only its content.
 * @throws what the system says
 */
export function syncFolderOf(path: string): void {
  // Folders cannot be opened there.
  if (process.platform === "win32") return;
  try {
    withFile(dirname(path), "r", fsyncSync);
  } catch (error) {
    if (!CANNOT_SYNC.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

/**
 * Makes a folder that only this user can enter, with those above it, so that they survive a power cut. What exists, of
 * whatever kind, stays as it is. Not by Node's `recursive`, which never ends under a folder that cannot have children, as in
 * `/proc`.
 * @param mode other permissions, less those of the process's umask
 * @throws what the system says
 */
export function makeFolder(folder: string, mode = 0o700): void {
  try {
    makeOne(folder, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    const parent = dirname(folder);
    if (code !== "ENOENT" || parent === folder) throw error;
    makeFolder(parent, mode);
    makeOne(folder, mode);
  }
}

function makeOne(folder: string, mode: number): void {
  mkdirSync(folder, { mode });
  syncFolderOf(folder);
}

// Who may have written a file or folder. Where the system has no owners (Windows), everything counts as this user's.

/** Whether it belongs to this user, or to root, who can do anything anyway. */
export function isOurs({ uid }: Pick<Stats, "uid">): boolean {
  const user = process.getuid?.();
  return user === undefined || uid === user || uid === 0;
}

/** Whether its group, or anybody by an access list, may write to it. */
export function othersMayWrite({ mode }: Pick<Stats, "mode">): boolean {
  return process.platform !== "win32" && (mode & 0o022) !== 0;
}

/** A file's content, with its owner, its time and its number at that moment. */
interface OwnedText extends Pick<Stats, "uid" | "mode" | "mtimeMs" | "ino"> {
  readonly text: string;
}

/**
 * Reads a small regular file. Follows no link, and never waits for a pipe.
 * @throws what the system says, or an `Error` when it is no such file
 */
export function readOwned(path: string, maxBytes: number): OwnedText {
  // Windows lacks the last two, and needs neither.
  return withFile(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK, (file) => {
    const stats = fstatSync(file);
    if (!stats.isFile() || stats.size > maxBytes) throw new Error(`${path} is not a small file`);
    const { uid, mode, mtimeMs, ino } = stats;
    return { text: readFileSync(file, "utf8"), uid, mode, mtimeMs, ino };
  });
}

/** 0 where there is none. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
