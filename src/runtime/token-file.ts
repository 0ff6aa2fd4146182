import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { readOwned } from "./ownership.ts";
import { replaceFile, syncFolderOf } from "./replace-file.ts";

/** The file of the data folder that holds the first admin token, for commands on this machine. */
const TOKEN_FILE = "token";
const MAX_BYTES = 64 * 1024;

/** Its path, if this data folder has it. */
export function tokenFileOf(folder: string): string | undefined {
  const path = join(folder, TOKEN_FILE);
  return existsSync(path) ? path : undefined;
}

/**
 * Gives the file another name beside it, when there is one: its token is not of this data any more.
 * @param ending of its new name
 */
export function setTokenFileAside(folder: string, ending: string): string | null {
  const path = tokenFileOf(folder);
  if (path === undefined) return null;
  const aside = `${path}.${ending}`;
  renameSync(path, aside);
  syncFolderOf(path);
  return aside;
}

/** Puts the token in place in one step, readable by its owner only; it survives a cut of the power once this is done. */
export function writeTokenFile(folder: string, token: string): string {
  const path = join(folder, TOKEN_FILE);
  replaceFile(path, `${token}\n`, { durable: true });
  return path;
}

/**
 * The token of this data folder, or `undefined` when there is none that may be read. A link is none: it could lead to
 * another secret of this user.
 * @param user whose it must be; anybody's when not given
 */
export function readTokenFile(folder: string, user?: number): string | undefined {
  try {
    const { text, uid } = readOwned(join(folder, TOKEN_FILE), MAX_BYTES);
    const token = text.trim();
    return token === "" || (user !== undefined && uid !== user) ? undefined : token;
  } catch {
    return undefined;
  }
}
