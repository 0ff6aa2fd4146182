import { LRUCache } from "lru-cache";
import type { ConnectionPool } from "@libsql/client/sqlite3";
import type { Work } from "../sql/operation.ts";
import { checkText, EngineFailure, type FailureKind, isList, type Sql, type SqlValue } from "../sql/sql.ts";

/** What the driver throws, with the engine's extended result code. */
interface DriverError extends Error {
  readonly code: string;
  readonly rawCode: number;
}

/** Result codes of the engine: the low byte of its extended ones. */
const [ERROR, BUSY, LOCKED, IOERR, CORRUPT, FULL] = [1, 5, 6, 10, 11, 13];
const [TOOBIG, CONSTRAINT, MISMATCH, RANGE, NOTADB] = [18, 19, 20, 25, 26];

/** Failures of one statement that leave the connection as good as before. */
const STATEMENT_CODES: ReadonlySet<number> = new Set([ERROR, CONSTRAINT, MISMATCH, TOOBIG, RANGE]);

/**
 * Tells an engine's failure from a request's.
 * @param step where it happened: a failed `commit` with an unclear answer leaves the outcome unknown
 * @returns the failure, or `undefined` when only the statement failed
 */
export function engineFailure(error: unknown, step: TransactionStep): EngineFailure | undefined {
  if (error instanceof EngineFailure) return error;
  if (!isDriverError(error)) return undefined;
  const code = error.rawCode & 0xff;
  const failure = (kind: FailureKind, what: string): EngineFailure =>
    new EngineFailure(kind, `${what} (${error.code}: ${error.message})`, { cause: error });
  if (step === "commit" && code !== FULL && code !== BUSY) {
    return failure("failed", "the file system failed while a commit was made durable");
  }
  switch (code) {
    case CORRUPT:
    case NOTADB:
      // The engine gives the same code to damage and to a read that the disk failed (EIO).
      return failure("damaged", "the disk failed to read the data, or it is damaged");
    case FULL:
      return new EngineFailure("full", "the disk is full", { cause: error });
    case BUSY:
    case LOCKED:
      return failure("in_use", "the data file is locked by another connection");
    case IOERR:
      return failure("failed", "the disk failed to read or write the data");
    default: {
      const isStatement = step === "statement" && STATEMENT_CODES.has(code);
      return isStatement ? undefined : failure("failed", "the database engine failed");
    }
  }
}

function isDriverError(error: unknown): error is DriverError {
  return error instanceof Error && "rawCode" in error && typeof error.rawCode === "number";
}

/** The engine of this process, which answers at once. Operations wait for it as for any other. */
export type SyncSql = Pick<Statements, keyof Sql>;
export type SyncWork = Omit<Work, keyof Sql> & SyncSql;

/** One connection of the driver under the client. */
export type Database = ReturnType<ConnectionPool["acquireSync"]>;
export type Statement = ReturnType<Database["prepare"]>;

interface PreparedQuery {
  readonly columns: readonly string[];
  /** The statement that answers the rows of the query as one JSON text. */
  readonly gathered: Statement;
}

/** Matches what can be a subquery; PRAGMA and EXPLAIN cannot. */
const QUERY = /^\s*(?:SELECT|WITH)\b/;

/**
 * So many statements are kept. Texts vary little (by how many actions are walked side by side), so there are hardly ever so
 * many.
 */
const MAX_STATEMENTS = 500;

/**
 * The statements of one connection, each prepared once: parsing takes longer than most of them run. Every statement is run
 * to its end, as an open one would prevent the log from being moved into the file.
 */
export class Statements implements Sql {
  readonly #prepared: LRUCache<string, Statement>;
  readonly #queries: LRUCache<string, PreparedQuery>;

  constructor(database: Database) {
    const prepare = (text: string): Statement => database.prepare(withLists(text));
    this.#prepared = new LRUCache({ max: MAX_STATEMENTS, memoMethod: prepare });
    this.#queries = new LRUCache({ max: MAX_STATEMENTS, memoMethod: (text) => gathering(text, prepare) });
    // A file's own triggers, views and checks can then only call harmless functions.
    database.prepare("PRAGMA trusted_schema = OFF").run();
  }

  /** The engine makes one JSON text of them: a value that the driver returns by itself costs 0.6 µs. */
  readonly rows = <T>(text: string, ...values: SqlValue[]): readonly T[] => {
    const bound = bindable(values);
    if (!QUERY.test(text)) return attempted(() => this.#prepared.memo(text).all(bound)) as T[];
    const { columns, gathered } = attempted(() => this.#queries.memo(text));
    const [row] = attempted(() => gathered.all(bound)) as [{ readonly gathered: ArrayBuffer }];
    return jsonOf<unknown[][]>(row.gathered).map((cells) => {
      const record: Record<string, unknown> = {};
      for (let index = 0; index < columns.length; index += 1) record[columns[index]!] = cells[index];
      return record as T;
    });
  };

  readonly column = <T>(text: string, ...values: SqlValue[]): readonly T[] =>
    this.rows<object>(text, ...values).map((row) => Object.values(row)[0] as T);

  readonly first = <T>(text: string, ...values: SqlValue[]): T | undefined => {
    const bound = bindable(values);
    return attempted(() => this.#prepared.memo(text).all(bound))[0] as T | undefined;
  };

  readonly value = <T>(text: string, ...values: SqlValue[]): T =>
    Object.values(this.first<object>(text, ...values) ?? {})[0] as T;

  /** The engine joins them as text, which is any bytes with a length. */
  readonly joined = (text: string, ...values: SqlValue[]): Uint8Array<ArrayBuffer> => {
    const bytes = this.value<ArrayBuffer | null>(
      `SELECT CAST(group_concat(CAST(bytes AS TEXT), '') AS BLOB) FROM (${text})`,
      ...values,
    );
    return bytes === null ? new Uint8Array() : new Uint8Array(bytes);
  };

  readonly run = (text: string, ...values: SqlValue[]): number => {
    const bound = bindable(values);
    return attempted(() => {
      const statement = this.#prepared.memo(text);
      if (!statement.reader) return statement.run(bound).changes;
      statement.all(bound);
      return 0;
    }, STEPS[text]);
  };

  /** Nobody overwrites the unused parts of a page that becomes another table's. */
  readonly erase = (text: string, ...values: SqlValue[]): number => {
    this.run("PRAGMA secure_delete = ON");
    try {
      return this.run(text, ...values);
    } finally {
      this.run("PRAGMA secure_delete = OFF");
    }
  };
}

function gathering(query: string, prepare: (text: string) => Statement): PreparedQuery {
  const columns = prepare(query)
    .columns()
    .map(({ name }) => name);
  // A column is a BLOB only when it is damaged.
  const cells = columns.map((name) => `iif(typeof("${name}") = 'blob', NULL, "${name}")`).join(", ");
  // The rows are gathered in the query's order, which the engine keeps for an aggregate like this.
  const gathered = prepare(
    `SELECT CAST(json_group_array(json_array(${cells})) AS BLOB) AS gathered FROM (${query})`,
  );
  return { columns, gathered };
}

/**
 * Statements take lists, as JSON texts, and name what is in them: `list(?1: id bigint)` is the table of a list of values, and one
 * with more columns that of a list of rows. A column of the type `hex` is given in hex, and has the bytes.
 */
const LIST = /\blist\((\?\d*):([^)]*)\)/g;

function withLists(text: string): string {
  return text.replaceAll(LIST, (_list, parameter: string, columns: string) => {
    const all = columns.split(",").map((column) => column.trim().split(" "));
    const cells = all.map(([name, type], index) => {
      const cell = all.length === 1 ? "value" : `value ->> ${index}`;
      return `${type === "hex" ? `unhex(${cell})` : cell} AS ${name}`;
    });
    return `(SELECT ${cells.join(", ")} FROM json_each(${parameter}))`;
  });
}

/**
 * Parses JSON that a statement has made. It comes as a BLOB: text that is not UTF-8, as a flipped bit makes it, crashes the
 * driver.
 */
function jsonOf<T>(gathered: ArrayBuffer): T {
  return JSON.parse(Buffer.from(gathered).toString()) as T;
}

type TransactionStep = "statement" | "begin" | "commit";

/** What a failure of these statements says of their transaction. */
const STEPS: Readonly<Record<string, TransactionStep>> = {
  "BEGIN IMMEDIATE": "begin",
  COMMIT: "commit",
  ROLLBACK: "begin",
};

function attempted<T>(act: () => T, step: TransactionStep = "statement"): T {
  try {
    return act();
  } catch (error) {
    throw engineFailure(error, step) ?? error;
  }
}

type Bindable = string | number | bigint | null | Uint8Array;

/** Makes integers of whole numbers, as the driver binds every JavaScript number as a REAL. */
function bindable(values: readonly SqlValue[]): Bindable[] {
  return values.map((value): Bindable => {
    if (typeof value === "string") return checkText("text", value);
    if (value === undefined) return null;
    if (isList(value)) return JSON.stringify(value);
    if (typeof value === "boolean") return value ? 1n : 0n;
    if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
    return value;
  });
}
