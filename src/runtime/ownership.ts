import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";

// Whose word a file or folder is. Where the system has no such owners (Windows), everything counts as this user's.

/** Whether it belongs to this user, or to root, who can do anything anyway. */
export function isOurs({ uid }: Pick<Stats, "uid">): boolean {
  const user = process.getuid?.();
  return user === undefined || uid === user || uid === 0;
}

/** Whether its group or everybody may write to it; an access list that lets anybody else do so counts as its group. */
export function othersMayWrite({ mode }: Pick<Stats, "mode">): boolean {
  return process.platform !== "win32" && (mode & 0o022) !== 0;
}

/** A file's content with whom it belonged to at that moment. */
export interface OwnedText {
  readonly text: string;
  readonly uid: number;
  readonly mode: number;
}

/**
 * Reads a small regular file. Links are not followed, and a pipe does not keep anybody waiting.
 * @throws what the system says, or an `Error` when it is no such file
 */
export function readOwned(path: string, maxBytes: number): OwnedText {
  // Windows lacks the last two, and has neither links nor pipes that would need them here.
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile() || stats.size > maxBytes) throw new Error(`${path} is not a small file`);
    return { text: readFileSync(file, "utf8"), uid: stats.uid, mode: stats.mode };
  } finally {
    closeSync(file);
  }
}
