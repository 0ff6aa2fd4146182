import type { ConnectionPool } from "@libsql/client/sqlite3";
import { EvregError } from "../../domain/error.ts";
import { engineFailure } from "./engine-failure.ts";
import { checkText } from "./text.ts";

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
const KEPT_STATEMENTS = 500;

/**
 * The statements of one connection, each prepared once: parsing takes the engine longer than most of them run.
 *
 * Every statement is run to its end, as one left in the middle would keep the log from being moved into the file.
 */
export class Statements implements Sql {
  readonly #database: Database;
  readonly #prepared = new Map<string, Statement>();
  readonly #queries = new Map<string, Query>();

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
    if (statement === undefined) {
      if (this.#prepared.size >= KEPT_STATEMENTS) this.#prepared.clear();
      this.#prepared.set(text, (statement = this.#database.prepare(text)));
    }
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
      if (this.#queries.size >= KEPT_STATEMENTS) this.#queries.clear();
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
