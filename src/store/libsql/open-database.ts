import { ConnectionPool } from "@libsql/client/sqlite3";
import { pathToFileURL } from "node:url";

/**
 * The system's own file layer of the engine. Its default one, made for files that the engine encrypts, takes a read that
 * the disk failed for one of zeros: a checkpoint then writes those into the data file. What evreg encrypts, it encrypts
 * itself (see `vault.ts`), so nothing is lost by it.
 */
const FILE_LAYER = process.platform === "win32" ? "win32" : "unix";

/** Opens a file with the engine. The only place that does, so that no file is ever opened through another layer. */
export function openDatabase(path: string): ConnectionPool {
  return new ConnectionPool(addressOf(path), {}, 1);
}

/** The address of a file for the engine, whatever its path has in it: `?`, `#`, `%`, spaces. */
export function addressOf(path: string): string {
  const address = pathToFileURL(path);
  address.searchParams.set("vfs", FILE_LAYER);
  return address.href;
}
