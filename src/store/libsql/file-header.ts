import { closeSync, lstatSync, openSync, readSync, readlinkSync, statSync, type Stats } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { APPLICATION_ID, LATEST_VERSION } from "./migrations.ts";

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
 * process's locks on it (see `held-folders.ts`).
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
  const reason = error instanceof Error ? error.message : String(error);
  return new EvregError(
    "unavailable",
    `The data file ${path} cannot be read (${reason}).`,
    { file: path },
    { cause: error },
  );
}
