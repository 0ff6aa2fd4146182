import { readdirSync, readSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type ErrorDetails, EvregError, type EvregErrorCode } from "../../../domain/error.ts";
import { shellWord } from "../../../domain/formats.ts";
import { DATA_FILE } from "../../../runtime/data-files.ts";
import { isSameFile, sizeOf, withFile } from "../../../runtime/files.ts";
import { APPLICATION_ID } from "./schema.ts";

/**
 * Names of files that evreg puts into a data folder only once the data file is on the disk. A first start that was cut off
 * before that leaves none of them.
 */
const LATER_FILE =
  /^(?:evreg\.db(?:-shm|\.(?:before|cut-short|unfinished)-.*)|(?:token|owner\.json)(?:\..*)?)$/;

/**
 * How each file of evreg begins, as hexadecimal digits: the engine's mark, pages of 4,096 bytes, with a log or without one,
 * nothing reserved in a page, and the shares of a page that a row may take.
 */
const BEGINNING = /^53514c69746520666f726d617420330010000[12]0[12]00402020/;
const HEADER_BYTES = 100;
const MAX_NAMED = 3;

/** What the first bytes of a file say. */
export interface FileHeader {
  readonly isEmpty: boolean;
  /** Whether it begins as evreg's files do. Of others the rest says nothing. */
  readonly isDatabase: boolean;
  readonly applicationId: number;
  readonly version: number;
}

/**
 * Reads the header of a file. To be called only while this process has no connection to the file: closing any descriptor of it
 * would drop the process's locks on it.
 * @throws what the system says
 */
export function readHeader(path: string): FileHeader {
  const header = Buffer.alloc(HEADER_BYTES);
  const bytes = withFile(path, "r", (descriptor) => readSync(descriptor, header, 0, HEADER_BYTES, 0));
  return {
    isEmpty: bytes === 0,
    isDatabase: BEGINNING.test(header.toString("hex")) && header.readUInt32BE(44) <= 4,
    applicationId: header.readUInt32BE(68),
    version: header.readInt32BE(60),
  };
}

/** Whether it is a file that an evreg has made. */
export function isEvregs({ isDatabase, applicationId, version }: FileHeader): boolean {
  return isDatabase && applicationId === APPLICATION_ID && version > 0;
}

/** Answers the names of files in the folder which show that it has had data, whatever has become of the data file. */
export function tracesOfData(folder: string): readonly string[] {
  const names = readdirSync(folder);
  return names.filter((name) => LATER_FILE.test(name) || isCopy(join(folder, name))).toSorted();
}

/** Makes the error of a file that is refused. */
export function fileError(
  code: EvregErrorCode,
  file: string,
  message: string,
  details: ErrorDetails = {},
  cause?: unknown,
): EvregError {
  return new EvregError(code, message, { file, ...details }, { cause });
}

/**
 * Refuses a data file that is missing or holds nothing, unless it must always have been so.
 * @param traces found before the data file was looked at, as another first start may be under way
 * @throws EvregError `unavailable` with what to do
 */
export function mustNeverHaveHeldData(path: string, traces: readonly string[]): void {
  const folder = dirname(path);
  const log = `${path}-wal`;
  const isMissing = statSync(path, { throwIfNoEntry: false }) === undefined;
  // The engine would take the log, which is the newest part of the data, for a leftover and remove it.
  if (isMissing && sizeOf(log) > 0) {
    throw fileError(
      "unavailable",
      path,
      `The data file ${path} is missing, and its log ${log}, which has the newest part of the data, is there. ` +
        `Put the data file back beside it, or ${restoreAdvice(folder, " --force")}; or, to begin without that data, move the log away.`,
    );
  }
  if (traces.length === 0) return;
  const more = traces.length > MAX_NAMED ? ` and ${traces.length - MAX_NAMED} more` : "";
  throw fileError(
    "unavailable",
    path,
    `The data file ${path} ${isMissing ? "is missing" : "holds nothing"}, but the folder has had data: it has ${traces.slice(0, MAX_NAMED).join(", ")}${more}. ` +
      `Nothing was changed. Put the data file back, or ${restoreAdvice(folder)}. ` +
      "To begin without that data, move these files away, or name another folder with --data.",
  );
}

/** @param options words of the command behind the file, such as ` --force` */
export function restoreAdvice(folder: string, options = ""): string {
  const copy = newestCopy(folder);
  const backup = copy === undefined ? "a backup" : "the newest backup in the folder, or another,";
  // The command names the folder, as it may be typed where another one is the default.
  const words = `restore ${shellWord(copy ?? "FILE")}${options} --data ${shellWord(folder)}`;
  return `restore ${backup} with \`evreg ${words}\``;
}

/** Answers the newest backup, or file from before an upgrade or a restore, that is in the folder and whole without a log. */
function newestCopy(folder: string): string | undefined {
  const paths = readdirSync(folder).map((name) => join(folder, name));
  return paths.filter(isCopy).toSorted((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)[0];
}

const COPY_NAME = /^(?:evreg\.db\.before-\w+|.*\.db)$/;

function isCopy(path: string): boolean {
  const dataFile = join(dirname(path), DATA_FILE);
  if (!COPY_NAME.test(basename(path)) || path === dataFile || isSameFile(path, dataFile)) return false;
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false;
  if (sizeOf(`${path}-wal`) > 0) return false;
  try {
    return isEvregs(readHeader(path));
  } catch {
    return false;
  }
}
