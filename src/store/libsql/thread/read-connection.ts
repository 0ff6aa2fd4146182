import type { ConnectionPool } from "@libsql/client/sqlite3";
import { type FileId, mustBeAt } from "./file-guard.ts";
import { acquire } from "./connection.ts";
import { EngineFailure, type Sql } from "./sql.ts";

/**
 * Beside the connection that writes it is only for reading. Without a wait it would fail where the other one restarts the
 * log at the same moment.
 */
const PRAGMAS = ["query_only = ON", "busy_timeout = 1000", "temp_store = MEMORY", "cache_size = -4096"];

/** The connection that reads. The file must be open for writing already: that is where it is checked and brought up to date. */
export class ReadConnection {
  readonly #path: string;
  readonly #file: FileId;
  readonly #pool: ConnectionPool;
  readonly #sql: Sql;

  private constructor(path: string, file: FileId, { pool, sql }: { pool: ConnectionPool; sql: Sql }) {
    this.#path = path;
    this.#file = file;
    this.#pool = pool;
    this.#sql = sql;
  }

  /**
   * @param file which the other connection has open
   * @throws EngineFailure `fatal` when it is not the one at the path
   */
  static open(path: string, file: FileId): ReadConnection {
    mustBeAt(path, file);
    const { pool, sql } = acquire(path);
    try {
      for (const pragma of PRAGMAS) sql.run(`PRAGMA ${pragma}`);
      mustBeAt(path, file);
      return new ReadConnection(path, file, { pool, sql });
    } catch (error) {
      pool.close();
      throw error;
    }
  }

  /**
   * Does `work` in one transaction, so that all of it sees the same commits. As long as it takes, the log cannot restart.
   * @throws EngineFailure `fatal` when the file it has open is not the one at its path any more
   */
  read<T>(work: (sql: Sql) => T): T {
    mustBeAt(this.#path, this.#file);
    this.#sql.run("BEGIN");
    try {
      const result = work(this.#sql);
      this.#sql.run("COMMIT");
      return result;
    } catch (error) {
      // After an engine's failure nothing may be open any more, and this connection is ended anyway.
      if (!(error instanceof EngineFailure)) this.#sql.run("ROLLBACK");
      throw error;
    }
  }

  /** Gives back the memory of its cache. */
  shrink(): void {
    this.#sql.run("PRAGMA shrink_memory");
  }

  close(): void {
    this.#pool.close();
  }
}
