import { EvregError } from "../../../domain/error.ts";
import { withFile } from "../../../runtime/files.ts";
import { isLogHeld, LOG_PAGES } from "./connection.ts";
import { frameHeaders, framePage, logSalts, readLogHeader } from "./log-format.ts";
import type { Sql } from "./sql.ts";

// For a copy of the data file that is made while it is written to (see `live-copy.ts`). The engine changes the file only
// when it moves the log into it. While a copy is made it does so only on request, and reports which pages it changed.

/** How far the log has been moved. */
export interface LogPosition {
  /** Changes each time the log restarts. */
  readonly salts: string;
  readonly frames: number;
}

export interface MovedLog {
  readonly position: LogPosition;
  /** Pages of the file, from 1, that were written since the position given; each once. */
  readonly pages: readonly number[];
}

/** From now on the log is only moved into the file on request. Returns the size of a page. */
export function holdLog(sql: Sql): number {
  sql.run("PRAGMA wal_autocheckpoint = 0");
  return sql.value<number>("PRAGMA page_size");
}

/**
 * Moves the log into the file and reports which pages that changed. The next write restarts the log, so this is the last
 * moment at which they are known.
 * @param since where the last call ended
 * @throws EvregError `unavailable` when the log is not held any more, so that pages may have changed unseen
 */
export function moveLog(sql: Sql, log: string, since: LogPosition | undefined): MovedLog {
  if (!isLogHeld(sql)) throw notHeld();
  const moved = sql.first<{ busy: number; log: number; checkpointed: number }>(
    "PRAGMA wal_checkpoint(PASSIVE)",
  )!;
  if (moved.busy !== 0 || moved.checkpointed !== moved.log) {
    throw new EvregError("unavailable", "The data file's log could not be moved into it; try again.");
  }
  const frames = moved.log;
  if (frames === 0) return { position: { salts: "", frames }, pages: [] };
  return withFile(log, "r", (descriptor) => {
    const salts = logSalts(readLogHeader(descriptor));
    const first = since?.salts === salts ? since.frames : 0;
    const pages = new Set<number>();
    const pageBytes = sql.value<number>("PRAGMA page_size");
    for (const [header] of frameHeaders(descriptor, pageBytes, first, frames)) pages.add(framePage(header));
    return { position: { salts, frames }, pages: [...pages] };
  });
}

/** Ends what `holdLog` began. @throws as above, and then the copy may lack something */
export function releaseLog(sql: Sql): void {
  const isHeld = isLogHeld(sql);
  sql.run(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}`);
  if (!isHeld) throw notHeld();
}

function notHeld(): EvregError {
  return new EvregError(
    "unavailable",
    "The store had to open its data file anew while the copy was made; begin the copy again.",
  );
}
