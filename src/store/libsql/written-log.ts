import { closeSync, openSync, readvSync } from "node:fs";

const HEADER_BYTES = 32;
const MAGIC = 0x377f0682;
const SALTS_AT = 16;
const FRAME_HEADER_BYTES = 24;
const FRAME_BYTES = FRAME_HEADER_BYTES + 4_096;
/** In the header of a frame: how many pages the file has with it, in the last one of a commit; and the log's salts. */
const COMMIT_AT = 4;
const FRAME_SALTS_AT = 8;
const SALTS_BYTES = 8;

/**
 * Holds the log to what was written to it. The system lets it be cut short while it is open: the engine then writes on
 * behind where it was, with nothing but zeros between, takes those for pages, and moves them into the data file.
 *
 * So the head of the last commit's last frame is read again before and after each transaction, and must be as it was; only
 * a log that was begun anew has another there, and other salts. Nothing asks for the log's length: current Linux would
 * then have the next fsync store its times as well (see `file-place.ts`).
 */
export class WrittenLog {
  readonly #path: string;
  readonly #found = Buffer.alloc(FRAME_HEADER_BYTES);
  readonly #last = Buffer.alloc(FRAME_HEADER_BYTES);
  #salts: Buffer = Buffer.alloc(SALTS_BYTES);
  /** Where the last frame of the last commit begins; 0 while none is known. */
  #lastAt = 0;
  #log: number | undefined;
  #grownFrom = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** @returns whether what `follow` found last is still there */
  isWhole(): boolean {
    if (this.#log === undefined || this.#lastAt === 0) return true;
    this.#readHead(this.#log, this.#lastAt);
    if (this.#found.equals(this.#last)) return true;
    const header = readHeader(this.#log);
    const isBegunAnew = isHeader(header) && !saltsIn(header, SALTS_AT).equals(this.#salts);
    if (isBegunAnew) this.#lastAt = 0;
    return isBegunAnew;
  }

  /**
   * Finds the commit that was just made. A log of some hundred new frames is found the end of in a dozen reads.
   * @returns whether what was found last before is still there
   */
  follow(): boolean {
    const log = (this.#log ??= openIfThere(this.#path));
    if (log === undefined) return true;
    const header = readHeader(log);
    if (!isHeader(header)) return this.#lastAt === 0;
    const salts = saltsIn(header, SALTS_AT);
    // Begun anew: what is far behind is still as it was.
    if (!salts.equals(this.#salts)) this.#lastAt = 0;
    else if (!this.isWhole()) return false;
    this.#salts = salts;
    const before = this.#lastAt === 0 ? HEADER_BYTES - FRAME_BYTES : this.#lastAt;
    this.#grownFrom = (before + FRAME_BYTES - HEADER_BYTES) / FRAME_BYTES;
    let newest = before;
    let step = FRAME_BYTES;
    for (; this.#isOurs(log, newest + step); step *= 2) newest += step;
    while (step > FRAME_BYTES) {
      step /= 2;
      if (this.#isOurs(log, newest + step)) newest += step;
    }
    // One that was undone may have left frames, which the next one writes over.
    for (; newest > before; newest -= FRAME_BYTES) {
      if (!this.#isOurs(log, newest) || this.#found.readUInt32BE(COMMIT_AT) === 0) continue;
      this.#found.copy(this.#last);
      this.#lastAt = newest;
      break;
    }
    return true;
  }

  /** How many pages it had before the last commit, which was added behind them; 0 where that began it anew. */
  get grownFrom(): number {
    return this.#grownFrom;
  }

  /** To be called when it was emptied, or may hold what was not committed. */
  forget(): void {
    this.#lastAt = 0;
    this.#grownFrom = 0;
  }

  close(): void {
    if (this.#log !== undefined) closeSync(this.#log);
    this.#log = undefined;
  }

  /** Whether a frame of this round begins there. */
  #isOurs(log: number, at: number): boolean {
    this.#readHead(log, at);
    return saltsIn(this.#found, FRAME_SALTS_AT).equals(this.#salts);
  }

  /** By another call than the engine reads with, so that a trial that has those fail (`disk-errors`) meets only the engine. */
  #readHead(log: number, at: number): void {
    this.#found.fill(0, readvSync(log, [this.#found], at));
  }
}

function isHeader(header: Buffer): boolean {
  const magic = header.readUInt32BE(0);
  return magic - (magic % 2) === MAGIC;
}

function saltsIn(header: Buffer, at: number): Buffer {
  return header.subarray(at, at + SALTS_BYTES);
}

function readHeader(log: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  readvSync(log, [header], 0);
  return header;
}

/** No lock is ever held on it, so opening and closing it is harmless. */
function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    return undefined;
  }
}
