import { randomUUID } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { EvregError } from "../../../domain/error.ts";
import { hashToken } from "../../../domain/token.ts";
import { fileTimestamp } from "../../../runtime/clock.ts";
import { isSameFile, removeCreated, sizeOf } from "../../../runtime/files.ts";
import { findServer, readTokenFile, setTokenFileAside, tokenFileOf } from "../../../runtime/find-server.ts";
import type { EncryptionKeys } from "../../secret-cipher.ts";
import type { Sequences } from "../thread/protocol.ts";
import { numbersOfDamaged } from "./accept-loss.ts";
import {
  dataFileOf,
  hasDataAt,
  holdFolder,
  inUse,
  fileExists,
  prepareFolder,
  readFileVersion,
} from "./data-folder.ts";
import { checkFile, type FileFacts, moveNumbers, settleFile } from "./file-tasks.ts";
import { makePlain } from "./live-copy.ts";
import { finishReplacement, removeCopy, replaceFile } from "./replace-file.ts";

export interface RestoreOptions {
  readonly folder: string;
  /** What messages call the backup. */
  readonly name: string;
  /** Its bytes. */
  readonly content: AsyncIterable<Uint8Array>;
  /** What its secrets must open with. */
  readonly encryption: EncryptionKeys | undefined;
  /** Whether it replaces existing data, which stays beside it. */
  readonly force: boolean;
  readonly nowMs: number;
  /** Called with a file that must be removed if the process ends before this does. */
  readonly onUnfinished?: (path: string) => void;
}

export interface Restored extends FileFacts {
  /** The data file. */
  readonly file: string;
  /** The number of the next event. */
  readonly next_event: number;
  /** Where the replaced data file is; `null` when there was none. */
  readonly kept: string | null;
  /** The file of the folder that holds a token of the backup; `null` where there is none. */
  readonly token_file: string | null;
  /** Where the folder's token file is now, when its token is not one of the backup; `null` when there was none such. */
  readonly token_file_kept: string | null;
}

/**
 * Makes a backup the data of a folder on which no server runs. The backup is copied beside the data file and checked first.
 * Nothing changes until the last step, which only renames. Cut off anywhere, this leaves the old data or the new.
 * @throws EvregError `conflict` when the folder is in use, or has data and `force` is not set; those of `checkFile`
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { folder, name, content, encryption, force, nowMs } = options;
  const made = prepareFolder(folder);
  const releaseFolder = holdFolder(folder);
  const file = dataFileOf(folder);
  const copy = `${file}.restore-${randomUUID()}`;
  try {
    if ((await findServer(folder)) !== undefined) throw inUse(folder);
    finishReplacement(file);
    const hasData = hasDataAt(file);
    if (hasData && !force) throw hasDataAlready(folder);
    options.onUnfinished?.(copy);
    await write(copy, content);
    const token = readTokenFile(folder);
    const tokenHash = token === undefined ? undefined : hashToken(token);
    const examined = await checkFile(copy, { name, encryption: { keys: encryption }, tokenHash });
    const { hasToken = false, ...facts } = examined;
    const replaced = hasData ? await settleOld(file, folder, nowMs) : {};
    const { event = 0 } = await moveNumbers(copy, nowMs, replaced, name);
    const before = `before-restore-${fileTimestamp(nowMs)}`;
    // A file was created meanwhile, or another restore has replaced the data in this very moment.
    if (hasDataAt(file) !== hasData || existsSync(`${file}.${before}`)) throw inUse(folder);
    if (!hasData) rmSync(file, { force: true });
    const replacedPath = replaceFile(file, copy, before);
    const kept = hasData ? replacedPath : null;
    // Renamed like the data that it is a token of: for the backup's data it would be refused.
    const tokenFileKept = hasToken ? null : setTokenFileAside(folder, before);
    const tokenFile = hasToken ? (tokenFileOf(folder) ?? null) : null;
    return {
      file,
      ...facts,
      next_event: event + 1,
      kept,
      token_file: tokenFile,
      token_file_kept: tokenFileKept,
    };
  } finally {
    removeCopy(copy);
    releaseFolder();
    // Only where they are still empty.
    removeCreated(made);
  }
}

/**
 * Refuses the data file of the folder itself, by whatever name, and any other data file with a log beside it, which holds
 * its newest part.
 * @throws EvregError `usage`
 */
export function mustBeBackup(backup: string, folder: string): void {
  if (isSameFile(backup, dataFileOf(folder))) {
    throw new EvregError(
      "usage",
      `${backup} is the data file of ${folder} itself, and no backup. Name a file that evreg backup wrote.`,
      { file: backup },
    );
  }
  if (sizeOf(`${backup}-wal`) === 0) return;
  throw new EvregError(
    "usage",
    `${backup} has a log beside it, ${backup}-wal, which holds its newest part: it is a data file, and no backup. Start evreg on its folder, or make a backup of that with --data.`,
    { file: backup },
  );
}

async function write(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const target = await open(path, "wx", 0o600);
  try {
    for await (const piece of content) await target.writeFile(piece);
    await makePlain(target);
    await target.sync();
  } finally {
    await target.close();
  }
}

/** Moves the log of the old data file into it: two files could not be renamed in one step. */
async function settleOld(file: string, folder: string, nowMs: number): Promise<Sequences> {
  // The engine would remove the log of an empty file, and somebody's data may be in that.
  if (!fileExists(file) || sizeOf(file) === 0) return {};
  mustBeEvregs(file);
  try {
    return await settleFile(file);
  } catch (error) {
    if (error instanceof EvregError && error.code === "conflict") throw inUse(folder);
    // It may be damaged, and stays as it is.
    return numbersOfDamaged(file, nowMs);
  }
}

/** A newer evreg's file may be replaced, as that is a way back to an older one, and so may a damaged one. */
function mustBeEvregs(file: string): void {
  try {
    readFileVersion(file);
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    if (error.code !== "invalid" && error.details["version"] === undefined) throw error;
  }
}

function hasDataAlready(folder: string): EvregError {
  return new EvregError(
    "conflict",
    `The data folder ${folder} has data. Name another with --data; or use --force to put the backup in its place, which keeps what is there beside it.`,
    { folder },
  );
}
