import { readdirSync, readSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { shellWord } from "../../../domain/formats.ts";
import { DATA_FILE } from "../../../runtime/data-files.ts";
import { isSameFile, sizeOf, withFile } from "../../../runtime/files.ts";
import { APPLICATION_ID } from "./schema.ts";

/**
 * Names of files that evreg puts into a data folder only once the data file is on the disk. A first start that was cut off
 * before that leaves none of them.
 */
const LATER_FILE = /^(?:evreg\.db(?:-shm|\.(?:before|cut-short|restore)-.*)|(?:token|owner\.json)(?:\..*)?)$/;

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;
/**
 * The header has these bytes from its 20th on: nothing is reserved in a page, and these are the shares of a page that a row may
 * take.
 */
const FIXED = Buffer.from([0, 64, 32, 32]);
const MAX_NAMED = 3;

/** What the first bytes of a file say. */
export interface FileHeader {
  /** The bytes that could be read; 0 for an empty file. */
  readonly bytes: number;
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
    bytes,
    isDatabase: bytes === HEADER_BYTES && isWhole(header),
    applicationId: header.readUInt32BE(68),
    version: header.readInt32BE(60),
  };
}

/** Whether all that the engine needs of a header is as it writes it. */
function isWhole(header: Buffer): boolean {
  const pageBytes = header.readUInt16BE(16);
  const isPageSize = pageBytes === 1 || (pageBytes >= 512 && (pageBytes & (pageBytes - 1)) === 0);
  const [writeFormat = 0, readFormat = 0] = header.subarray(18, 20);
  const areFormats = [1, 2].includes(writeFormat) && [1, 2].includes(readFormat);
  const isFixed = header.subarray(20, 20 + FIXED.length).equals(FIXED);
  const isSchemaFormat = header.readUInt32BE(44) <= 4;
  const isEncoding = header.readUInt32BE(56) <= 3;
  const isMagic = header.toString("latin1", 0, MAGIC.length) === MAGIC;
  return isMagic && isPageSize && areFormats && isFixed && isSchemaFormat && isEncoding;
}

/** Answers the names of files in the folder which show that it has had data, whatever has become of the data file. */
export function tracesOfData(folder: string): readonly string[] {
  const names = readdirSync(folder);
  return names.filter((name) => LATER_FILE.test(name) || isCopy(join(folder, name))).toSorted();
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
  const isEmpty = isMissing ? "is missing" : "holds nothing";
  // The engine would take the log, which is the newest part of the data, for a leftover and remove it.
  if (isMissing && sizeOf(log) > 0) {
    throw refusal(
      path,
      `The data file ${path} is missing, and its log ${log}, which has the newest part of the data, is there. ` +
        `Put the data file back beside it, or ${restoreAdvice(folder, " --force")}; or, to begin without that data, move the log away.`,
    );
  }
  if (traces.length === 0) return;
  const more = traces.length > MAX_NAMED ? ` and ${traces.length - MAX_NAMED} more` : "";
  throw refusal(
    path,
    `The data file ${path} ${isEmpty}, but the folder has had data: it has ${traces.slice(0, MAX_NAMED).join(", ")}${more}. ` +
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
    const { isDatabase, applicationId, version } = readHeader(path);
    return isDatabase && applicationId === APPLICATION_ID && version > 0;
  } catch {
    return false;
  }
}

function refusal(path: string, message: string): EvregError {
  return new EvregError("unavailable", message, { file: path });
}
