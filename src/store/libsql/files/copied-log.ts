import { fdatasyncSync, fstatSync, ftruncateSync, readSync, writeSync } from "node:fs";
import { withFile } from "../../../runtime/files.ts";
import { acquire } from "../thread/connection.ts";
import { type FileId, mustBeAt } from "../thread/file-guard.ts";
import {
  committedPages,
  FRAME_HEADER_BYTES,
  framePage,
  LOG_HEADER_BYTES,
  logOf,
  walk,
} from "../thread/wal-check.ts";

// The second half of a copy that is made while the data file is written to; see `backup.ts`.

/** So many pages are written before they are stored on the disk: a commit's fsync waits for what others have written. */
const SYNC_PAGES = 2_000;

/**
 * Adds the log of a data file to a copy of that file, up to the last commit that is whole. Since the copy began, the log was
 * neither moved nor restarted.
 * @param copy an open descriptor
 * @returns the copy's bytes
 */
export function addLog(path: string, copy: number): number {
  const log = logOf(path);
  const { wholeBytes, pageBytes } = walk(log);
  if (wholeBytes === 0) return fstatSync(copy).size;
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageBytes);
  withFile(log, "r", (descriptor) => {
    let written = 0;
    for (let at = LOG_HEADER_BYTES; at < wholeBytes; at += frame.length) {
      readSync(descriptor, frame, 0, frame.length, at);
      writeSync(copy, frame, FRAME_HEADER_BYTES, pageBytes, (framePage(frame) - 1) * pageBytes);
      written += 1;
      if (written % SYNC_PAGES === 0) fdatasyncSync(copy);
    }
  });
  const bytes = committedPages(frame) * pageBytes;
  ftruncateSync(copy, bytes);
  return bytes;
}

/** Moves most of a long log into the data file, which the other threads have open as `file` and go on with meanwhile. */
export function moveLog(path: string, file: FileId): void {
  mustBeAt(path, file);
  const { pool, sql } = acquire(path);
  try {
    sql.run("PRAGMA wal_checkpoint(PASSIVE)");
  } finally {
    pool.close();
  }
}
