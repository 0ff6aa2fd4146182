import { accessSync, closeSync, constants, openSync, readdirSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError } from "../../domain/error.ts";
import { makeFolder } from "../../runtime/make-folder.ts";
import { mustNotLeadAway } from "../../runtime/trusted-owner.ts";
import { syncFolderOf } from "../../runtime/replace-file.ts";
import { mustNotBeCutOff } from "./cut-off-restore.ts";
import { isFileThere } from "./file-header.ts";
import { CUT_SHORT } from "./file-place.ts";
import { readOwner, describeOwner } from "../../runtime/owner-file.ts";

const DATA_FILE = "evreg.db";

export function dataFileOf(folder: string): string {
  return join(folder, DATA_FILE);
}

/** The copies of the data file that migrations kept, by their paths; see `migrate-file.ts`. */
export function copiesIn(folder: string): readonly string[] {
  const names = readdirSync(folder).filter((name) => name.startsWith(`${DATA_FILE}.before-`));
  return names.toSorted().map((name) => join(folder, name));
}

/**
 * Makes the folder (0700) where it is missing, and finds out whether it can be written to. What is there keeps its
 * permissions.
 * @returns the folders it made, the innermost first
 * @throws EvregError `usage` when the path is no folder, or a link that root does not follow; `unavailable` when it cannot
 * be written to
 */
export function prepareFolder(folder: string): readonly string[] {
  let stats: Stats;
  let made: readonly string[];
  try {
    made = makeFolder(folder);
    stats = statSync(folder);
  } catch (error) {
    throw unusable(folder, error);
  }
  if (!stats.isDirectory()) throw notAFolder(folder);
  mustNotLeadAway(folder);
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw unusable(folder, error);
  }
  return made;
}

/**
 * Makes an empty data file (0600) where there is none and never was, and finds out whether it can be written to.
 *
 * To be called only while this process has no connection to the file (see `held-folders.ts`).
 * @param needsData whether a folder that holds no data yet is refused, and left as it is
 * @returns its path
 * @throws EvregError as above; `unavailable` also where a restore was cut off; `not_found` without the data it needs
 */
export function prepareFile(folder: string, needsData: boolean): string {
  const path = dataFileOf(folder);
  if (!isFileThere(path)) mustHaveNothingLeft(path);
  mustNotBeCutOff(path);
  if (needsData && !hasDataAt(path)) throw noData(folder);
  try {
    closeSync(openSync(path, "wx", 0o600));
    // Before the engine makes a log beside it: after a cut of the power there is none without its file.
    syncFolderOf(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unusable(folder, error);
    try {
      accessSync(path, constants.R_OK | constants.W_OK);
    } catch (denied) {
      throw unusable(path, denied);
    }
  }
  return path;
}

/**
 * For a folder without a data file: there must never have been one.
 * @throws EvregError `unavailable` with what to do
 */
export function mustHaveNothingLeft(path: string): void {
  mustNotBeSetAside(path);
  mustHaveNoLog(path);
}

function mustNotBeSetAside(path: string): void {
  const folder = dirname(path);
  const left = readdirSync(folder).findLast((name) => name.startsWith(`${basename(path)}${CUT_SHORT}`));
  if (left === undefined) return;
  throw new EvregError(
    "unavailable",
    `The data file ${path} is missing: it, or its log, was cut short while a server had it open, and what was left of it is ${join(folder, left)}. ` +
      "Restore a backup with `evreg restore FILE`, with --force if a log is left; or, to begin without that data, move that file and the log away.",
    { file: path },
  );
}

/** The engine takes the log of an empty file for a leftover and removes it; of one that was moved, it is the newest part. */
function mustHaveNoLog(path: string): void {
  const log = `${path}-wal`;
  const found = statSync(log, { throwIfNoEntry: false });
  if (found === undefined || found.size === 0) return;
  throw new EvregError(
    "unavailable",
    `The data file ${path} is missing, and its log ${log}, which has the newest part of the data, is there. ` +
      "Put the data file back beside it; or, to begin without that data, move the log away.",
    { file: path },
  );
}

/** Whether anything would be lost. A log without its file is somebody's data too. */
export function hasDataAt(file: string): boolean {
  return (isFileThere(file) && sizeOf(file) > 0) || sizeOf(`${file}-wal`) > 0;
}

/** 0 where there is none. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function noData(folder: string): EvregError {
  return new EvregError(
    "not_found",
    `The data folder ${folder} holds no data yet, and was left as it is. Name another with --data, or a server with --url or --context; to begin here, start a server with \`evreg serve\` or create the first action with \`evreg actions create\`.`,
    { folder },
  );
}

function notAFolder(folder: string): EvregError {
  return new EvregError(
    "usage",
    `${folder} is not a folder, so no data can be kept in it. Give another one with --data.`,
    { folder },
  );
}

/** What a failed call of the system on a data folder or in it means, and what to do. */
export function unusable(path: string, error: unknown): EvregError {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EEXIST" || code === "ENOTDIR") return notAFolder(path);
  const why: Record<string, string> = {
    EACCES: "this user has no permission; change its owner or permissions",
    EPERM: "this user has no permission; change its owner or permissions",
    EROFS: "it is on a file system that can only be read; make it writable",
    ENOSPC: "the disk is full; make room",
  };
  const reason = why[code ?? ""] ?? `the system says: ${message}. Make it usable`;
  return new EvregError(
    "unavailable",
    `The data folder cannot be written to: ${path}: ${reason}, or give another folder with --data.`,
    { folder: path },
    { cause: error },
  );
}

export function inUse(folder: string): EvregError {
  const owner = readOwner(folder);
  const who = owner === undefined ? "another process" : describeOwner(owner);
  return new EvregError(
    "conflict",
    `The data folder ${folder} is in use by ${who}. Stop that first, or give another folder with --data.`,
    { folder, ...(owner === undefined ? {} : { pid: owner.pid, command: owner.command }) },
  );
}
