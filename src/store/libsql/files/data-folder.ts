import { randomUUID } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { EvregError, messageOf } from "../../../domain/error.ts";
import { DATA_FILE } from "../../../runtime/data-files.ts";
import { makeFolder, sizeOf, syncFolderOf } from "../../../runtime/files.ts";
import { describeOwner, assertNotForeignLink, readOwner } from "../../../runtime/owner-file.ts";
import {
  type FileHeader,
  fileError,
  mustNeverHaveHeldData,
  readHeader,
  restoreAdvice,
  tracesOfData,
} from "./earlier-data.ts";
import { isKnownForm, mustHaveUpgradeRoom, unknownForm } from "./older-forms.ts";
import { APPLICATION_ID, FORM } from "./schema.ts";

export function dataFileOf(folder: string): string {
  return join(folder, DATA_FILE);
}

/** Answers the paths of the data files that upgrades and restores kept. */
export function copiesIn(folder: string): readonly string[] {
  const names = readdirSync(folder).filter((name) => name.startsWith(`${DATA_FILE}.before-`));
  return names.toSorted().map((name) => join(folder, name));
}

/**
 * Creates the folder (0700) where it is missing, and checks that it can be written to. An existing one keeps its
 * permissions.
 * @returns the folders it created, the innermost first
 * @throws EvregError `usage` when the path is no folder, or a link that root does not follow; `unavailable` when it cannot
 * be written to
 */
export function prepareFolder(folder: string): readonly string[] {
  try {
    const made = makeFolder(folder);
    if (!statSync(folder).isDirectory()) throw notAFolder(folder);
    assertNotForeignLink(folder);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return made;
  } catch (error) {
    throw error instanceof EvregError ? error : unusable(folder, error);
  }
}

/**
 * Creates an empty data file (0600) where there is none and never was one, and checks that it can be written to.
 *
 * To be called only while this process has no connection to the file.
 * @param options `needsData`: whether a folder that holds no data yet is refused, and left as it is; `refusesOlderForm`:
 * see `mustBeOfLatestForm`
 * @returns its path, the form that it has, which is 0 for one without tables, and whether it was there and holds nothing
 * @throws EvregError as above; `usage` for a file that is not evreg's or is newer; `unavailable` also where
 * the data are gone, and without room for an upgrade; `not_found` without the data it needs
 */
export function prepareFile(
  folder: string,
  { needsData, refusesOlderForm }: { needsData: boolean; refusesOlderForm: boolean },
): { readonly path: string; readonly form: number; readonly isEmpty: boolean } {
  const path = dataFileOf(folder);
  const form = admittedVersion(folder);
  if (refusesOlderForm) mustBeOfLatestForm(path, form);
  mustHaveUpgradeRoom(path, form);
  if (needsData && !hasDataAt(path)) {
    throw new EvregError(
      "not_found",
      `The data folder ${folder} holds no data yet, and was left as it is. Name another with --data, or a server with --url or --context; to begin here, start a server with \`evreg serve\` or create the first action with \`evreg actions create\`.`,
      { folder },
    );
  }
  const isNew = form === 0 && createFile(path);
  // A file that is gone by now is being replaced, and none must be created in its place.
  mustBeWritable(path);
  return { path, form, isEmpty: !isNew && sizeOf(path) === 0 };
}

/** Creates an empty file. Answers false where there is one. */
function createFile(path: string): boolean {
  try {
    closeSync(openSync(path, "wx", 0o600));
    // The folder is synced before the engine makes a log beside the file: after a power cut there is no log without its file.
    syncFolderOf(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw unusable(dirname(path), error);
  }
}

/** @throws EvregError `unavailable` with what to do */
export function mustBeWritable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw unusable(path, error);
  }
}

/** Whether anything would be lost with the data file. A log without its file is somebody's data too. */
export function hasDataAt(file: string): boolean {
  return (fileExists(file) && sizeOf(file) > 0) || sizeOf(`${file}-wal`) > 0;
}

function notAFolder(folder: string): EvregError {
  return new EvregError(
    "usage",
    `${folder} is not a folder, so no data can be kept in it. Give another one with --data.`,
    { folder },
  );
}

/** Says what a failed system call on a data folder or in it means, and what to do. */
function unusable(path: string, error: unknown): EvregError {
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

/**
 * Whether there is a file, or a link to one.
 * @throws EvregError `usage` when it is anything else
 */
export function fileExists(path: string): boolean {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return false;
  try {
    if (statSync(path).isFile()) return true;
  } catch {
    // It is a link that leads nowhere.
  }
  const what = "not a file, nor a link to one. Move it away, or give another folder with --data";
  throw fileError("usage", path, `${path} is ${what}.`);
}

/**
 * Reads the form of the data file from its first bytes, as the engine would already write to it. The form is 0 when the file is
 * empty or missing.
 *
 * To be called only while this process has no connection to the file: closing any descriptor of it would drop the process's
 * locks on it.
 * @throws EvregError `invalid` when it is damaged; `usage` when it is not evreg's, or of a newer version
 */
function readFileVersion(path: string): number {
  if (!fileExists(path)) return 0;
  let header: FileHeader;
  try {
    header = readHeader(path);
  } catch (error) {
    throw fileError("unavailable", path, `${path} cannot be read (${messageOf(error)}).`, {}, error);
  }
  const { isEmpty, isDatabase, applicationId, version } = header;
  if (isEmpty) return 0;
  if (!isDatabase) throw notEvreg(path);
  // Both are 0 in a file from a first start that was cut off; the engine then reads its log.
  if (version !== 0 || applicationId !== 0) checkForm(path, applicationId, version);
  return version;
}

/**
 * Reads the form of a folder's data file. One that is missing or holds nothing must never have held anything.
 * @throws EvregError as above; `unavailable` where the data are gone
 */
export function admittedVersion(folder: string): number {
  const path = dataFileOf(folder);
  const traces = tracesOfData(folder);
  const version = readFileVersion(path);
  if (version === 0) mustNeverHaveHeldData(path, traces);
  return version;
}

/** @throws EvregError `usage` as above */
export function checkForm(path: string, applicationId: number, version: number): void {
  if (applicationId !== APPLICATION_ID || version < 1) throw notEvreg(path);
  if (!isKnownForm(version)) throw unknownForm("usage", `The data file ${path}`, version);
}

/**
 * Refuses a file of an older form, for commands that must not change it.
 * @param version 0 for an empty file
 * @throws EvregError `usage`
 */
function mustBeOfLatestForm(path: string, version: number): void {
  if (version === 0 || version === FORM) return;
  throw fileError(
    "usage",
    path,
    `The data file ${path} has form ${version}, and this evreg needs form ${FORM}. Only the start of a server and ` +
      "`evreg migrate` bring it there, and keep a copy: an older evreg cannot open it afterwards. Run one of them, or use the " +
      "evreg that made it. The file was not changed.",
    { version, latest: FORM },
  );
}

/**
 * Says why a file without the marks that evreg gives its own is refused. In a folder that has had data it is the data file, and
 * damaged.
 */
export function notEvreg(path: string): EvregError {
  const folder = dirname(path);
  if (tracesOfData(folder).length > 0) {
    const advice = restoreAdvice(folder, " --force");
    const message = `The data file ${path} is damaged: it does not begin as evreg writes it. Nothing was changed. Put it back from a copy, or ${advice}.`;
    return fileError("invalid", path, message);
  }
  const message = `The file ${path} was not made by evreg, or its beginning is damaged, so it is left alone. Give another folder with --data; or, if evreg made it, move it away and ${restoreAdvice(folder)}.`;
  return fileError("usage", path, message);
}

/** On the global object, as several copies of this module may be loaded. */
const KEY = Symbol.for("evreg.heldFolders");

/**
 * The data folders that this process has open, by their real paths. A second opening would free the first one's lock: POSIX locks
 * belong to the process, and go when it closes any descriptor of the file.
 */
const heldFolders = ((globalThis as { [KEY]?: Set<string> })[KEY] ??= new Set<string>());

/**
 * Takes the folder for this process.
 * @returns gives it back
 * @throws EvregError `conflict` when this process has it already
 */
export function holdFolder(folder: string): () => void {
  const path = realpathSync(folder);
  if (heldFolders.has(path)) throw inUse(folder);
  heldFolders.add(path);
  return () => heldFolders.delete(path);
}

// A file that takes the place of the data file is made beside it, and is whole and on the disk before it gets the name.

/**
 * Gives a whole copy that is on the disk the name of the data file. The file before stays beside it.
 *
 * It gets a second name, and then the copy takes the first one in one step: cut off anywhere, this leaves the old data or the new
 * at their path. A log that could not be moved into the old file has to go with that file, as it would be taken for the new
 * one's. Then, and where files cannot have two names, no data file is there for a moment, and a start that finds none refuses
 * (see `earlier-data.ts`).
 * @param keptAs how the name of the file before goes on
 * @returns the path of the file before
 */
export function replaceFile(file: string, copy: string, keptAs: string): string {
  const kept = `${file}.${keptAs}`;
  const log = `${file}-wal`;
  if (existsSync(file) && (sizeOf(log) > 0 || !isLinked(file, kept))) move(file, kept);
  if (sizeOf(log) > 0) move(log, `${kept}-wal`);
  move(copy, file);
  return kept;
}

function isLinked(file: string, kept: string): boolean {
  try {
    rmSync(kept, { force: true });
    linkSync(file, kept);
    syncFolderOf(kept);
    return true;
  } catch {
    return false;
  }
}

/** Renames a file; the new name is on the disk before anything that relies on it. */
export function move(from: string, to: string): void {
  renameSync(from, to);
  syncFolderOf(to);
}

/** Answers the path of a copy that is to become the data file; without an id, how the paths of all copies begin. */
export function unfinishedCopy(file: string, id: string = randomUUID()): string {
  return `${file}.unfinished-${id}`;
}

/** Removes copies whose paths begin like this, with whatever the engine put beside them. */
export function removeCopies(beginning: string): void {
  const folder = dirname(beginning);
  const left = readdirSync(folder).filter((name) => name.startsWith(basename(beginning)));
  for (const name of left) rmSync(join(folder, name), { force: true });
}

/** Answers where the data file itself is: it may be a link to another disk, on which what replaces it belongs. */
export function fileBehindLink(file: string): string {
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  return isLink ? resolve(dirname(file), readlinkSync(file)) : file;
}
