import { readSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { blockThread } from "../../../runtime/clock.ts";
import { withFile } from "../../../runtime/files.ts";
import { logOf, restoreAdvice } from "./data-folder.ts";

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
  /** Whether those commits, or all but the last few, were acknowledged. */
  readonly isDamaged: boolean;
}

// The log (WAL) of SQLite is a header, then a frame with its own header for each page that was written.
// See https://sqlite.org/fileformat2.html#walformat. No lock is ever held on it, so opening and closing it is harmless.

const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The page size of every file that evreg makes. */
export const PAGE_BYTES = 4_096;
const FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES;
/**
 * The number with which a log begins whose checksums are made of words with the lowest byte first, as on every machine that
 * evreg runs on.
 */
const MAGIC = 0x377f0682;
const BLOCK_FRAMES = 256;
const RECHECK_MS = 250;

/** Answers two numbers that change each time the log restarts, and that each frame repeats. */
function saltsAt(block: Buffer, at: number): string {
  return block.toString("latin1", at, at + 8);
}

const NOTHING: LogCheck = { wholeBytes: 0, commitsBehind: 0, isDamaged: false };

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
  const before = writtenAtNs(log);
  blockThread(recheckMs);
  const again = walk(log);
  return writtenAtNs(log) === before ? again : { ...again, isDamaged: false };
}

/** @throws EvregError `unavailable` for a log that is damaged, with what can be done */
export function mustBeUndamaged(file: string): LogCheck {
  const check = checkLog(file);
  if (!check.isDamaged) return check;
  const log = logOf(file);
  throw new EvregError(
    "unavailable",
    `The log ${log} is damaged, and the engine would drop what lies behind the damage: at least ${check.commitsBehind} ` +
      `transactions, which were acknowledged. ` +
      `Nothing was changed. Put back the two files from a copy, or ${restoreAdvice(dirname(file))}; ` +
      "or go on without those transactions with `evreg serve --accept-loss`, or `evreg migrate --accept-loss`, " +
      "which keep both files as they are beside the data.",
    { file: log, transactions: check.commitsBehind },
  );
}

function writtenAtNs(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.mtimeNs;
}

/** Reads a log once, as it is; whoever writes it may have added to it meanwhile. */
function walk(log: string): LogCheck {
  try {
    return withFile(log, "r", (descriptor) => {
      const header = Buffer.from(new ArrayBuffer(LOG_HEADER_BYTES));
      const read = readSync(descriptor, header, 0, LOG_HEADER_BYTES, 0);
      return read < LOG_HEADER_BYTES ? NOTHING : walkFrames(descriptor, header);
    });
  } catch (error) {
    // There is no log, or its owner has just removed it.
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return NOTHING;
    const why = `cannot be read: ${code ?? message}. Nothing was changed.`;
    const what = `The log ${log}, which holds the newest part of the data, ${why}`;
    throw new EvregError("unavailable", what, { file: log }, { cause: error });
  }
}

function walkFrames(descriptor: number, header: Buffer): LogCheck {
  let sum = header.readBigUInt64BE(24);
  const isHeaderWhole =
    header.readUInt32BE(0) === MAGIC && sumOf(new Int32Array(header.buffer), 0, 6, 0n) === sum;
  let salts = isHeaderWhole ? saltsAt(header, 16) : undefined;
  const block = Buffer.from(new ArrayBuffer(BLOCK_FRAMES * FRAME_BYTES));
  const words = new Int32Array(block.buffer);
  /** Whether the header or a frame that came is not whole. */
  let isBroken = !isHeaderWhole;
  /** How many frames there are to the last commit that is whole. */
  let whole = 0;
  let commitsBehind = 0;
  let wholeBehind = 0;
  let isOfThisLog = true;
  for (let first = 0; ; first += BLOCK_FRAMES) {
    const read = readSync(descriptor, block, 0, block.length, LOG_HEADER_BYTES + first * FRAME_BYTES);
    const count = Math.floor(read / FRAME_BYTES);
    if (count === 0) break;
    for (let index = 0; index < count; index += 1) {
      const at = index * FRAME_BYTES;
      const stored = block.readBigUInt64BE(at + 16);
      const hasSalts = saltsAt(block, at + 8) === (salts ??= saltsAt(block, at + 8));
      // The checksum is that of the first two words of the frame's header and of its page.
      const headerSum = sumOf(words, at / 4, at / 4 + 2, sum);
      const follows =
        sumOf(words, (at + FRAME_HEADER_BYTES) / 4, (at + FRAME_BYTES) / 4, headerSum) === stored;
      sum = stored;
      const isWhole = hasSalts && follows;
      if (!isWhole) isBroken = true;
      // A frame whose salts alone were changed is of this log as well. Frames from before a restart follow from each other,
      // too.
      const isOurs = hasSalts || (follows && isOfThisLog);
      isOfThisLog = hasSalts;
      // The last frame of a commit has how many pages the data file then has; all others have 0.
      const isCommit = isOurs && block.readUInt32BE(at + 4) !== 0;
      if (!isCommit) continue;
      if (!isBroken) {
        whole = first + index + 1;
        continue;
      }
      commitsBehind += 1;
      if (isWhole) wholeBehind += 1;
    }
  }
  return {
    wholeBytes: whole === 0 ? 0 : LOG_HEADER_BYTES + whole * FRAME_BYTES,
    commitsBehind,
    isDamaged: isHeaderWhole ? wholeBehind > MAX_UNSYNCED + 1 : commitsBehind > 0,
  };
}

/** Answers the engine's checksum, which is two words of 32 bits. Each frame continues that of the one before. */
function sumOf(words: Int32Array, from: number, to: number, before: bigint): bigint {
  let one = Number(before >> 32n) | 0;
  let two = Number(before & 0xffff_ffffn) | 0;
  for (let at = from; at < to; at += 2) {
    one = (one + words[at]! + two) | 0;
    two = (two + words[at + 1]! + one) | 0;
  }
  return (BigInt(one >>> 0) << 32n) | BigInt(two >>> 0);
}
