import { existsSync, readSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { toIso } from "../../../runtime/clock.ts";
import { sizeOf, withFile } from "../../../runtime/files.ts";
import { restoreAdvice } from "../files/earlier-data.ts";

// The engine reads the log up to the first frame that is not whole and silently drops the rest. That is right for what a
// power cut leaves, and wrong for a log that was damaged later: what lies behind was acknowledged. So the log is read
// here before the engine opens it.
//
// A commit is acknowledged once an fsync of the log has returned, and only then is the next frame written. So only the last
// commits may not be on the disk: one whose fsync is under way, and at most `MAX_UNSYNCED` that may be durable later (see
// `connection.ts`). A power cut may keep any of their 512-byte sectors and lose any others. Where more commits than that lie
// behind a frame that is not whole, no power cut did that: the log is damaged. With as many or fewer nobody can know; evreg
// starts, says so, and gives none of their numbers again.
//
// Here a commit counts when its last frame is whole: it follows from the one before it, and has the salts of this log.
// Frames from before the log restarted have other salts, and a transaction that was undone has no such frame.
//
// The engine writes the header of a log within one sector, and stores it before the first frame. So a header that is not whole
// was damaged later, unless a disk tears a sector; what lies behind it is then refused as well.

/** Commits in a row that may be durable later; each further one is durable before it is answered. */
export const MAX_UNSYNCED = 4;

export interface LogCheck {
  /** The bytes of the log from its beginning to the last commit that the engine takes. */
  readonly wholeBytes: number;
  /** How many commits there are from the first frame that is not whole, themselves whole or not. */
  readonly commitsBehind: number;
  /** How many pages there are from that frame to the last of those commits. */
  readonly pagesBehind: number;
  readonly pageBytes: number;
  /** Whether those commits, or all but the last few, were acknowledged. */
  readonly isDamaged: boolean;
}

// The log (WAL) of SQLite is a header, then a frame with its own header for each page that was written.
// See https://sqlite.org/fileformat2.html#walformat. No lock is ever held on it, so opening and closing it is harmless.

export const LOG_HEADER_BYTES = 32;
export const FRAME_HEADER_BYTES = 24;
/** The page size of every file that evreg makes. */
const PAGE_BYTES = 4_096;
/**
 * The number with which a log begins whose checksums are made of words with the lowest byte first, as on every machine that
 * evreg runs on.
 */
const MAGIC = 0x377f0682;
const BLOCK_FRAMES = 256;
const RECHECK_MS = 250;

export function framePage(block: Buffer, at = 0): number {
  return block.readUInt32BE(at);
}

/** Answers, for the last frame of a commit, how many pages the data file has with it; 0 for all others. */
export function committedPages(block: Buffer, at = 0): number {
  return block.readUInt32BE(at + 4);
}

/** Answers two numbers that change each time the log restarts, and that each frame repeats. */
function saltsAt(block: Buffer, at: number): string {
  return block.toString("latin1", at, at + 8);
}

const NOTHING: LogCheck = {
  wholeBytes: 0,
  commitsBehind: 0,
  pagesBehind: 0,
  pageBytes: PAGE_BYTES,
  isDamaged: false,
};

/**
 * Reads the whole log of a data file, some hundred frames at a time. Blocks its thread, about a second a GB.
 *
 * Another process may be writing it, as nothing is locked yet. So what looks damaged is read again. Where the log has
 * changed meanwhile it is in use, and the engine reports that.
 * @param file the data file
 */
export function checkLog(file: string, recheckMs = RECHECK_MS): LogCheck {
  const log = logOf(file);
  const first = walk(log);
  if (!first.isDamaged) return first;
  const before = look(log);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, recheckMs);
  const again = walk(log);
  const after = look(log);
  const isAtRest = before?.mtimeNs === after?.mtimeNs && before?.size === after?.size;
  return isAtRest ? again : { ...again, isDamaged: false };
}

/**
 * @throws EvregError `unavailable` for a damaged log, with what would be lost and what can be done; and for one beside an empty
 * file, of which the engine would remove it
 */
export function mustBeUndamaged(file: string): LogCheck {
  const check = checkLog(file);
  if (check.isDamaged) throw damagedLog(file, check);
  if (check.wholeBytes === 0 || sizeOf(file) > 0) return check;
  throw new EvregError(
    "unavailable",
    `The data file ${file} is empty, and its log is not. Nothing was changed. ` +
      `Put it back from a copy, or ${restoreAdvice(dirname(file), " --force")}, which keeps what is there.`,
    { file },
  );
}

/** Answers where the log of a data file is. The engine follows a link, and puts the log beside the file itself. */
export function logOf(file: string): string {
  return `${statSync(file, { throwIfNoEntry: false }) === undefined ? file : realpathSync(file)}-wal`;
}

function look(path: string): { mtimeNs: bigint; size: bigint; mtimeMs: bigint } | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}

function damagedLog(file: string, { commitsBehind, pagesBehind }: LogCheck): EvregError {
  const log = logOf(file);
  return new EvregError(
    "unavailable",
    `The log ${log} is damaged, and the engine would drop what lies behind the damage: at least ${commitsBehind} ` +
      `transactions on ${pagesBehind} pages, which were acknowledged between ${writtenAt(file)} and ${writtenAt(log)}. ` +
      `Nothing was changed. Put back the two files from a copy, or ${restoreAdvice(dirname(file), " --force")}; ` +
      "or go on without those transactions with `evreg serve --accept-loss`, or `evreg migrate --accept-loss`, " +
      "which keep both files as they are beside the data.",
    { file: log, transactions: commitsBehind, pages: pagesBehind },
  );
}

function writtenAt(path: string): string {
  return toIso(Number(look(path)?.mtimeMs ?? 0n));
}

type Sum = readonly [number, number];

/** Reads a log once, as it is; whoever writes it may have added to it meanwhile. */
export function walk(log: string): LogCheck {
  try {
    return withFile(log, "r", (descriptor) => {
      const header = alignedBuffer(LOG_HEADER_BYTES);
      const read = readSync(descriptor, header, 0, LOG_HEADER_BYTES, 0);
      return read < LOG_HEADER_BYTES ? NOTHING : walkFrames(descriptor, header);
    });
  } catch (error) {
    // There is no log, or its owner has just removed it.
    if ((error as NodeJS.ErrnoException).code === "ENOENT" && !existsSync(log)) return NOTHING;
    throw unreadable(log, error);
  }
}

function walkFrames(descriptor: number, header: Buffer): LogCheck {
  let sum = sumAt(header, 24);
  const isHeaderWhole = header.readUInt32BE(0) === MAGIC && isSame(sumOf(wordsOf(header), 0, 6, [0, 0]), sum);
  const pageBytes = isHeaderWhole ? header.readUInt32BE(8) : PAGE_BYTES;
  let salts = isHeaderWhole ? saltsAt(header, 16) : undefined;
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  const block = alignedBuffer(BLOCK_FRAMES * frameBytes);
  const words = wordsOf(block);
  /** The first frame that is not whole. */
  let broken = isHeaderWhole ? undefined : 0;
  let whole = 0;
  let commitsBehind = 0;
  let wholeBehind = 0;
  let lastBehind = 0;
  let isOfThisLog = true;
  for (let first = 0; ; first += BLOCK_FRAMES) {
    const read = readSync(descriptor, block, 0, block.length, LOG_HEADER_BYTES + first * frameBytes);
    const count = Math.floor(read / frameBytes);
    if (count === 0) break;
    for (let index = 0; index < count; index += 1) {
      const at = index * frameBytes;
      const stored = sumAt(block, at + 16);
      const hasSalts = saltsAt(block, at + 8) === (salts ??= saltsAt(block, at + 8));
      const follows = isSame(frameSum(words, at, frameBytes, sum), stored);
      sum = stored;
      const isWhole = hasSalts && follows;
      if (!isWhole) broken ??= first + index;
      // A frame whose salts alone were changed is of this log as well. Frames from before a restart follow from each other,
      // too.
      const isOurs = hasSalts || (follows && isOfThisLog);
      isOfThisLog = hasSalts;
      const isCommit = isOurs && committedPages(block, at) !== 0;
      if (!isCommit) continue;
      if (broken === undefined) {
        whole = first + index + 1;
        continue;
      }
      commitsBehind += 1;
      wholeBehind += isWhole ? 1 : 0;
      lastBehind = first + index;
    }
  }
  return {
    wholeBytes: whole === 0 ? 0 : LOG_HEADER_BYTES + whole * frameBytes,
    commitsBehind,
    pagesBehind: commitsBehind === 0 ? 0 : lastBehind - (broken ?? 0) + 1,
    pageBytes,
    isDamaged: isHeaderWhole ? wholeBehind > MAX_UNSYNCED + 1 : commitsBehind > 0,
  };
}

/** Answers the checksum over the first two words of a frame's header and its page. */
function frameSum(words: Int32Array, at: number, frameBytes: number, before: Sum): Sum {
  const word = at / 4;
  const ofHeader = sumOf(words, word, word + 2, before);
  return sumOf(words, word + FRAME_HEADER_BYTES / 4, word + frameBytes / 4, ofHeader);
}

/** Answers the engine's checksum. Each frame continues that of the one before. */
function sumOf(words: Int32Array, from: number, to: number, [first, second]: Sum): Sum {
  let one = first;
  let two = second;
  for (let at = from; at < to; at += 2) {
    one = (one + words[at]! + two) | 0;
    two = (two + words[at + 1]! + one) | 0;
  }
  return [one, two];
}

function isSame(one: Sum, other: Sum): boolean {
  return one[0] === other[0] && one[1] === other[1];
}

function sumAt(block: Buffer, at: number): Sum {
  return [block.readInt32BE(at), block.readInt32BE(at + 4)];
}

/** Makes a buffer that begins at a multiple of a word. */
function alignedBuffer(bytes: number): Buffer {
  return Buffer.from(new ArrayBuffer(bytes));
}

/** Answers the words of an aligned buffer, in the order of bytes of every machine that evreg runs on. */
function wordsOf(bytes: Buffer): Int32Array {
  return new Int32Array(bytes.buffer);
}

function unreadable(log: string, error: unknown): EvregError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new EvregError(
    "unavailable",
    `The log ${log}, which holds the newest part of the data, cannot be read: ${code ?? message}. Nothing was changed.`,
    { file: log },
    { cause: error },
  );
}
