import { messageOf } from "../../../domain/error.ts";
import { ConnectionPool } from "@libsql/client/sqlite3";
import { pathToFileURL } from "node:url";
import { type FileId, fileIdAt, FilePlace, mustBeAt } from "./file-guard.ts";
import { type LogCheck, MOST_UNSYNCED, mustBeUndamaged, mustBeWholeLength } from "./wal-check.ts";
import { type Database, EngineFailure, engineFailure, type Sql, type Statement, Statements } from "./sql.ts";

/** Pages in the log at which the engine moves it into the file: 16 MiB of 4 KiB. */
export const LOG_PAGES = 4_000;

/**
 * When what a transaction wrote is on the disk: before `write` returns, or with the next one that is `now`, or the next
 * checkpoint. After a cut of the power the file holds all transactions up to some point, and none of the later ones.
 */
export type Durable = "now" | "later";

const SYNCHRONOUS: Readonly<Record<Durable, string>> = {
  now: "PRAGMA synchronous = FULL",
  later: "PRAGMA synchronous = NORMAL",
};

/** Set on the connection in this order, then read back. */
const PRAGMAS: readonly (readonly [name: string, value: string, readsBack: string | number])[] = [
  // A wait for a lock would block the whole thread, and with the file held alone there is nothing to wait for.
  ["busy_timeout", "0", 0],
  ["journal_mode", "WAL", "wal"],
  ["synchronous", "FULL", 2],
  ["foreign_keys", "ON", 1],
  ["temp_store", "MEMORY", 2],
  ["cache_size", "-8192", -8_192],
  ["wal_autocheckpoint", String(LOG_PAGES), LOG_PAGES],
  // One that a burst made longer shrinks again.
  ["journal_size_limit", "67108864", 67_108_864],
];

/**
 * The one connection to the data file.
 *
 * It is taken from the client's pool once and kept: the client itself prepares each statement anew and may silently put
 * a fresh connection, without pragmas and without the lock, in the place of one whose rollback failed. After an
 * `EngineFailure` a connection is closed and never written with again.
 *
 * Closing lets go of the file only when the garbage collector has taken the last statement, or when the thread ends.
 */
export class Connection {
  readonly #pool: ConnectionPool;
  readonly #database: Database;
  readonly #steps = new Map<string, Statement>();
  #durable: Durable = "now";
  /** Commits since the last one that was durable at once. */
  #unsynced = 0;
  /** What the log was like before it was opened. */
  readonly log: LogCheck;
  /** For reading between two transactions, and for what cannot be in one. */
  readonly read: Sql;
  /** What the last commit took; whoever wants to know of a certain one clears it before. */
  lastCommitMs: number | undefined;
  /** Why the log could not be moved into the file when it was time; absent while it can. */
  checkpointFailure: string | undefined;
  /** Known once it is open. */
  #place: FilePlace | undefined;
  /** Whether what an earlier process left in the log is in the file. */
  #isSettled = false;

  private constructor(path: string) {
    try {
      ({ pool: this.#pool, log: this.log } = openDatabase(path));
      mustBeWholeLength(path, this.log);
      this.#database = this.#pool.acquireSync();
    } catch (error) {
      throw engineFailure(error, "begin") ?? error;
    }
    this.read = new Statements(this.#database);
  }

  /**
   * Takes the file's lock and looks before anything is changed: `admit` reads what is there and throws to refuse it.
   * @param expected the file that must be there, for one that takes the place of another connection
   * @throws EngineFailure `in_use` at once when another process has it; `fatal` when it is not the one expected
   */
  static open(path: string, admit: (sql: Sql) => void, expected?: FileId): Connection {
    // The engine would make a new one where there is none.
    if (expected !== undefined) mustBeAt(path, expected);
    const id = expected ?? fileIdAt(path);
    const connection = new Connection(path);
    try {
      connection.#set("locking_mode", "EXCLUSIVE", "exclusive");
      admit(connection.read);
      for (const pragma of PRAGMAS) connection.#set(...pragma);
      connection.#place = new FilePlace(path, id);
      connection.#settle();
    } catch (error) {
      connection.close();
      throw error;
    }
    return connection;
  }

  /**
   * Does `work` in one transaction; returns when it is committed, which means fsync'd unless it may be `later`, into the
   * file that is found at its path. After `MOST_UNSYNCED` that may be later, the next one is fsync'd all the same.
   * What `work` throws undoes the transaction and comes out as it is; an engine's failure as `EngineFailure`.
   */
  write<T>(work: (sql: Sql) => T, allowed: Durable = "now"): T {
    this.mustBeInPlace();
    this.#place?.checkLog(false);
    if (!this.#isSettled) this.checkpoint();
    const durable = this.#unsynced < MOST_UNSYNCED ? allowed : "now";
    // Not inside a transaction, where the engine refuses it.
    if (durable !== this.#durable) this.read.run(SYNCHRONOUS[durable]);
    this.#durable = durable;
    this.#step("begin", "BEGIN IMMEDIATE");
    try {
      const result = work(this.read);
      const startedMs = performance.now();
      this.#step("commit", "COMMIT");
      this.lastCommitMs = performance.now() - startedMs;
      this.#unsynced = durable === "now" ? 0 : this.#unsynced + 1;
      // Only now: the file may have been taken away in the meantime, and then nobody would find this there.
      this.mustBeInPlace();
      this.#place?.checkLog(true);
      this.#noteCheckpoint();
      return result;
    } catch (error) {
      // What it wrote to the log is written over by the next one.
      if (error instanceof EngineFailure) this.#place?.forgetLog();
      throw error;
    } finally {
      // Nothing is open any more after a commit, and after some failures of the engine.
      if (this.#database.inTransaction) this.#step("begin", "ROLLBACK");
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

  /**
   * Moves the log into the file and cuts it, so that a copy of the one file is whole; what was in the log does not come
   * back with a cut of the power.
   */
  checkpoint(): void {
    this.read.run("PRAGMA wal_checkpoint(TRUNCATE)");
    try {
      this.#place?.syncLog();
    } catch (error) {
      throw new EngineFailure(
        "fatal",
        `the file system failed while the log was emptied (${String(error)})`,
        {
          cause: error,
        },
      );
    }
    this.#place?.forgetLog();
    this.#isSettled = true;
  }

  /**
   * The engine moves the log into the file as a commit makes it long enough, begins it anew with the next one, and tells
   * nobody where it cannot. Nothing is lost by that, but the log grows until the disk is full. So where it went on instead,
   * the engine is asked once what is wrong.
   */
  #noteCheckpoint(): void {
    if ((this.#place?.logGrownFrom ?? 0) < LOG_PAGES) this.checkpointFailure = undefined;
    else if (this.checkpointFailure === undefined && !isLogHeld(this.read)) {
      try {
        this.read.run("PRAGMA wal_checkpoint(PASSIVE)");
      } catch (error) {
        this.checkpointFailure = messageOf(error);
      }
    }
  }

  /**
   * A log that is found may have been written by a process whose fsync failed. The system takes what that fsync was to store
   * for stored, and no later one does it: a cut of the power would then take a part of the log, and all that was
   * committed behind it, so nothing is committed behind it. It costs what moving the log costs anyway, which is done at
   * 16 MiB. Without room the file can still be read; what is committed next then waits for this.
   */
  #settle(): void {
    try {
      this.checkpoint();
    } catch (error) {
      if (!(error instanceof EngineFailure) || error.kind !== "full") throw error;
    }
  }

  close(): void {
    this.#pool.close();
    this.#place?.close();
  }

  #step(step: "begin" | "commit", text: "BEGIN IMMEDIATE" | "COMMIT" | "ROLLBACK"): void {
    try {
      const statement = this.#steps.get(text) ?? this.#database.prepare(text);
      this.#steps.set(text, statement);
      statement.run();
    } catch (error) {
      throw engineFailure(error, step) ?? error;
    }
  }

  #set(name: string, value: string, readsBack: string | number): void {
    this.read.run(`PRAGMA ${name} = ${value}`);
    const row = this.read.first<Record<string, unknown>>(`PRAGMA ${name}`);
    const found = row === undefined ? undefined : Object.values(row)[0];
    if (found !== readsBack) {
      throw new EngineFailure(
        "fatal",
        `the setting ${name} = ${value} was not taken (it is ${String(found)})`,
      );
    }
  }
}

/** Whether the log is only moved into the file when asked: by a copy that is being made, see `files/live-copy.ts`. */
export function isLogHeld(sql: Sql): boolean {
  // A connection that took another's place has the setting that every connection begins with.
  return Object.values(sql.first<object>("PRAGMA wal_autocheckpoint") ?? {})[0] === 0;
}

/** Undoes what `work` did inside an open transaction when it throws, and only that. */
export function inSavepoint<T>(sql: Sql, work: () => T): T {
  sql.run("SAVEPOINT op");
  try {
    const result = work();
    sql.run("RELEASE op");
    return result;
  } catch (error) {
    if (!(error instanceof EngineFailure)) {
      sql.run("ROLLBACK TO op");
      sql.run("RELEASE op");
    }
    throw error;
  }
}

/**
 * The system's own file layer of the engine. Its default one, made for files that the engine encrypts, takes a read that
 * the disk failed for one of zeros: a checkpoint then writes those into the data file. What evreg encrypts, it encrypts
 * itself (see `store/secret-cipher.ts`), so nothing is lost by it.
 */
const FILE_LAYER = process.platform === "win32" ? "win32" : "unix";

interface OpenedDatabase {
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
