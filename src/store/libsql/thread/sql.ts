import type { ConnectionPool } from "@libsql/client/sqlite3";
import { LRUCache } from "lru-cache";
import { EvregError, invalidField } from "../../../domain/error.ts";
import type { Steps } from "../../../runtime/yielding.ts";

/** What the driver throws, with the engine's extended code and its number, whose low byte is the code itself. */
interface DriverError extends Error {
  readonly code: string;
  readonly rawCode: number;
}

/** The names of the codes that something is made of here. */
const CODES: Readonly<Record<number, string>> = {
  1: "SQLITE_ERROR",
  5: "SQLITE_BUSY",
  6: "SQLITE_LOCKED",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  13: "SQLITE_FULL",
  18: "SQLITE_TOOBIG",
  19: "SQLITE_CONSTRAINT",
  20: "SQLITE_MISMATCH",
  25: "SQLITE_RANGE",
  26: "SQLITE_NOTADB",
};

/**
 * What a failure means for the connection it was seen on.
 * - `full`: nothing was committed; writing can go on once there is room.
 * - `in_use`: another connection holds the file.
 * - `replace`: nothing was committed, but this connection is not to be trusted with another write.
 * - `fatal`: what is in the file is not known (a commit whose end is unknown, a damaged file); only a new start can tell.
 */
export type FailureKind = "full" | "in_use" | "replace" | "fatal";

/** The engine itself failed, not the request. The transaction it came up in is over. */
export class EngineFailure extends Error {
  override readonly name = "EngineFailure";
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Failures of one statement that leave the connection as good as before: a constraint, a wrong type, a slip in SQL. */
const STATEMENT_CODES = new Set([
  "SQLITE_ERROR",
  "SQLITE_CONSTRAINT",
  "SQLITE_MISMATCH",
  "SQLITE_TOOBIG",
  "SQLITE_RANGE",
]);

/** Codes with which the engine says that it did not commit. */
const NOT_COMMITTED_CODES = new Set(["SQLITE_FULL", "SQLITE_BUSY"]);

/**
 * Tells an engine's failure from a request's.
 * @param step where it came up: a failed `commit` with an unclear answer leaves the outcome unknown
 * @returns the failure, or `undefined` when only the statement failed
 */
export function engineFailure(
  error: unknown,
  step: "statement" | "begin" | "commit",
): EngineFailure | undefined {
  if (error instanceof EngineFailure) return error;
  if (!isDriverError(error)) return undefined;
  const code = CODES[error.rawCode & 0xff] ?? error.code;
  const say = `${error.code}: ${error.message}`;
  const because = { cause: error };
  if (step === "commit" && !NOT_COMMITTED_CODES.has(code)) {
    return new EngineFailure(
      "fatal",
      `the file system failed while a commit was made durable (${say})`,
      because,
    );
  }
  if (code === "SQLITE_CORRUPT" || code === "SQLITE_NOTADB") {
    // The engine gives a read that the disk failed (EIO) the same code.
    return new EngineFailure("fatal", `the disk failed to read the data, or it is damaged (${say})`, because);
  }
  if (code === "SQLITE_FULL") return new EngineFailure("full", "the disk is full", because);
  if (code === "SQLITE_BUSY" || code === "SQLITE_LOCKED") {
    return new EngineFailure("in_use", `the data file is locked by another connection (${say})`, because);
  }
  if (step === "statement" && STATEMENT_CODES.has(code)) return undefined;
  if (code === "SQLITE_IOERR") {
    return new EngineFailure("replace", `the disk failed to read or write the data (${say})`, because);
  }
  return new EngineFailure("replace", `the database engine failed (${say})`, because);
}

function isDriverError(error: unknown): error is DriverError {
  return error instanceof Error && "rawCode" in error && typeof error.rawCode === "number";
}

/**
 * The engine reads text with a NUL back cut short and changes lone surrogates, both without a word. Text with either is
 * refused before it gets there. Bytes that must survive whatever they are go in as BLOBs.
 */
export function checkText(field: string, text: string): string {
  if (text.includes("\0")) throw invalidField(field, "must not hold the character U+0000");
  if (!text.isWellFormed()) throw invalidField(field, "must not hold half a surrogate pair");
  return text;
}

/** A rowid the engine can be asked for; anything else names no record. */
export function isRowid(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

export type SqlValue = string | number | bigint | boolean | null | Uint8Array;

/**
 * Runs statements, inside a transaction or between two. What fails in the engine itself is thrown as `EngineFailure`,
 * text it would not keep as `invalid`, and what is wrong with one statement as the driver says it.
 */
export interface Sql {
  /** The rows of a query as objects by column name. Its columns hold no BLOBs. */
  rows<T>(text: string, ...values: SqlValue[]): readonly T[];
  /** The first row of anything that answers rows; BLOBs come as ArrayBuffers. */
  first<T>(text: string, ...values: SqlValue[]): T | undefined;
  /** The value of a query that answers one row of one column. */
  value<T>(text: string, ...values: SqlValue[]): T;
  /** Does the statement and drops the rows it may answer. Answers how many rows it changed. */
  run(text: string, ...values: SqlValue[]): number;
}

/** One connection of the driver under the client. */
export type Database = ReturnType<ConnectionPool["acquireSync"]>;
export type Statement = ReturnType<Database["prepare"]>;

interface Query {
  readonly columns: readonly string[];
  /** The same query, answering one JSON text. */
  readonly gathered: Statement;
}

/**
 * More than any page of records comes to. A row that something else made so large would end the process: past 512 MiB the
 * driver panics.
 */
const MOST_GATHERED_BYTES = 64 * 1024 * 1024;

/** The times that can be written as ISO 8601 with four digits for the year. */
export const FIRST_MS = Date.parse("0000-01-01T00:00:00.000Z");
export const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

// One flipped bit gives a value another type, as each row says for itself what its values are. A BLOB makes JSON of all
// rows of a statement impossible, and no number can be counted on. For the engine any text or BLOB is more than any
// number, so a range tells them apart at the cost of two comparisons.

/** A column of whole numbers from 0 on, as SQL: 0 where damage left something else. */
export function wholeOf(column: string): string {
  return `iif(${column} BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER - 1}, ${column}, 0)`;
}

/** Likewise a column of times. */
export function timeOf(column: string): string {
  return `iif(${column} BETWEEN ${FIRST_MS} AND ${LAST_MS}, ${column}, 0)`;
}

/** Likewise one of texts, which have the same bytes as a BLOB. */
export function textOf(column: string): string {
  return `CAST(${column} AS TEXT)`;
}

/** Where there may be none. */
export function optionally(column: string, kept: string): string {
  return `iif(${column} IS NULL, NULL, ${kept})`;
}

/** What can stand inside another query; PRAGMA and EXPLAIN cannot. */
const QUERY = /^\s*(?:SELECT|WITH)\b/;

/** Texts vary in a few places only (how many actions are walked side by side), so they come to some hundreds at most. */
const MAX_STATEMENTS = 500;

/**
 * The statements of one connection, each prepared once: parsing takes the engine longer than most of them run.
 *
 * Every statement is run to its end, as one left in the middle would keep the log from being moved into the file.
 */
export class Statements implements Sql {
  readonly #database: Database;
  readonly #prepared = new LRUCache<string, Statement>({ max: MAX_STATEMENTS });
  readonly #queries = new LRUCache<string, Query>({ max: MAX_STATEMENTS });

  constructor(database: Database) {
    this.#database = database;
    // What a file's own triggers, views and checks may call is then only what can do no harm.
    database.prepare("PRAGMA trusted_schema = OFF").run();
  }

  /**
   * Gathered into one JSON text by the engine: each value that crosses from the driver by itself costs 0.6 µs, which for
   * a page of 500 rows or 256 claims comes to milliseconds.
   */
  rows<T>(text: string, ...values: SqlValue[]): readonly T[] {
    const bound = bindable(values);
    if (!QUERY.test(text)) return attempted(() => this.#statement(text).all(bound)) as T[];
    const { columns, gathered } = attempted(() => this.#query(text));
    const [row] = attempted(() => gathered.all(bound)) as { gathered: ArrayBuffer | null }[];
    if (row?.gathered === null) throw tooLarge();
    const rows = row === undefined ? [] : jsonOf<unknown[][]>(row.gathered);
    return rows.map((cells) => {
      const record: Record<string, unknown> = {};
      for (let index = 0; index < columns.length; index += 1) record[columns[index]!] = cells[index];
      return record as T;
    });
  }

  first<T>(text: string, ...values: SqlValue[]): T | undefined {
    const bound = bindable(values);
    return attempted(() => this.#statement(text).all(bound))[0] as T | undefined;
  }

  value<T>(text: string, ...values: SqlValue[]): T {
    return Object.values(this.first<object>(text, ...values) ?? {})[0] as T;
  }

  run(text: string, ...values: SqlValue[]): number {
    const bound = bindable(values);
    return attempted(() => {
      const statement = this.#statement(text);
      if (!statement.reader) return statement.run(bound).changes;
      statement.all(bound);
      return 0;
    });
  }

  #statement(text: string): Statement {
    let statement = this.#prepared.get(text);
    if (statement === undefined) this.#prepared.set(text, (statement = this.#database.prepare(text)));
    return statement;
  }

  #query(text: string): Query {
    let query = this.#queries.get(text);
    if (query === undefined) {
      const columns = this.#database
        .prepare(text)
        .columns()
        .map(({ name }) => name);
      // No column that is asked for is a BLOB unless it is damaged.
      const cells = columns.map((name) => `iif(typeof("${name}") = 'blob', NULL, "${name}")`).join(", ");
      // In the query's order, which the engine keeps for an aggregate like this.
      const gathered = this.#database.prepare(
        `SELECT iif(octet_length(gathered) <= ${MOST_GATHERED_BYTES}, CAST(gathered AS BLOB), NULL) AS gathered
          FROM (SELECT json_group_array(json_array(${cells})) AS gathered FROM (${text}))`,
      );
      this.#queries.set(text, (query = { columns, gathered }));
    }
    return query;
  }
}

/**
 * What a statement gathered as JSON, which crosses as a BLOB: text that is not UTF-8, as a flipped bit makes it, would
 * end the process inside the driver.
 */
export function jsonOf<T>(gathered: ArrayBuffer): T {
  return JSON.parse(Buffer.from(gathered).toString()) as T;
}

function tooLarge(): EvregError {
  return new EvregError(
    "internal",
    "A record in the data file is larger than evreg could have made it. `evreg doctor --deep` tells which; restore a backup from before.",
  );
}

function attempted<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw engineFailure(error, "statement") ?? error;
  }
}

/** The driver binds every JavaScript number as a REAL; whole ones are meant as integers. */
function bindable(values: readonly SqlValue[]): (string | number | bigint | null | Uint8Array)[] {
  return values.map((value) => {
    if (typeof value === "string") return checkText("text", value);
    if (typeof value === "boolean") return value ? 1n : 0n;
    if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
    return value;
  });
}

// A read that may take long is done in `Steps` of a millisecond or so: between two of them the store's thread writes what
// waits to be written. What a step read is what was committed then; nothing stays open between two steps.

/**
 * Goes several ways to the same answer by turns, a step each, and takes the first: where it cannot be known which one is
 * short, this costs at most as often the shortest as there are ways. A way that answers `undefined` gave up; not all may.
 */
export function* race<T>(ways: readonly Steps<T | undefined>[]): Steps<T> {
  let open = [...ways];
  while (open.length > 0) {
    const onward: Steps<T | undefined>[] = [];
    for (const way of open) {
      const step = way.next();
      if (step.done !== true) onward.push(way);
      else if (step.value !== undefined) return step.value;
      yield;
    }
    open = onward;
  }
  throw new Error("no way of a read led to an answer");
}
