import { type Client, createClient, type Transaction } from "@libsql/client/sqlite3";
import { EngineFailure, engineFailure } from "./engine-failure.ts";
import { type FileId, fileIdAt, FilePlace, mustBeAt } from "./file-place.ts";
import { type Sql, sqlOn } from "./sql.ts";

/** Set on the connection in this order, then read back. */
const PRAGMAS: readonly (readonly [name: string, value: string, readsBack: string | number])[] = [
  // A wait for a lock would block the whole thread, and with the file held alone there is nothing to wait for.
  ["busy_timeout", "0", 0],
  ["journal_mode", "WAL", "wal"],
  ["synchronous", "FULL", 2],
  ["foreign_keys", "ON", 1],
  ["temp_store", "MEMORY", 2],
  ["cache_size", "-32768", -32_768],
  // 16 MiB of 4 KiB pages between checkpoints; a log that a burst made longer shrinks again.
  ["wal_autocheckpoint", "4000", 4_000],
  ["journal_size_limit", "67108864", 67_108_864],
];

/**
 * The one connection to the data file.
 *
 * The client underneath keeps a pool and may silently put a fresh connection, without pragmas and without the lock, in
 * the place of one whose rollback failed. Hence two rules: after an `EngineFailure` a connection is closed and never
 * written with again, and each transaction first looks for a mark that only the connection opened here has.
 *
 * Closing lets go of the file only when the garbage collector has taken the last statement, or when the thread ends.
 */
export class Connection {
  readonly #client: Client;
  readonly read: Sql;
  /** Known once it is open. */
  #place: FilePlace | undefined;

  private constructor(client: Client) {
    this.#client = client;
    this.read = guarded(client);
  }

  /**
   * Takes the file's lock and looks before anything is changed: `admit` reads what is there and throws to refuse it.
   * @param expected the file that must be there, for one that takes the place of another connection
   * @throws EngineFailure `in_use` at once when another process has it; `fatal` when it is not the one expected
   */
  static async open(
    path: string,
    admit: (sql: Sql) => Promise<void>,
    expected?: FileId,
  ): Promise<Connection> {
    // The engine would make a new one where there is none.
    if (expected !== undefined) mustBeAt(path, expected);
    const id = expected ?? fileIdAt(path);
    const client = createClient({ url: fileUrl(path), concurrency: 1 });
    const connection = new Connection(client);
    try {
      const { read } = connection;
      await connection.#set("locking_mode", "EXCLUSIVE", "exclusive");
      await admit(read);
      for (const pragma of PRAGMAS) await connection.#set(...pragma);
      await read.run("CREATE TEMP TABLE opened_here (mark INTEGER)");
      await read.run("INSERT INTO temp.opened_here VALUES (1)");
      connection.#place = new FilePlace(path, id);
    } catch (error) {
      client.close();
      throw error;
    }
    return connection;
  }

  /**
   * Does `work` in one transaction; resolves when it is committed, which here means fsync'd, into the file that is found
   * at its path.
   * What `work` throws undoes the transaction and comes out as it is; an engine's failure as `EngineFailure`.
   */
  async write<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    let step: "begin" | "statement" | "commit" = "begin";
    this.mustBeInPlace();
    const transaction = await this.#client.transaction("write").catch((error: unknown) => {
      throw engineFailure(error, "begin") ?? error;
    });
    try {
      const sql = guarded(transaction);
      await sql.first("SELECT mark FROM temp.opened_here");
      step = "statement";
      const result = await work(sql);
      step = "commit";
      await transaction.commit();
      // Only now: the file may have been taken away in the meantime, and then nobody would find this there.
      this.mustBeInPlace();
      return result;
    } catch (error) {
      throw engineFailure(error, step) ?? error;
    } finally {
      if (step !== "commit") rollBack(transaction);
    }
  }

  /** @throws EngineFailure `fatal` when the file it has open is not the one at its path any more */
  mustBeInPlace(): void {
    this.#place?.check();
  }

  /** Which file it has open. */
  get file(): FileId {
    if (this.#place === undefined) throw new Error("the connection is not open");
    return this.#place.id;
  }

  /** Moves the log into the file and cuts it, so that a copy of the one file is whole. */
  async checkpoint(): Promise<void> {
    await this.read.rows("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  close(): void {
    this.#client.close();
  }

  async #set(name: string, value: string, readsBack: string | number): Promise<void> {
    await this.read.rows(`PRAGMA ${name} = ${value}`);
    const row = await this.read.first<Record<string, unknown>>(`PRAGMA ${name}`);
    const found = row === undefined ? undefined : Object.values(row)[0];
    if (found !== readsBack) {
      throw new EngineFailure(
        "fatal",
        `the setting ${name} = ${value} was not taken (it is ${String(found)})`,
      );
    }
  }
}

/** Undoes what `work` did inside an open transaction when it throws, and only that. */
export async function inSavepoint<T>(sql: Sql, work: () => Promise<T>): Promise<T> {
  await sql.run("SAVEPOINT op");
  try {
    const result = await work();
    await sql.run("RELEASE op");
    return result;
  } catch (error) {
    if (!(error instanceof EngineFailure)) {
      await sql.run("ROLLBACK TO op");
      await sql.run("RELEASE op");
    }
    throw error;
  }
}

/** After a rollback that failed the connection is of no use; whoever sees the `EngineFailure` replaces it anyway. */
function rollBack(transaction: { close(): void }): void {
  try {
    transaction.close();
  } catch (error) {
    throw new EngineFailure("replace", "a transaction could not be undone", { cause: error });
  }
}

/** Statements whose failures tell the engine's from the request's. */
function guarded(executor: Client | Transaction): Sql {
  return sqlOn(async (statement) => {
    try {
      return await executor.execute(statement);
    } catch (error) {
      throw engineFailure(error, "statement") ?? error;
    }
  });
}

function fileUrl(path: string): string {
  const parts = path.replaceAll("\\", "/").split("/");
  return `file:${parts.map((part, index) => (index === 0 ? part : encodeURIComponent(part))).join("/")}`;
}
