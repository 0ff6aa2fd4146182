import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError, messageOf } from "../../../domain/error.ts";
import { isSameFile, makeFolder, syncFolderOf } from "../../../runtime/files.ts";
import { describeOwner, assertNotForeignLink, readOwner } from "../../../runtime/owner-file.ts";
import { CUT_SHORT } from "../thread/file-guard.ts";
import { APPLICATION_ID, LATEST_VERSION } from "./migrations.ts";

const DATA_FILE = "evreg.db";

export function dataFileOf(folder: string): string {
  return join(folder, DATA_FILE);
}

/** The copies of the data file that migrations kept, by their paths; see `migrate.ts`. */
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
  assertNotForeignLink(folder);
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
 * To be called only while this process has no connection to the file.
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

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;

/**
 * Whether there is a file, or a link to one, and not something that opening would wait for or make anew elsewhere.
 * @throws EvregError `usage` when it is anything else, `unavailable` when it cannot be looked at
 */
export function isFileThere(path: string): boolean {
  try {
    const itself = lstatSync(path, { throwIfNoEntry: false });
    if (itself === undefined) return false;
    const target = itself.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : itself;
    if (target?.isFile() === true) return true;
    throw noFile(path, target);
  } catch (error) {
    if (error instanceof EvregError) throw error;
    throw unreadable(path, error);
  }
}

/**
 * The form of the data file by its first bytes, without the engine, which would already write to it. 0 when there is
 * nothing in it yet.
 *
 * To be called only while this process has no connection to the file: closing any descriptor of it would drop the
 * process's locks on it.
 * @throws EvregError `usage` when it is something else than an evreg file, or of a newer version
 */
export function readFileVersion(path: string): number {
  if (!isFileThere(path)) return 0;
  const header = Buffer.alloc(HEADER_BYTES);
  let length: number;
  try {
    const descriptor = openSync(path, "r");
    try {
      length = readSync(descriptor, header, 0, HEADER_BYTES, 0);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw unreadable(path, error);
  }
  if (length === 0) return 0;
  if (length < HEADER_BYTES || header.toString("latin1", 0, MAGIC.length) !== MAGIC) throw notEvreg(path);
  const version = header.readInt32BE(60);
  const applicationId = header.readUInt32BE(68);
  // All zero: made by a first start that was cut off; what is in its log, the engine tells.
  if (version !== 0 || applicationId !== 0) checkForm(path, applicationId, version);
  return version;
}

/** @throws EvregError `usage` as above */
export function checkForm(path: string, applicationId: number, version: number): void {
  if (applicationId !== APPLICATION_ID || version < 0) throw notEvreg(path);
  if (version > LATEST_VERSION) {
    throw new EvregError(
      "usage",
      `The data file ${path} has form ${version}, and this evreg knows forms up to ${LATEST_VERSION}. ` +
        "A newer evreg made it: start that one, or give another folder with --data. The file was not changed.",
      { file: path, version, latest: LATEST_VERSION },
    );
  }
}

/**
 * For commands that are not there to change the file's form.
 * @param version 0 for a file in which there is nothing yet
 * @throws EvregError `usage`
 */
export function mustBeOfLatestForm(path: string, version: number): void {
  if (version === 0 || version === LATEST_VERSION) return;
  throw new EvregError(
    "usage",
    `The data file ${path} has form ${version}, and this evreg needs form ${LATEST_VERSION}. Only the start of a server and ` +
      "`evreg migrate` bring it there, and keep a copy: an older evreg cannot open it afterwards. Run one of them, or use the " +
      "evreg that made it. The file was not changed.",
    { file: path, version, latest: LATEST_VERSION },
  );
}

export function notEvreg(path: string): EvregError {
  return new EvregError(
    "usage",
    `The file ${path} was not made by evreg, so it is left alone. Give another folder with --data.`,
    { file: path },
  );
}

function noFile(path: string, target: Stats | undefined): EvregError {
  const what = target === undefined ? `a link to ${readlinkSync(path)}, where nothing is` : "not a file";
  return new EvregError("usage", `${path} is ${what}. Move it away, or give another folder with --data.`, {
    file: path,
  });
}

function unreadable(path: string, error: unknown): EvregError {
  const reason = messageOf(error);
  return new EvregError(
    "unavailable",
    `The data file ${path} cannot be read (${reason}).`,
    { file: path },
    { cause: error },
  );
}

/**
 * Refuses a folder in which a restore was cut off between the old data and the new: a start would make an empty file
 * there, or go on without the newest part of what was kept.
 * @param file the data file
 * @throws EvregError `unavailable` with what to do
 */
function mustNotBeCutOff(file: string): void {
  const name = basename(file);
  const left = readdirSync(dirname(file)).filter((other) => other.startsWith(`${name}.`) && isLeft(other));
  if (statSync(file, { throwIfNoEntry: false }) === undefined) {
    if (left.length > 0) throw cutOff(`${file} is missing`, file, left);
    return;
  }
  const isWaiting = left.some((other) => /\.restore-[-\da-f]{36}$/.test(other));
  const parted = left.find((other) => {
    if (!other.startsWith(`${name}.before-restore-`) || !other.endsWith("-wal")) return false;
    // The one at the first name is still the old one where it is the same file by its second, or, on a file system that
    // has no second names, where none is kept yet and the new one still waits.
    const kept = join(dirname(file), other.slice(0, -"-wal".length));
    return (isSameFile(kept, file) || (isWaiting && !existsSync(kept))) && sizeBeside(file, other) > 0;
  });
  if (parted !== undefined) throw cutOff(`${file} is without its log ${parted}`, file, [parted]);
}

function isLeft(name: string): boolean {
  return name.includes(".before-restore-") || name.includes(".restore-");
}

function sizeBeside(file: string, name: string): number {
  return statSync(join(dirname(file), name), { throwIfNoEntry: false })?.size ?? 0;
}

function cutOff(what: string, file: string, left: readonly string[]): EvregError {
  const name = basename(file);
  // Into an empty folder there is nothing from before.
  const back = left.some((one) => one.includes(".before-restore-"))
    ? `Restore the backup again; or, to go back to the data from before, rename the newest ${name}.before-restore-… to ${name}, ` +
      `and the one ending in -wal to ${name}-wal if there is one. To begin without that data, move all of them away.`
    : "Restore the backup again; or, to begin without it, move what was left away.";
  return new EvregError(
    "unavailable",
    `The data file ${what}: a restore was cut off, or is under way. It left ${left.join(", ")}. ${back}`,
    { file, left },
  );
}

/**
 * The data folders this process has open, by their real paths.
 *
 * POSIX locks belong to the process and go when it closes any descriptor of the file: looking into a data file this
 * process has open itself would set it free for others without anyone noticing. So whoever is about to touch one looks
 * here first. Kept on the global object, as several copies of this module may be loaded.
 */
const KEY = Symbol.for("evreg.heldFolders");

function held(): Set<string> {
  const holder = globalThis as { [KEY]?: Set<string> };
  return (holder[KEY] ??= new Set());
}

/** Takes the folder for this process; `undefined` when it has it already. The answer gives it back. */
export function holdFolder(folder: string): (() => void) | undefined {
  const path = realpathSync(folder);
  if (held().has(path)) return undefined;
  held().add(path);
  return () => held().delete(path);
}
