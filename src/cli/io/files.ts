import { randomUUID } from "node:crypto";
import { lstatSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { EvregError } from "../../domain/error.ts";
import type { Backup } from "../../domain/operations.ts";
import { mustNotBeDataFile } from "../../runtime/data-files.ts";
import { syncFolderOf } from "../../runtime/files.ts";
import { usageError } from "../usage-errors.ts";
import { exitOnSignal, removeUntilGone } from "./interruption.ts";
import { withProgress } from "./progress.ts";
import { escapeControl } from "./text.ts";

const SYNC_BYTES = 8 * 1024 * 1024;

/**
 * @throws EvregError `conflict` when the file is there already and may not be replaced; `usage` for a file of a data folder,
 * and for all that is no regular file, such as a link, a device or a folder
 */
export function assertReplaceable(path: string, { force }: { readonly force: boolean }): void {
  const target = lstatSync(path, { throwIfNoEntry: false });
  if (target?.isDirectory() === true) throw isFolder(path);
  if (target?.isFile() === false) {
    throw usageError(
      `${escapeControl(path)} is no regular file, so a backup cannot take its place. Name another file, or - for stdout.`,
    );
  }
  mustNotBeDataFile(path);
  if (!force && target !== undefined) throw isThere(path);
}

/**
 * Writes a backup into a file that only this user can read. It gets its name once it is whole, on the disk, and has passed
 * `check`. Until then, and after a failure, what had that name before stays.
 * @param options `force` lets it replace a file; `signal` ends it before the check
 */
export async function writeBackup<T>(
  path: string,
  backup: Backup,
  options: {
    readonly force: boolean;
    readonly check: (path: string) => Promise<T>;
    readonly signal: AbortSignal;
  },
): Promise<T> {
  const part = `${path}.${randomUUID()}.part`;
  try {
    const file = await open(part, "wx", 0o600);
    try {
      await writeWithSync(file, withProgress(backup, options.signal));
      await file.sync();
    } finally {
      await file.close();
    }
    const checked = await exitOnSignal(
      () => options.check(part),
      () => removeUntilGone(part),
    );
    // Something else may have come to its path meanwhile.
    assertReplaceable(path, options);
    await rename(part, path);
    syncFolderOf(path);
    return checked;
  } catch (error) {
    throw writeFailure(error, path);
  } finally {
    await rm(part, { force: true });
  }
}

/** Syncs now and then: a server on the same disk would wait for all of it at its next commit. */
async function writeWithSync(file: FileHandle, content: AsyncIterable<Uint8Array>): Promise<void> {
  let unsynced = 0;
  for await (const piece of content) {
    await file.writeFile(piece);
    unsynced += piece.length;
    if (unsynced < SYNC_BYTES) continue;
    await file.datasync();
    unsynced = 0;
  }
}

function isThere(path: string): EvregError {
  return new EvregError(
    "conflict",
    `${escapeControl(path)} is there already. Name another file, or replace it with --force.`,
  );
}

function isFolder(path: string): EvregError {
  return usageError(`${escapeControl(path)} is a folder; name a file.`);
}

/** What the system says, without its call: `EIO: i/o error`. */
export function systemReason(error: unknown): string {
  return (error as Error).message.split(", ")[0]!;
}

function writeFailure(error: unknown, path: string): unknown {
  if (error instanceof EvregError || !(error instanceof Error)) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined || error.name === "AbortError") return error;
  const shown = escapeControl(path);
  if (code === "ENOENT") return usageError(`There is no folder for ${shown}; make it first.`);
  if (code === "EISDIR") return isFolder(path);
  const message = `${shown} could not be written (${systemReason(error)}).`;
  return new EvregError("unavailable", message, {}, { cause: error });
}
