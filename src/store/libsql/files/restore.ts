import { chmodSync, copyFileSync, existsSync, rmSync, truncateSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { EvregError } from "../../../domain/error.ts";
import { fileTimestamp } from "../../../runtime/clock.ts";
import { sizeOf } from "../../../runtime/files.ts";
import { findServer } from "../../../runtime/find-server.ts";
import type { EncryptionKeys } from "../../secret-cipher.ts";
import { fileTask } from "../file-task.ts";
import { checkLog } from "./wal-check.ts";
import type { FileFacts } from "./closed-file.ts";
import {
  dataFileOf,
  hasDataAt,
  inUseError,
  isEvregs,
  logOf,
  prepareFolder,
  replaceFile,
  restoreAdvice,
} from "./data-folder.ts";

// Data are replaced by a copy that was made and checked beside them: by a backup, or by what a damaged log has left of them.

export interface RestoreOptions {
  readonly folder: string;
  /** What messages call the backup. */
  readonly name: string;
  readonly content: AsyncIterable<Uint8Array>;
  /** The keys that must open the backup's secrets. */
  readonly encryption: EncryptionKeys | undefined;
  /** Whether it replaces existing data, which stays beside it. */
  readonly force: boolean;
  readonly nowMs: number;
  /** Called with a file that must be removed if the process ends before this does. */
  readonly onUnfinished?: (path: string) => void;
}

export interface RestoredData extends FileFacts {
  readonly file: string;
  readonly next_event: number;
  /** Where the replaced data file is; `null` when there was none. */
  readonly kept: string | null;
}

/**
 * Makes a backup the data of a folder on which no server runs. The backup is copied beside the data file and checked first.
 * Nothing changes until the last step, which only renames. Cut off anywhere, this leaves the old data or the new.
 * @throws EvregError `conflict` when the folder is in use, or has data and `force` is not set; `unavailable` without
 * room for the copy; those of `examineFile`
 */
export async function restore(options: RestoreOptions): Promise<RestoredData> {
  const { folder, name, content, encryption, force, nowMs } = options;
  prepareFolder(folder);
  if ((await findServer(folder)) !== undefined) throw inUseError(folder);
  const file = dataFileOf(folder);
  const hasData = hasDataAt(file);
  if (hasData && !force) {
    const message = `The data folder ${folder} has data. Name another with --data; or use --force to put the backup in its place, which keeps what is there beside it.`;
    throw new EvregError("conflict", message, { folder });
  }
  const before = keptAs(nowMs);
  const { made, kept } = await replaceFile(file, before, async (copy) => {
    options.onUnfinished?.(copy);
    await write(copy, content);
    const facts = await fileTask("examineFile", copy, { name, encryption: { keys: encryption } });
    // The engine would write to another program's file, and remove the log of an empty one, which may be somebody's data.
    if (isEvregs(file)) await settleOld(file, folder);
    const lastNumber = await fileTask("moveNumbers", copy, nowMs, name);
    // The check finds a file that was created meanwhile, or another restore that has replaced the data in this very moment.
    if (hasDataAt(file) !== hasData || existsSync(`${file}.${before}`)) throw inUseError(folder);
    if (!hasData) rmSync(file, { force: true });
    return { ...facts, next_event: lastNumber + 1 };
  });
  return { file, ...made, kept: hasData ? kept : null };
}

/**
 * Refuses a file with a log beside it, which holds its newest part.
 * @throws EvregError `usage`
 */
export function mustBeBackup(backup: string): void {
  if (sizeOf(`${backup}-wal`) === 0) return;
  const message = `${backup} has a log beside it, ${backup}-wal, which holds its newest part: it is a data file, and no backup. Start evreg on its folder, or make a backup of that with --data.`;
  throw new EvregError("usage", message, { file: backup });
}

async function write(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    const target = await open(path, "wx", 0o600);
    await pipeline(content, target.createWriteStream({ flush: true }));
  } catch (error) {
    // Where the backup itself cannot be read, that was said.
    if (error instanceof EvregError || (error as NodeJS.ErrnoException).syscall === undefined) throw error;
    const message = `The backup could not be copied to ${path}: ${(error as Error).message}. The data are as they were.`;
    throw new EvregError("unavailable", message, { file: path }, { cause: error });
  }
}

/** Moves the log of the old data file into it: two files could not be renamed in one step. */
async function settleOld(file: string, folder: string): Promise<void> {
  await fileTask("settleFile", file).catch((error: unknown) => {
    // The old file may be damaged, and stays as it is.
    if (error instanceof EvregError && error.code === "conflict") throw inUseError(folder);
  });
}

/**
 * Goes on without what a damaged log has behind its damage. Numbers go on far beyond, so that none is given twice.
 *
 * To be called only while this process has no connection to the file.
 * @returns how many transactions were given up, and where the files are as they were before; `undefined` where the log is not
 * damaged, and nothing was done
 * @throws EvregError `unavailable` when there is no room for a copy, or what is left is not whole
 */
export async function acceptLoss(file: string, nowMs: number) {
  const log = checkLog(file);
  if (!log.isDamaged) return undefined;
  try {
    const { kept } = await replaceFile(file, keptAs(nowMs), async (copy) => {
      copyFileSync(file, copy);
      chmodSync(copy, 0o600);
      if (log.wholeBytes > 0) {
        copyFileSync(logOf(file), logOf(copy));
        truncateSync(logOf(copy), log.wholeBytes);
      }
      await fileTask("examineFile", copy, { name: `What ${file} holds without the end of its log` });
      await fileTask("moveNumbers", copy, nowMs);
    });
    return { transactions: log.commitsBehind, kept };
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    const why = code === "ENOSPC" ? "there is no room for a copy of it" : message.replace(/\.$/, "");
    const what = `The data of ${file} cannot go on without the end of its log: ${why}.`;
    const advice = `Nothing was changed; ${restoreAdvice(dirname(file))}.`;
    throw new EvregError("unavailable", `${what} ${advice}`, { file }, { cause: error });
  }
}

function keptAs(nowMs: number): string {
  return `before-restore-${fileTimestamp(nowMs)}`;
}
