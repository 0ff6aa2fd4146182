import { ConnectionPool } from "@libsql/client/sqlite3";
import { pathToFileURL } from "node:url";
import { type LogCheck, mustBeUndamaged } from "./log-check.ts";

/**
 * The system's own file layer of the engine. Its default one, made for files that the engine encrypts, takes a read that
 * the disk failed for one of zeros: a checkpoint then writes those into the data file. What evreg encrypts, it encrypts
 * itself (see `vault.ts`), so nothing is lost by it.
 */
const FILE_LAYER = process.platform === "win32" ? "win32" : "unix";

export interface OpenedDatabase {
  readonly pool: ConnectionPool;
  /** What its log was like, of which nothing may be left once it is open. */
  readonly log: LogCheck;
}

/**
 * Opens a file with the engine. The only place that does, so that no file is ever opened through another layer, or with
 * a log that the engine would drop a part of.
 * @throws EvregError `unavailable` for a damaged log
 */
export function openDatabase(path: string): OpenedDatabase {
  const log = mustBeUndamaged(path);
  return { pool: new ConnectionPool(addressOf(path), {}, 1), log };
}

/** A database that lies in memory and goes when it is closed. */
export function openInMemory(): ConnectionPool {
  return new ConnectionPool(":memory:", {}, 1);
}

/** The address of a file for the engine, whatever its path has in it: `?`, `#`, `%`, spaces. */
export function addressOf(path: string): string {
  const address = pathToFileURL(path);
  address.searchParams.set("vfs", FILE_LAYER);
  return address.href;
}
