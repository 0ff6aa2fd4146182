import { closeSync, fsyncSync, openSync, readvSync } from "node:fs";
import { basename } from "node:path";
import { withFile } from "../../../runtime/files.ts";
import { setAside } from "./file-guard.ts";
import {
  committedPages,
  FRAME_HEADER_BYTES,
  frameSalts,
  isLogHeader,
  LOG_HEADER_BYTES,
  logSalts,
  PAGE_BYTES,
  readLogHeader,
} from "./log-format.ts";
import { EngineFailure } from "./sql.ts";

const FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES;

/**
 * Checks that the log still ends as it was written. The system lets it be cut short while it is open. The engine then
 * writes on at the old end, takes the zeros between for pages, and moves them into the data file.
 *
 * So the header of the last commit's last frame is read again before and after each transaction. It must be unchanged,
 * unless the log has restarted, which gives it other salts. That keeps a promise of `docs/troubleshooting.md`: nothing more is
 * acknowledged once the log was cut. The log's length is never looked at (see `file-guard.ts`).
 */
export class LogGuard {
  readonly #file: string;
  readonly #path: string;
  readonly #found = Buffer.alloc(FRAME_HEADER_BYTES);
  readonly #last = Buffer.alloc(FRAME_HEADER_BYTES);
  #salts = "";
  /** Where the last frame of the last commit begins; 0 while none is known. */
  #lastAt = 0;
  #log: number | undefined;
  #pagesBefore = 0;
  #isRestarted = false;

  /** @param file the data file, without links */
  constructor(file: string) {
    this.#file = file;
    this.#path = `${file}-wal`;
  }

  /** How many pages it had before the last commit was appended; 0 where that commit restarted it. */
  get pagesBefore(): number {
    return this.#pagesBefore;
  }

  /** Whether the last commit found it moved into the data file, and restarted it. */
  get isRestarted(): boolean {
    return this.#isRestarted;
  }

  /**
   * @param isCommitted whether a transaction has just been added to it
   * @throws EngineFailure `fatal` when it was cut short
   */
  check(isCommitted: boolean): void {
    let isWhole = true;
    try {
      isWhole = isCommitted ? this.#followCommit() : this.#isWhole();
    } catch {
      // The disk failed to read it, which says nothing of what is there.
      this.forget();
    }
    if (isWhole) return;
    throw new EngineFailure(
      "fatal",
      `${basename(this.#path)}, which holds the newest part of the data, was cut short while evreg was running, ` +
        `and some of what was acknowledged is lost; ${setAside(this.#file, Date.now())}`,
    );
  }

  /** To be called when the log was emptied, or may hold what was not committed. */
  forget(): void {
    this.#lastAt = 0;
    this.#pagesBefore = 0;
    this.#salts = "";
  }

  /**
   * Stores the log on the disk as it is now.
   * @throws what the system says
   */
  sync(): void {
    try {
      withFile(this.#path, "r+", fsyncSync);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }

  close(): void {
    if (this.#log !== undefined) closeSync(this.#log);
    this.#log = undefined;
  }

  /** @returns whether the end that was found last is still there */
  #isWhole(): boolean {
    if (this.#log === undefined || this.#lastAt === 0) return true;
    this.#readFrame(this.#log, this.#lastAt);
    if (this.#found.equals(this.#last)) return true;
    const header = readLogHeader(this.#log);
    const isRestarted = isLogHeader(header) && logSalts(header) !== this.#salts;
    if (isRestarted) this.#lastAt = 0;
    return isRestarted;
  }

  /**
   * Finds the end of the commit that was just made, in a dozen reads where that has some hundred frames.
   * @returns whether the end that was found before is still there
   */
  #followCommit(): boolean {
    const log = (this.#log ??= openIfExists(this.#path));
    if (log === undefined) return true;
    const header = readLogHeader(log);
    if (!isLogHeader(header)) return this.#lastAt === 0;
    const salts = logSalts(header);
    // Restarted: what is far behind is still as it was.
    this.#isRestarted = salts !== this.#salts && this.#salts !== "";
    if (salts !== this.#salts) this.#lastAt = 0;
    else if (!this.#isWhole()) return false;
    this.#salts = salts;
    const before = this.#lastAt === 0 ? LOG_HEADER_BYTES - FRAME_BYTES : this.#lastAt;
    this.#pagesBefore = (before + FRAME_BYTES - LOG_HEADER_BYTES) / FRAME_BYTES;
    let newest = before;
    let step = FRAME_BYTES;
    for (; this.#isCurrent(log, newest + step); step *= 2) newest += step;
    while (step > FRAME_BYTES) {
      step /= 2;
      if (this.#isCurrent(log, newest + step)) newest += step;
    }
    // A transaction that was undone may have left frames, which the next one overwrites.
    for (; newest > before; newest -= FRAME_BYTES) {
      if (!this.#isCurrent(log, newest) || committedPages(this.#found) === 0) continue;
      this.#found.copy(this.#last);
      this.#lastAt = newest;
      break;
    }
    return true;
  }

  /** Whether a frame begins there that was written since the log restarted. */
  #isCurrent(log: number, at: number): boolean {
    this.#readFrame(log, at);
    return frameSalts(this.#found) === this.#salts;
  }

  #readFrame(log: number, at: number): void {
    this.#found.fill(0, readvSync(log, [this.#found], at));
  }
}

function openIfExists(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    return undefined;
  }
}
