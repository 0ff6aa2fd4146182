import { existsSync, fsyncSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { ConnectionPool } from "@libsql/client/sqlite3";
import { sizeOf, withFile } from "../../runtime/files.ts";
import { type FileId, FileGuard, fileIdAt, mustBeAt } from "./files/file-guard.ts";
import { type Durable, type Work, workOn } from "../sql/operation.ts";
import { Vault } from "../secret-cipher.ts";
import { EngineFailure } from "../sql/sql.ts";
import { type Database, engineFailure, Statements, type SyncSql, type SyncWork } from "./statements.ts";
import { type LogCheck, MAX_UNSYNCED, mustBeUndamaged } from "./files/wal-check.ts";

/** A cache of 64 MiB, in which an index fits that is compared with its table, or all indexes that are written to at once. */
export const LARGE_CACHE = "cache_size = -65536";

/** Pages in the log at which the engine moves it into the file: 16 MiB. */
const LOG_PAGES = 4_000;
/** A log that was longer is cut to this when it restarts: twice the length at which the engine moves it into the file. */
const LOG_LIMIT_BYTES = 32 * 1024 * 1024;

/** So long the log waits for readers to end; a read takes some ten milliseconds at most. */
const READERS_END_MS = 1_000;

const SYNCHRONOUS: Readonly<Record<Durable, string>> = {
  now: "PRAGMA synchronous = FULL",
  later: "PRAGMA synchronous = NORMAL",
};

const PRAGMAS: readonly string[] = [
  // A wait for a lock would block the whole thread, and nobody else writes.
  "PRAGMA busy_timeout = 0",
  SYNCHRONOUS.now,
  "PRAGMA foreign_keys = ON",
  "PRAGMA temp_store = MEMORY",
  "PRAGMA cache_size = -8192",
  `PRAGMA wal_autocheckpoint = ${LOG_PAGES}`,
  // A log that a burst made longer shrinks again.
  `PRAGMA journal_size_limit = ${LOG_LIMIT_BYTES}`,
];

/**
 * A connection to the data file. It is the only one of the client's pool: the client itself prepares each statement anew, and may
 * silently replace a connection whose rollback failed by one without pragmas and without the lock.
 *
 * The file is released only when the garbage collector has taken the last statement, or when the thread ends.
 */
class Connection {
  protected readonly opened: OpenedDatabase;
  readonly #vault: Vault;

  /** @param key what the file's secrets are encrypted with, where they are */
  constructor(opened: OpenedDatabase, key: Uint8Array | undefined) {
    this.opened = opened;
    this.#vault = new Vault(key);
  }

  /** Runs statements between two transactions: reads, and what cannot be in a transaction. */
  get read(): SyncSql {
    return this.opened.sql;
  }

  answer<T>(read: (work: Work) => Promise<T>): Promise<T> {
    return read(this.task());
  }

  /** @param bytes what came with a write batch */
  task(bytes?: ArrayBuffer): SyncWork {
    return workOn(this.read, this.#vault, bytes);
  }

  shrink(): void {
    this.read.run("PRAGMA shrink_memory");
  }

  close(_failure?: EngineFailure): void {
    this.opened.pool.close();
  }
}

/** The connection that writes the data file. Beside it is only one that reads (see `ReadConnection`). */
export class WriteConnection extends Connection {
  readonly #guard: FileGuard;
  #durable: Durable = "now";
  /** Commits since the last one that was durable at once. */
  #unsynced = 0;
  /** What the log was like before it was opened. */
  readonly log: LogCheck;
  lastCommitMs = 0;

  private constructor(opened: OpenedDatabase, key: Uint8Array | undefined, log: LogCheck, guard: FileGuard) {
    super(opened, key);
    this.log = log;
    this.#guard = guard;
  }

  /**
   * Takes the file's lock, and changes nothing before `admit` has read what is there; it throws to refuse the file.
   * @param key what the file's secrets are encrypted with, where they are
   * @throws EngineFailure `in_use` at once when another process has it, or is just putting another file in its place
   */
  static open(path: string, admit: (sql: SyncSql) => void, key?: Uint8Array): WriteConnection {
    const id = fileIdAt(path);
    // The engine would create one where there is none.
    if (id === undefined) throw beingReplaced(path);
    const log = mustBeUndamaged(path);
    return opening(path, (opened) => {
      const { sql } = opened;
      // The first read takes the lock. It is that of the file that was opened, and another may have taken its place since.
      sql.value("PRAGMA user_version");
      if (fileIdAt(path) !== id) throw beingReplaced(path);
      admit(sql);
      for (const pragma of PRAGMAS) sql.run(pragma);
      if (sql.value("PRAGMA journal_mode = WAL") !== "wal") {
        throw new EngineFailure("failed", "the engine does not keep a log of the file");
      }
      const connection = new WriteConnection(opened, key, log, new FileGuard(path, id));
      // A log that is found may be from a process whose fsync failed. The system counts those pages as stored, and no later fsync
      // stores them; a power cut would take them and all that is committed behind.
      connection.checkpoint();
      return connection;
    });
  }

  /**
   * Commits into the file that is at its path. After `MAX_UNSYNCED` transactions that may be durable later, the next one is fsync'd
   * all the same.
   */
  async write<T>(
    work: (work: SyncWork) => Promise<T> | T,
    allowed: Durable = "now",
    bytes?: ArrayBuffer,
  ): Promise<T> {
    this.#mustBeInPlace();
    this.#checkLog();
    const durable = this.#unsynced < MAX_UNSYNCED ? allowed : "now";
    // The setting is changed here, as the engine refuses it inside a transaction.
    if (durable !== this.#durable) this.read.run(SYNCHRONOUS[durable]);
    this.#durable = durable;
    this.read.run("BEGIN IMMEDIATE");
    try {
      const result = await work(this.task(bytes));
      const startedMs = performance.now();
      this.read.run("COMMIT");
      this.lastCommitMs = performance.now() - startedMs;
      this.#unsynced = durable === "now" ? 0 : this.#unsynced + 1;
      // The file is looked at again, as it may have been moved meanwhile, and then nobody would find this commit in it.
      this.#mustBeInPlace();
      return result;
    } finally {
      // Nothing is open any more after a commit, and after some failures of the engine.
      if (this.opened.database.inTransaction) this.read.run("ROLLBACK");
    }
  }

  /** Moves the log into the file first; after a failure the files stay as they are. */
  override close(failure?: EngineFailure): void {
    if (failure !== undefined) return;
    this.checkpointIfPossible();
    super.close();
  }

  /**
   * A file that was moved is made whole, and its log emptied: with another file at its path, the next start would move this log
   * into that one.
   */
  #mustBeInPlace(): void {
    this.#guard.check(() => this.checkpointIfPossible());
  }

  get file(): FileId {
    return this.#guard.id;
  }

  /**
   * Moves the log into the file and empties it, so that the one file is whole; what was in the log does not come back with
   * a power cut.
   */
  checkpoint(): void {
    // Whoever reads just now is done in a moment, and further reads do not need the log any more.
    this.read.run(`PRAGMA busy_timeout = ${READERS_END_MS}`);
    const checkpoint = this.read.first<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)");
    this.read.run("PRAGMA busy_timeout = 0");
    if (checkpoint?.busy !== 0)
      throw new EngineFailure("in_use", "the log could not be emptied while it is read");
    const { logPath } = this.#guard;
    try {
      if (existsSync(logPath)) withFile(logPath, "r+", fsyncSync);
    } catch (error) {
      const message = `the file system failed while the log was emptied (${String(error)})`;
      throw new EngineFailure("failed", message, { cause: error });
    }
  }

  /**
   * Does a checkpoint, if that is possible. Otherwise nothing is lost: the log stays beside the file and is read again at the
   * next start.
   */
  checkpointIfPossible(): void {
    try {
      this.checkpoint();
    } catch {
      // The log stays beside the file.
    }
  }

  /**
   * The engine moves the log into the file when a commit makes it long enough, and restarts it with the next commit. It
   * reports nothing when it cannot, and the log grows. So where it has grown, the engine is made to say what is wrong.
   * @throws EngineFailure
   */
  #checkLog(): void {
    const isLong = sizeOf(this.#guard.logPath) > LOG_LIMIT_BYTES;
    if (isLong) this.read.run("PRAGMA wal_checkpoint(PASSIVE)");
  }
}

/**
 * The settings of the connection that only reads, beside the one that writes. Without a wait it would fail where the other one
 * restarts the log at the same moment.
 */
const READ_PRAGMAS = ["query_only = ON", "busy_timeout = 1000", "temp_store = MEMORY", "cache_size = -4096"];

export interface ReaderSetup {
  readonly path: string;
  /** The file that the thread which writes has open. */
  readonly file: FileId;
  /** What the file's secrets are encrypted with, where they are. */
  readonly key?: Uint8Array | undefined;
}

/** The connection that reads. The file must be open for writing already: that is where it is checked and brought up to date. */
export class ReadConnection extends Connection {
  /** @throws EngineFailure `failed` when the file that the other connection has open is not the one at the path */
  static open({ path, file, key }: ReaderSetup): ReadConnection {
    mustBeAt(path, file);
    return opening(path, (opened) => {
      for (const pragma of READ_PRAGMAS) opened.sql.run(`PRAGMA ${pragma}`);
      mustBeAt(path, file);
      return new ReadConnection(opened, key);
    });
  }

  /** Reads in one transaction, so that all of it sees the same commits. As long as it takes, the log cannot restart. */
  override async answer<T>(read: (work: Work) => Promise<T>): Promise<T> {
    this.read.run("BEGIN");
    try {
      const result = await read(this.task());
      this.read.run("COMMIT");
      return result;
    } catch (error) {
      // After an engine's failure nothing may be open any more, and this connection is ended anyway.
      if (!(error instanceof EngineFailure)) this.read.run("ROLLBACK");
      throw error;
    }
  }
}

function beingReplaced(path: string): EngineFailure {
  return new EngineFailure("in_use", `another process is replacing ${path}`);
}

interface OpenedDatabase {
  readonly pool: ConnectionPool;
  readonly database: Database;
  readonly sql: SyncSql;
}

/**
 * Opens a file with the engine, through the file layer that `addressOf` names, for what `begin` makes of it. Where that throws,
 * the file is closed.
 * @throws EngineFailure; as `begin`
 */
function opening<T>(path: string, begin: (opened: OpenedDatabase) => T): T {
  const opened = acquire(path);
  try {
    return begin(opened);
  } catch (error) {
    opened.pool.close();
    throw error;
  }
}

function acquire(path: string): OpenedDatabase {
  try {
    const pool = new ConnectionPool(addressOf(path), {}, 1);
    const database = pool.acquireSync();
    return { pool, database, sql: new Statements(database) };
  } catch (error) {
    throw engineFailure(error, "begin") ?? error;
  }
}

/**
 * Names the system's own file layer, which keeps other processes out while this one has the file open, and lets the connections
 * of this process share the log's index in memory. The engine's default layer, made for files that the engine encrypts, takes a
 * failed read for zeros, and a checkpoint then writes those into the data file. evreg encrypts secrets itself
 * (`store/secret-cipher.ts`). Windows has no layer like it: there the owner file alone keeps a second server out.
 */
const FILE_LAYER = process.platform === "win32" ? "win32" : "unix-excl";

/**
 * Opens a file alone for `work`, then closes it.
 * @throws EvregError `unavailable` for a damaged log; as `work`
 */
export async function withDatabase<T>(path: string, work: (sql: SyncSql) => Promise<T> | T): Promise<T> {
  mustBeUndamaged(path);
  const { pool, sql } = acquire(path);
  try {
    sql.run("PRAGMA locking_mode = EXCLUSIVE");
    return await work(sql);
  } finally {
    pool.close();
  }
}

/** The address of a file for the engine, whatever characters are in its path. */
export function addressOf(path: string): string {
  const address = pathToFileURL(path);
  address.searchParams.set("vfs", FILE_LAYER);
  return address.href;
}
