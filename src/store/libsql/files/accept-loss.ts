import { randomUUID } from "node:crypto";
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { fileTimestamp } from "../../../runtime/clock.ts";
import { isSameFile, replacedDataNames, syncFolderOf } from "../../../runtime/files.ts";
import { checkLog, type LogCheck, logOf } from "../thread/wal-check.ts";
import type { Sequences } from "../thread/protocol.ts";
import { checkFile, moveNumbers, settleFile } from "./file-tasks.ts";

/** What was given up, and where the two files are as they were. */
interface AcceptedLoss {
  readonly log: LogCheck;
  readonly kept: string;
}

/**
 * Goes on without what a damaged log has behind its damage. As with a restore, the data are made whole in a copy that
 * then takes the place of the file, which is kept beside with its log; cut off anywhere, it leaves the old or the new. The
 * numbers go on far beyond, so that none that was given out is given again.
 *
 * To be called only while this process has no connection to the file, and holds its folder.
 * @returns what was given up; `undefined` where the log is not damaged, and nothing was done
 * @throws EvregError `unavailable` when there is no room for a copy, or what is left is not whole
 */
export async function acceptLoss(file: string, nowMs: number): Promise<AcceptedLoss | undefined> {
  const log = checkLog(file);
  if (!log.isDamaged) return undefined;
  const copy = `${file}.restore-${randomUUID()}`;
  try {
    copyWhole(file, copy, log);
    await settleFile(copy);
    await checkFile(copy, { name: `What ${file} holds without the end of its log` });
    await moveNumbers(copy, nowMs);
    const kept = `${file}.before-restore-${fileTimestamp(nowMs)}`;
    takePlaceOf(file, copy, kept);
    return { log, kept };
  } catch (error) {
    throw refusal(file, error);
  } finally {
    removeCopy(copy);
  }
}

/**
 * What the numbers of damaged data go on behind, as far as it can still be known: what is left of them is looked at in a
 * copy, as above.
 * @throws EvregError `unavailable` when there is no room for the copy
 */
export async function numbersOfDamaged(file: string, nowMs: number): Promise<Sequences> {
  const copy = `${file}.restore-${randomUUID()}`;
  try {
    copyWhole(file, copy, checkLog(file));
    return await moveNumbers(copy, nowMs);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") throw refusal(file, error);
    return {};
  } finally {
    removeCopy(copy);
  }
}

function removeCopy(copy: string): void {
  for (const left of [copy, `${copy}-wal`, `${copy}-shm`, `${copy}-journal`]) rmSync(left, { force: true });
}

/** Cut where the engine would end, so that nobody takes what is behind it for anything. */
function copyWhole(file: string, copy: string, { wholeBytes }: LogCheck): void {
  copyFileSync(file, copy, constants.COPYFILE_EXCL);
  chmodSync(copy, 0o600);
  if (wholeBytes === 0) return;
  copyFileSync(logOf(file), `${copy}-wal`, constants.COPYFILE_EXCL);
  truncateSync(`${copy}-wal`, wholeBytes);
}

function refusal(file: string, error: unknown): EvregError {
  const { code, message } = error as Error & { code?: string };
  const why = code === "ENOSPC" ? "there is no room for a copy of it" : message;
  return new EvregError(
    "unavailable",
    `The data of ${file} cannot go on without the end of its log: ${why.replace(/\.$/, "")}. Nothing was changed; ` +
      "restore a backup with `evreg restore FILE --force`, which keeps the two files.",
    { file },
    { cause: error },
  );
}

/**
 * Gives a whole file the place of the data file, where there is none or an empty one. By a second name, which never takes
 * the place of a file that came meanwhile.
 * @throws what the system says, `EEXIST` when one came
 */
export function takeFreePlace(copy: string, file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.size === 0) rmSync(file);
  if (!linked(copy, file)) renameSync(copy, file);
  syncFolderOf(file);
}

/**
 * Gives a whole file the place of the data file, which stays as `kept`. Wherever it is cut off, the old data or the new
 * are in their place; on a file system without second names there may be none for a moment, and no start makes an empty
 * file then (see `data-folder.ts`).
 * @throws what the system says, `EEXIST` when something is kept by this name already
 */
export function takePlaceOf(file: string, copy: string, kept: string): void {
  const hasFile = existsSync(file);
  const isNamedTwice = hasFile && linked(file, kept);
  // Beside the restored file it would be taken for that one's. There is none but that of a file that could not be settled.
  if (existsSync(`${file}-wal`)) {
    syncFolderOf(file);
    renameSync(`${file}-wal`, `${kept}-wal`);
  }
  // That no log is there is stored before the other file comes: one that came back would be taken for that file's.
  syncFolderOf(file);
  if (hasFile && !isNamedTwice) {
    renameSync(file, kept);
    syncFolderOf(file);
  }
  renameSync(copy, file);
  syncFolderOf(file);
  dropFurtherNames(kept);
}

/** Of the kept data, names that restores before gave it and were cut off then: as copies they would be counted and kept. */
function dropFurtherNames(kept: string): void {
  const folder = dirname(kept);
  for (const name of replacedDataNames(readdirSync(folder))) {
    const path = join(folder, name);
    if (name !== basename(kept) && statSync(kept).nlink > 1 && isSameFile(path, kept)) rmSync(path);
  }
}

/** @returns false where the file system has no second names */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EPERM" || code === "ENOTSUP" || code === "EOPNOTSUPP") return false;
    throw error;
  }
}
