import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { type LogCheck, pagesInLog } from "./log-check.ts";

/** In the header of a data file: the size of a page, and how many there are. */
const PAGE_BYTES_AT = 16;
const PAGES_AT = 28;
const FILE_HEADER_BYTES = 32;

/**
 * Refuses a data file that has fewer pages than its header says, unless the log holds the rest, as it does where a
 * crash came while the engine moved the log into the file. The engine would meet what is missing only when it reads there;
 * and of an empty file it would remove the log.
 * @param file of which this process has no connection
 * @throws EvregError `unavailable`
 */
export function mustBeWholeLength(file: string, log: LogCheck): void {
  // The engine makes one.
  if (!existsSync(file)) return;
  const data = openSync(file, "r");
  try {
    const header = Buffer.alloc(FILE_HEADER_BYTES);
    const read = readSync(data, header, 0, FILE_HEADER_BYTES, 0);
    const { size } = fstatSync(data);
    const pageBytes = header.readUInt16BE(PAGE_BYTES_AT);
    const bytes = read < FILE_HEADER_BYTES ? 0 : header.readUInt32BE(PAGES_AT) * pageBytes;
    const isShort = size === 0 ? log.wholeBytes > 0 : size < bytes;
    if (
      !isShort ||
      (size > 0 && hasRest(pagesInLog(file, log), Math.floor(size / pageBytes), bytes / pageBytes))
    )
      return;
    // Another process may have it open, and have moved the log into it meanwhile.
    if (fstatSync(data).size === size) throw cutShort(file, size, bytes);
  } finally {
    closeSync(data);
  }
}

function hasRest(inLog: ReadonlySet<number>, has: number, wanted: number): boolean {
  for (let page = has + 1; page <= wanted; page += 1) if (!inLog.has(page)) return false;
  return true;
}

function cutShort(file: string, has: number, wanted: number): EvregError {
  const what =
    has === 0
      ? "is empty, and its log is not"
      : `has ${has} of ${wanted} bytes, and its log does not hold the rest`;
  return new EvregError(
    "unavailable",
    `The data file ${file} is damaged: it ${what}. It was cut short while nobody had it open. Nothing was changed. ` +
      "Put it back from a copy, or restore a backup with `evreg restore FILE --force`, which keeps what is there.",
    { file },
  );
}
