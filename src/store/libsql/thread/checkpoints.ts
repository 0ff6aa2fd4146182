import { closeSync, openSync, readSync } from "node:fs";
import { EvregError } from "../../../domain/error.ts";
import { isLogHeld, LOG_PAGES } from "./connection.ts";
import type { Sql } from "./sql.ts";

// For a copy of the data file that is made while it is written to (see `live-copy.ts`). The engine changes the file only
// when it moves the log into it. While a copy is made it does so only when asked, and tells which pages it changed.

/** Where in the log an earlier question ended. */
export interface LogPlace {
  /** Another one after each time the log was begun anew. */
  readonly salt: string;
  readonly frames: number;
}

export interface MovedLog {
  readonly place: LogPlace;
  /** Pages of the file, from 1, that were written since the place given; each once. */
  readonly pages: readonly number[];
}

const HEADER_BYTES = 32;
const SALT_AT = 16;
const FRAME_HEADER_BYTES = 24;
const FRAMES_AT_ONCE = 256;

/** From now on the log is only moved into the file when asked. Answers the size of a page. */
export function holdLog(sql: Sql): number {
  sql.run("PRAGMA wal_autocheckpoint = 0");
  return sql.first<{ page_size: number }>("PRAGMA page_size")!.page_size;
}

/**
 * Moves the log into the file and tells which pages that changed. The next write begins the log anew, so this is the last
 * moment at which it tells.
 * @param since answered by the question before
 * @throws EvregError `unavailable` when the log is not held any more, so that pages may have changed unseen
 */
export function moveLog(sql: Sql, log: string, since: LogPlace | undefined): MovedLog {
  mustBeHeld(sql);
  const { page_size: pageBytes } = sql.first<{ page_size: number }>("PRAGMA page_size")!;
  const moved = sql.first<{ busy: number; log: number; checkpointed: number }>(
    "PRAGMA wal_checkpoint(PASSIVE)",
  )!;
  if (moved.busy !== 0 || moved.checkpointed !== moved.log) {
    throw new EvregError("unavailable", "The data file's log could not be moved into it; try again.");
  }
  return pagesIn(log, moved.log, pageBytes, since);
}

/** Back to how it is without a copy. @throws as above, and then the copy may lack something */
export function releaseLog(sql: Sql): void {
  const held = isLogHeld(sql);
  sql.run(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}`);
  if (!held) throw notHeld();
}

function mustBeHeld(sql: Sql): void {
  if (!isLogHeld(sql)) throw notHeld();
}

function notHeld(): EvregError {
  return new EvregError(
    "unavailable",
    "The store had to open its data file anew while the copy was made; begin the copy again.",
  );
}

function pagesIn(log: string, frames: number, pageBytes: number, since: LogPlace | undefined): MovedLog {
  if (frames === 0) return { place: { salt: "", frames }, pages: [] };
  // No lock is ever held on the log, so opening and closing it is harmless.
  const descriptor = openSync(log, "r");
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    readSync(descriptor, header, 0, HEADER_BYTES, 0);
    const salt = header.toString("hex", SALT_AT, SALT_AT + 8);
    const first = since?.salt === salt ? since.frames : 0;
    return { place: { salt, frames }, pages: readPages(descriptor, first, frames, pageBytes) };
  } finally {
    closeSync(descriptor);
  }
}

function readPages(descriptor: number, first: number, end: number, pageBytes: number): number[] {
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  const block = Buffer.allocUnsafe(Math.min(FRAMES_AT_ONCE, Math.max(0, end - first)) * frameBytes);
  const pages = new Set<number>();
  for (let at = first; at < end; at += FRAMES_AT_ONCE) {
    const frames = Math.min(FRAMES_AT_ONCE, end - at);
    readSync(descriptor, block, 0, frames * frameBytes, HEADER_BYTES + at * frameBytes);
    for (let index = 0; index < frames; index += 1) pages.add(block.readUInt32BE(index * frameBytes));
  }
  return [...pages];
}
