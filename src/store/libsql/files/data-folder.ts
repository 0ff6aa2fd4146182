import { randomUUID } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { shellWord } from "../../../domain/formats.ts";
import { DATA_FILE, OWN_FILE_NAME } from "../../../runtime/data-files.ts";
import { makeFolder, sizeOf, syncFolderOf, withFile } from "../../../runtime/files.ts";
import { describeOwner, ownerFileOf, readOwner } from "../../../runtime/owner-file.ts";
import { EngineFailure } from "../../sql/sql.ts";
import { mustBeKnown } from "./older-forms.ts";
import { formOf } from "./schema.ts";

export function dataFileOf(folder: string): string {
  return join(folder, DATA_FILE);
}

export function logOf(file: string): string {
  return `${file}-wal`;
}

/** Says what to type. The command names the folder, as it may be typed where another one is the default. */
export function restoreAdvice(folder: string): string {
  const copy = newestCopy(folder);
  const backup = copy === undefined ? "a backup" : "the newest backup in the folder, or another,";
  const words = `restore ${shellWord(copy ?? "FILE")} --force --data ${shellWord(folder)}`;
  return `restore ${backup} with \`evreg ${words}\`, which keeps what is there`;
}

/** Answers the newest backup, or file from before an upgrade, that is in the folder and whole without a log. */
function newestCopy(folder: string): string | undefined {
  const paths = readdirSync(folder).map((name) => join(folder, name));
  return paths.filter(isCopy).toSorted((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)[0];
}

const COPY_NAME = /^(?:evreg\.db\.before-\w+|.*\.db)$/;

function isCopy(path: string): boolean {
  if (!COPY_NAME.test(basename(path)) || path === dataFileOf(dirname(path))) return false;
  try {
    return sizeOf(`${path}-wal`) === 0 && isEvregs(path);
  } catch {
    return false;
  }
}

/**
 * Creates the folder (0700) where it is missing, and checks that it can be written to. An existing one keeps its
 * permissions.
 * @throws EvregError `usage` when the path is no folder; `unavailable` when it cannot be written to
 */
export function prepareFolder(folder: string): void {
  using(folder, () => {
    makeFolder(folder);
    // This tells a folder from a file.
    readdirSync(folder);
    accessSync(folder, constants.W_OK | constants.X_OK);
  });
}

/** Creates an empty data file (0600). */
export function createFile(path: string): void {
  using(path, () => {
    writeFileSync(path, "", { flag: "a", mode: 0o600 });
    // The folder is synced before the engine makes a log beside the file: after a power cut there is no log without its file.
    syncFolderOf(path);
  });
}

/** @throws EvregError `unavailable` with what to do */
export function mustBeWritable(path: string): void {
  using(path, () => accessSync(path, constants.R_OK | constants.W_OK));
}

/** Whether anything would be lost with the data file. A log without its file is somebody's data too. */
export function hasDataAt(file: string): boolean {
  return (fileExists(file) && sizeOf(file) > 0) || sizeOf(logOf(file)) > 0;
}

/** Does something with a data folder, or a file in it. Of a system call that fails it says what that means, and what to do. */
function using<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOTDIR") {
      const why = `${path} is not a folder, so no data can be kept in it. Give another one with --data.`;
      throw new EvregError("usage", why, { folder: path });
    }
    const what = `The data folder cannot be used: ${path}: ${message}. Where this user has no permission, change its owner or permissions; or give another folder with --data.`;
    throw new EvregError("unavailable", what, { folder: path }, { cause: error });
  }
}

export function inUseError(folder: string): EvregError {
  const owner = readOwner(folder);
  const who = owner === undefined ? "another process" : describeOwner(owner);
  const message = `The data folder ${folder} is in use by ${who}. Stop that first, or give another folder with --data.`;
  const { pid, command } = owner ?? {};
  return new EvregError("conflict", message, { folder, ...(owner && { pid, command }) });
}

/** @throws EvregError `usage` when it is anything else than a file: what replaces the file that a link leads to belongs beside that */
export function fileExists(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.isFile()) return stats !== undefined;
  const what = stats.isSymbolicLink()
    ? "a link. Put the file itself into the folder, or make the whole folder a link"
    : "not a file. Move it away, or give another folder with --data";
  throw new EvregError("usage", `${path} is ${what}.`, { file: path });
}

/**
 * How each file of evreg begins, as hexadecimal digits: the engine's mark, pages of 4,096 bytes, with a log or without one,
 * nothing reserved in a page, and the shares of a page that a row may take.
 */
const BEGINNING = /^53514c69746520666f726d617420330010000[12]0[12]00402020/;
const HEADER_BYTES = 100;

/**
 * Reads the form of a file as the engine would, which would already write to it: see `formOf`; `undefined` for a file that is
 * missing or empty. To be called only while this process has no connection to the file: closing any descriptor of it would drop
 * the process's locks on it.
 * @throws EvregError `unavailable` where it cannot be read
 */
function formAt(path: string): number | undefined {
  if (!fileExists(path)) return undefined;
  const header = Buffer.alloc(HEADER_BYTES);
  const read = (descriptor: number): number => readSync(descriptor, header, 0, HEADER_BYTES, 0);
  const bytes = using(path, () => withFile(path, "r", read));
  if (bytes === 0) return undefined;
  const isDatabase = BEGINNING.test(header.toString("hex")) && header.readUInt32BE(44) <= 4;
  return isDatabase ? formOf(header.readUInt32BE(68), header.readInt32BE(60)) : -1;
}

/** Whether there is a file that an evreg has made; as `formAt`. */
export function isEvregs(path: string): boolean {
  return (formAt(path) ?? 0) > 0;
}

/** Files that a first start makes before the data file is whole. All others of evreg's come later. */
const FIRST_FILES = new Set([DATA_FILE, `${DATA_FILE}-wal`, `${DATA_FILE}-journal`]);

function isTrace(path: string): boolean {
  const name = basename(path);
  return (OWN_FILE_NAME.test(name) && !FIRST_FILES.has(name)) || isCopy(path);
}

/**
 * Reads the form of a folder's data file. It is 0 where the file is missing or empty, which must never have held anything.
 *
 * To be called only while this process has no connection to the file.
 * @throws EvregError `invalid` when it is not evreg's; `usage` when it is of another form; `unavailable` where the data are gone
 */
export function admittedVersion(folder: string): number {
  const path = dataFileOf(folder);
  // The folder is read before the file, as another first start may be under way.
  const traces = readdirSync(folder).filter((name) => isTrace(join(folder, name)));
  const form = formAt(path);
  if (form === undefined) {
    // The engine would take a log without its file for a leftover and remove it, and it is the newest part of the data.
    const log = logOf(path);
    if (sizeOf(log) > 0) traces.unshift(log);
    if (traces.length === 0) return 0;
    mustNotBeMoved(folder);
    const { database } = readOwner(folder) ?? {};
    if (database !== undefined) {
      const message = `The server of the data folder ${folder} had its data in the database ${database}. Set database.url or EVREG_DATABASE_URL to that one, or name a server that runs with --url. To begin with a data file here instead, remove ${ownerFileOf(folder)}.`;
      throw new EvregError("unavailable", message, { file: path });
    }
    throw new EvregError(
      "unavailable",
      `The data file ${path} is missing or empty, but the folder has had data: it has ${traces.join(", ")}. ` +
        `Nothing was changed. Put the data file back, or ${restoreAdvice(folder)}. ` +
        "To begin without that data, move these files away, or name another folder with --data.",
      { file: path },
    );
  }
  // It is 0 in a file from a first start that was cut off; the engine then reads its log.
  if (form !== 0) mustBeData(path, form);
  return form;
}

/**
 * Refuses a data file that is not evreg's, or has another form than those that can be brought to today's.
 * @throws EvregError `invalid`; `usage`
 */
export function mustBeData(path: string, form: number): void {
  if (form > 0) return mustBeKnown("usage", `The data file ${path}`, form);
  const message = `The file ${path} was not made by evreg, or its beginning is damaged, so it is left alone. Put it back from a copy, or ${restoreAdvice(dirname(path))}; or give another folder with --data.`;
  throw new EvregError("invalid", message, { file: path });
}

// A file that takes the place of the data file is made beside it, and is whole and on the disk before it gets the name.

const UNFINISHED = ".unfinished-";

/**
 * Gives a copy of a data file, or another one, its name, once `make` has filled it and put it on the disk. The file before stays
 * beside it. Where `make` throws, nothing has changed and nothing of the copy is left.
 *
 * The file before gets a second name, and then the copy takes the first one in one step: cut off anywhere, this leaves the old data
 * or the new at their path. A log that could not be moved into the old file has to go with that file, as it would be taken for the
 * new one's. Then, and where files cannot have two names, no data file is there for a moment, and a start that finds none refuses
 * (see `admittedVersion`).
 * @param keptAs how the name of the file before goes on
 * @returns what `make` answers, and the path of the file before
 */
export async function replaceFile<T>(
  file: string,
  keptAs: string,
  make: (copy: string) => Promise<T>,
): Promise<{ readonly made: T; readonly kept: string }> {
  const id = randomUUID();
  const copy = `${file}${UNFINISHED}${id}`;
  try {
    const made = await make(copy);
    const kept = `${file}.${keptAs}`;
    const log = logOf(file);
    if (existsSync(file) && (sizeOf(log) > 0 || !isLinked(file, kept))) move(file, kept);
    if (sizeOf(log) > 0) move(log, logOf(kept));
    move(copy, file);
    return { made, kept };
  } finally {
    removeCopies(file, id);
  }
}

/** Removes copies that were to become the data file, with whatever the engine put beside them: all, or the one with this id. */
export function removeCopies(file: string, id = ""): void {
  const folder = dirname(file);
  const left = readdirSync(folder).filter((name) => name.startsWith(`${basename(file)}${UNFINISHED}${id}`));
  for (const name of left) rmSync(join(folder, name), { force: true });
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

// The names of a data file say how far `evreg move` is, so that nothing else need know: what is moved into a folder becomes its
// data file only when all of it is there, and a data file that was moved away is one no more.

/** Where a folder has what is being moved into it. */
export function arrivingFile(folder: string): string {
  return `${dataFileOf(folder)}.arriving`;
}

/** How the name of a data file begins that was moved away; a time follows. */
const MOVED = `${DATA_FILE}.moved-`;

export function movedFile(folder: string, timestamp: string): string {
  return join(folder, `${MOVED}${timestamp}`);
}

/** The data file of the folder that was moved away last. */
export function lastMovedFile(folder: string): string | undefined {
  const name = readdirSync(folder)
    .filter((one) => one.startsWith(MOVED) && !one.endsWith("-journal"))
    .toSorted()
    .at(-1);
  return name === undefined ? undefined : join(folder, name);
}

/**
 * Refuses to make data in a folder where they are still arriving, or were moved away from.
 * @throws EvregError `unavailable` with what to do
 */
function mustNotBeMoved(folder: string): void {
  const names = readdirSync(folder);
  if (names.includes(`${DATA_FILE}.arriving`)) {
    const message = `A move of data into the folder ${folder} has not ended. Run \`evreg move\` again, from where they come to ${shellWord(folder)}: it goes on where it was. To give it up, remove ${arrivingFile(folder)} and what is beside it under that name.`;
    throw new EvregError("unavailable", message, { folder });
  }
  const moved = lastMovedFile(folder);
  if (moved === undefined) return;
  const message = `The data of the folder ${folder} were moved into a database by \`evreg move\`, so nothing is served from here: use that database (EVREG_DATABASE_URL), or move the data back with \`evreg move --to ${shellWord(folder)}\`. To give up all that was stored since, rename ${moved} to ${DATA_FILE}; numbers of events are then given a second time.`;
  throw new EvregError("unavailable", message, { folder, moved });
}

/** What a backup ends with that the system or the engine did not let be made. */
export function backupFailure(error: unknown): unknown {
  if (error instanceof EvregError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (!(error instanceof EngineFailure) && typeof code !== "string") return error;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const why = isFull ? "the disk of the data is full" : (code ?? message);
  const said = `The backup could not be made (${why}). Nothing was changed; solve that and try again.`;
  return new EvregError("unavailable", said, {}, { cause: error });
}
