import { TABLES } from "../sql/tables.ts";

// What a move goes through: the tables of `store/sql/tables.ts`, which both engines have with the same columns. All statements here
// are for both.

/** A column, with the type that it has in a list of rows; a BLOB is given in hex. */
interface MovedColumn {
  readonly name: string;
  readonly type: "bigint" | "text" | "hex";
}

export interface MovedTable {
  readonly name: string;
  readonly columns: readonly MovedColumn[];
  /** The columns of its primary key, which are all integers. */
  readonly key: readonly string[];
  /** What it gives its rows: no numbers, those after its largest one, or those after the largest that it ever gave. */
  readonly numbers: "none" | "after largest" | "after last";
}

/** Some of a table's rows: those with a key beyond `after`, up to `to`, or all of them. */
export interface KeyRange {
  readonly after: readonly number[];
  readonly to: readonly number[] | undefined;
}

/** It only has what shows whether the disk takes writes. */
const NOT_MOVED = "write_check";

const TYPES: Readonly<Record<string, MovedColumn["type"]>> = { INTEGER: "bigint", TEXT: "text", BLOB: "hex" };

export const MOVED_TABLES: readonly MovedTable[] = TABLES.flatMap((statement) => {
  const [, name] = /^CREATE TABLE (\w+)/.exec(statement) ?? [];
  return name === undefined || name === NOT_MOVED ? [] : [movedTable(name, statement)];
});

function movedTable(name: string, statement: string): MovedTable {
  const lines = [...statement.matchAll(/^ {2}([a-z_]+) (INTEGER|TEXT|BLOB)\b(.*)$/gm)];
  const columns = lines.map(([, column = "", type = ""]) => ({ name: column, type: TYPES[type]! }));
  const [, several] = /^ {2}PRIMARY KEY \(([^)]*)\)/m.exec(statement) ?? [];
  const single = lines.find(([, , , rest = ""]) => rest.includes("PRIMARY KEY"))?.[1];
  const key = several?.split(", ") ?? [single ?? "rowid"];
  // The engine numbers the rows of a table without a key by itself.
  if (several === undefined && single === undefined) columns.unshift({ name: "rowid", type: "bigint" });
  const isNumbered = key.join() === "rowid";
  const numbers = !isNumbered ? "none" : statement.includes("AUTOINCREMENT") ? "after last" : "after largest";
  return { name, columns, key, numbers };
}

/** Where a table begins: before each key that a row can have. */
export function startOf({ key }: MovedTable): readonly number[] {
  return key.map(() => -1);
}

/** Answers the key of a row beyond a key, of which so many are passed over. */
export function keyBeyond({ name, key }: MovedTable): string {
  const keys = key.join(", ");
  return `SELECT ${keys} FROM ${name} WHERE ${beyond(key)} ORDER BY ${keys} LIMIT 1 OFFSET ?`;
}

/** Answers how many rows a range has, and about how many bytes. */
export function sizeOf(table: MovedTable, range: KeyRange): string {
  const long = table.columns.filter(({ type }) => type !== "bigint");
  const bytes = ["0", ...long.map(({ name }) => `coalesce(octet_length(${name}), 0)`)].join(" + ");
  return `SELECT count(*) AS rows, coalesce(sum(${bytes}), 0) AS bytes FROM ${table.name} WHERE ${inRange(table, range)}`;
}

/** Answers the condition that a row is in the range, whose parameters are those of `keysOf`. */
function inRange({ key }: MovedTable, { to }: KeyRange): string {
  return to === undefined ? beyond(key) : `${beyond(key)} AND ${compared(key, "<=")}`;
}

export function keysOf({ after, to = [] }: KeyRange): readonly number[] {
  return [...after, ...to];
}

function beyond(key: readonly string[]): string {
  return compared(key, ">");
}

function compared(key: readonly string[], operator: string): string {
  if (key.length === 1) return `${key[0]} ${operator} ?`;
  return `(${key.join(", ")}) ${operator} (${key.map(() => "?").join(", ")})`;
}

/**
 * The rows of a range, each as a text `line` that no other row has: numbers as they are, texts, and BLOBs in hex, behind how
 * many bytes they have. With their keys, so that they can be put in order.
 */
export function linesIn(table: MovedTable, range: KeyRange): string {
  const cells = table.columns.map(({ name, type }) => {
    if (type === "bigint") return `coalesce(CAST(${name} AS TEXT), '-')`;
    return `coalesce(octet_length(${name}) || ':' || ${type === "hex" ? `lower(hex(${name}))` : name}, '-')`;
  });
  return `SELECT ${table.key.join(", ")}, ${cells.join(" || ',' || ")} || ';' AS line
    FROM ${table.name} WHERE ${inRange(table, range)}`;
}

export function rowsIn(table: MovedTable, range: KeyRange): string {
  // The embedded engine would make an empty text of NULL.
  const cells = table.columns.map(({ name, type }) =>
    type === "hex" ? `iif(${name} IS NULL, NULL, lower(hex(${name}))) AS ${name}` : name,
  );
  return `SELECT ${cells.join(", ")} FROM ${table.name} WHERE ${inRange(table, range)} ORDER BY ${table.key.join(", ")}`;
}

/** Stores the rows of a list, in the place of those that are there with the same keys. */
export function storeRows({ name, columns, key }: MovedTable): string {
  const names = columns.map((column) => column.name);
  const list = columns.map((column) => `${column.name} ${column.type}`).join(", ");
  const changes = names.filter((column) => !key.includes(column));
  return `INSERT INTO ${name} (${names.join(", ")}) SELECT ${names.join(", ")} FROM list(?: ${list}) AS moved WHERE true
    ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${changes.map((column) => `${column} = excluded.${column}`).join(", ")}`;
}

/** Removes the rows whose keys are in a list. Rows that refer to them are gone as well, and are removed with their own table. */
export function removeRows({ name, key }: MovedTable): string {
  const keys = key.join(", ");
  const list = key.map((column) => `${column} bigint`).join(", ");
  const own = key.length === 1 ? keys : `(${keys})`;
  return `DELETE FROM ${name} WHERE ${own} IN (SELECT ${keys} FROM list(?1: ${list}) AS listed)`;
}
