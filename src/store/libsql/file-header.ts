import { closeSync, openSync, readSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { APPLICATION_ID, LATEST_VERSION } from "./migrations.ts";

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;

/**
 * The form of the data file by its first bytes, without the engine, which would already write to it. 0 when there is
 * nothing in it yet.
 *
 * To be called only while this process has no connection to the file: closing any descriptor of it would drop the
 * process's locks on it (see `held-folders.ts`).
 * @throws EvregError `usage` when it is something else than an evreg file, or of a newer version
 */
export function readFileVersion(path: string): number {
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
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return 0;
    if (code === "EISDIR") throw notEvreg(path);
    throw new EvregError(
      "unavailable",
      `The data file ${path} cannot be read (${(error as Error).message}).`,
      { file: path },
      { cause: error },
    );
  }
  if (length === 0) return 0;
  if (length < HEADER_BYTES || header.toString("latin1", 0, MAGIC.length) !== MAGIC) throw notEvreg(path);
  const version = header.readUInt32BE(60);
  const applicationId = header.readUInt32BE(68);
  // All zero: made by a first start that was cut off; what is in its log, the engine tells.
  if (version !== 0 || applicationId !== 0) checkForm(path, applicationId, version);
  return version;
}

/** @throws EvregError `usage` as above */
export function checkForm(path: string, applicationId: number, version: number): void {
  if (applicationId !== APPLICATION_ID) throw notEvreg(path);
  if (version > LATEST_VERSION) {
    throw new EvregError(
      "usage",
      `The data file ${path} has form ${version}, and this evreg knows forms up to ${LATEST_VERSION}. ` +
        "A newer evreg made it: start that one, or give another folder with --data. The file was not changed.",
      { file: path, version, latest: LATEST_VERSION },
    );
  }
}

export function notEvreg(path: string): EvregError {
  return new EvregError(
    "usage",
    `The file ${path} was not made by evreg, so it is left alone. Give another folder with --data.`,
    { file: path },
  );
}
