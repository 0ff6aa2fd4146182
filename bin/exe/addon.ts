import { createHash, randomUUID } from "node:crypto";
import { chmodSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getRawAsset } from "node:sea";
import { getEnvironmentData } from "node:worker_threads";
import { zstdDecompressSync } from "node:zlib";
import { makeFolder } from "../../src/runtime/files.ts";
import { ADDON, ADDON_FOLDERS } from "./inside.ts";

// libSQL's native part, of which the system only loads a file of its own. It is written once, into a folder that only
// this user can write to, and is compared with what the executable was built with at each start.

/**
 * Takes the place of the look-up in libSQL's package.
 * @param sha256 of the file, in hex
 * @throws Error that names each folder tried, what it lacks, and what to set
 */
export function loadAddon(sha256: string): unknown {
  const folders = getEnvironmentData(ADDON_FOLDERS) as readonly string[];
  const failures: string[] = [];
  for (const folder of folders) {
    try {
      return open(place(folder, sha256));
    } catch (error) {
      failures.push(`${folder}: ${reason(error)}`);
    }
  }
  throw new Error(
    `the database engine must be written to a file before it can be loaded, and no folder lets it; set EVREG_CACHE_DIR to one of yours where programs may be kept (${failures.join("; ")})`,
  );
}

/** The file in `folder`, written if it is not there or not whole. */
function place(folder: string, sha256: string): string {
  makeFolder(folder);
  const path = join(folder, `libsql-${sha256}.node`);
  mustBePrivate(folder);
  if (isWhole(path, sha256)) return path;
  const unfinished = `${path}.${randomUUID()}`;
  try {
    writeFileSync(unfinished, zstdDecompressSync(Buffer.from(getRawAsset(ADDON))), {
      flag: "wx",
      mode: 0o500,
    });
    // Where another process has just done the same, its file is replaced by its like.
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  return path;
}

/** In a shared folder such as /tmp somebody else may have been first. */
function mustBePrivate(folder: string): void {
  const stats = lstatSync(folder);
  const user = process.getuid?.();
  if (user === undefined) return;
  if (!stats.isDirectory() || stats.uid !== user) throw new Error("it is not a folder of this user");
  if ((stats.mode & 0o022) !== 0) chmodSync(folder, 0o700);
}

function isWhole(path: string, sha256: string): boolean {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex") === sha256;
  } catch {
    return false;
  }
}

function open(path: string): unknown {
  const module = { exports: {} };
  process.dlopen(module, path);
  return module.exports;
}

function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ERR_DLOPEN_FAILED" && message.includes("failed to map segment")) return "mounted noexec";
  return code === undefined || code === "ERR_DLOPEN_FAILED" ? message : code;
}
