import { createHash } from "node:crypto";
import { fdatasyncSync, writeFileSync } from "node:fs";
import { EvregError } from "../../../domain/error.ts";
import type { Backup } from "../../../domain/operations.ts";
import { freeBytesAt, sizeOf } from "../../../runtime/files.ts";
import { ReadConnection } from "../connection.ts";
import type { SyncSql } from "../statements.ts";
import { backupFailure, logOf } from "./data-folder.ts";
import type { FileId } from "./file-guard.ts";
import { PAGE_BYTES } from "./wal-check.ts";

/** Where a file has the formats in which it is written and read, and those of a whole one without a log. */
const FORMAT_AT = 18;
const WITHOUT_LOG = Buffer.from([1, 1]);
/** So many pages are read at once: a MiB. */
const PIECE_PAGES = 256;
/**
 * So many bytes are stored on the disk before more are written: a commit's fsync waits for what others have written, seconds
 * for a GB.
 */
const SYNC_BYTES = 8 * 1024 * 1024;
/** So many bytes are left free for what is published meanwhile. */
const RESERVE_BYTES = 64 * 1024 * 1024;

type Copied = Pick<Backup, "bytes" | "sha256">;

/**
 * Copies what the data file holds now, while the other threads go on with it. The engine answers pages, those of damaged rows too,
 * as they are for a read that has begun: what is committed meanwhile stays in the log until this has ended. The next commit then
 * moves it. To move it here, beside a thread that commits, is what the engine's WAL-reset bug needs to lose a part of it.
 * @param file the one that the other threads have open
 * @param copy the open descriptor of an empty file
 * @param stopped begins with a byte that is set where the copy is not wanted any more
 * @throws EvregError `unavailable` when it could not be made
 */
export async function copyData(
  path: string,
  file: FileId,
  copy: number,
  stopped: SharedArrayBuffer,
): Promise<Copied> {
  try {
    const connection = ReadConnection.open({ path, file });
    // It is let go of when its thread ends, which does nothing else.
    return await connection.answer(() =>
      Promise.resolve(copyPages(connection.read, path, copy, new Uint8Array(stopped))),
    );
  } catch (error) {
    throw backupFailure(error);
  }
}

function copyPages(sql: SyncSql, path: string, copy: number, stopped: Uint8Array): Copied {
  const pages = sql.value<number>("PRAGMA page_count");
  mustHaveFreeSpace(path, pages * PAGE_BYTES);
  const hash = createHash("sha256");
  let bytes = 0;
  let unsynced = 0;
  for (let page = 1; page <= pages && Atomics.load(stopped, 0) === 0; page += PIECE_PAGES) {
    const numbers = Array.from({ length: PIECE_PAGES }, (_, index) => page + index);
    const piece = sql.joined(
      `SELECT p.data AS bytes FROM list(?: page integer) AS l CROSS JOIN sqlite_dbpage AS p ON p.pgno = l.page`,
      numbers,
    );
    // Serving the copy makes it a file with a log again.
    if (page === 1) piece.set(WITHOUT_LOG, FORMAT_AT);
    hash.update(piece);
    writeFileSync(copy, piece);
    bytes += piece.length;
    unsynced += piece.length;
    if (unsynced < SYNC_BYTES) continue;
    unsynced = 0;
    fdatasyncSync(copy);
    mustHaveFreeSpace(path, sizeOf(logOf(path)));
  }
  return { bytes, sha256: hash.digest("hex") };
}

function mustHaveFreeSpace(path: string, bytes: number): void {
  const left = freeBytesAt(path);
  const needed = bytes + RESERVE_BYTES;
  if (left >= needed) return;
  const message = `There is no room for a copy of the data on its disk: ${left} bytes are free, and ${needed} are needed. Make room and try again; nothing was changed.`;
  throw new EvregError("unavailable", message, { free: left, needed });
}
