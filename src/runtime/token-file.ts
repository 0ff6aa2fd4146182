import {
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  openSync,
  writeSync,
  fsyncSync,
  closeSync,
} from "node:fs";
import { join } from "node:path";

/** The file of the data folder that holds the first admin token, for commands on this machine. */
const TOKEN_FILE = "token";

/** Its path, if this data folder has it. */
export function tokenFileOf(folder: string): string | undefined {
  const path = join(folder, TOKEN_FILE);
  return existsSync(path) ? path : undefined;
}

/** Puts the token in place in one step, readable by its owner only, and on disk before it is named. */
export function writeTokenFile(folder: string, token: string): string {
  const path = join(folder, TOKEN_FILE);
  const temporary = `${path}.${process.pid}`;
  try {
    rmSync(temporary, { force: true });
    const file = openSync(temporary, "wx", 0o600);
    try {
      writeSync(file, `${token}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  return path;
}

/** The token of this data folder, or `undefined` when there is none that may be read. */
export function readTokenFile(folder: string): string | undefined {
  try {
    const token = readFileSync(join(folder, TOKEN_FILE), "utf8").trim();
    return token === "" ? undefined : token;
  } catch {
    return undefined;
  }
}
