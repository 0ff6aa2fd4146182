import { isList, type SqlValue } from "../sql/sql.ts";

// The statements of `store/sql` are written in the words of the embedded engine. Few of these are not PostgreSQL's as well, and are
// put into its own here; functions that it lacks are in `tables.ts`. Statements name each query that is a table, which it wants
// before its version 16.

/** A statement with its parameters as PostgreSQL takes them. */
export interface PostgresStatement {
  readonly text: string;
  /** Which of the values each parameter is, from 0. */
  readonly places: readonly number[];
}

/**
 * Translates a statement for values of these types. A parameter has the type of its value, as PostgreSQL would guess from where
 * it stands, and often cannot; NULL has none and is written out.
 */
export function translated(statement: string, types: readonly ParameterType[]): PostgresStatement {
  const places: number[] = [];
  const parameter = (place: number): string => {
    const type = types[place];
    if (type === undefined) throw new Error(`a value is missing: ${statement}`);
    if (type === "null") return "NULL";
    const known = places.indexOf(place);
    return `$${known === -1 ? places.push(place) : known + 1}::${type}`;
  };
  let largest = 0;
  const numbered = withWords(statement).replaceAll(/\?(\d*)/g, (_all, digits: string) => {
    // One without a number follows the largest so far.
    const number = digits === "" ? largest + 1 : Number(digits);
    largest = Math.max(largest, number);
    return parameter(number - 1);
  });
  return { text: numbered, places };
}

export type ParameterType = "null" | "bigint" | "float8" | "text" | "bytea";

export function parameterType(value: SqlValue): ParameterType {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string" || isList(value)) return "text";
  if (typeof value === "object") return "bytea";
  return typeof value === "number" && !Number.isSafeInteger(value) ? "float8" : "bigint";
}

/** The table of a list's rows in their order, which is the column `n`. */
const LIST = /\blist\((\?\d*):([^)]*)\)/g;

const CASTS: Readonly<Record<string, (cell: string) => string>> = {
  text: (cell) => cell,
  hex: (cell) => `decode(${cell}, 'hex')`,
};

function tableOfList(_all: string, parameter: string, columns: string): string {
  const all = columns.split(",").map((column) => column.trim().split(/\s+/));
  const cells = all.map(([name, type = "text"], index) => {
    const cell = all.length === 1 ? "value #>> '{}'" : `value ->> ${index}`;
    const cast = CASTS[type] ?? ((text) => `(${text})::${type}`);
    return `${cast(cell)} AS ${name}`;
  });
  return `(SELECT ${cells.join(", ")}, n FROM jsonb_array_elements(${parameter}::jsonb) WITH ORDINALITY AS all_of (value, n))`;
}

function withWords(statement: string): string {
  const ordered = inOrderOfList(statement).replaceAll(/\b(?:INDEXED BY \w+|NOT INDEXED)\b/g, "");
  return (
    withTheirArguments(ordered, "json_group_array", (inner) => `coalesce(json_agg(${inner}), '[]')`)
      .replaceAll(/\bCROSS JOIN ((?:list\([^)]*\)|\w+)(?:\s+AS \w+)?\s+ON\b)/g, "JOIN $1")
      // Where a list is only looked into, it has but one column. An array is looked up in an index; what a query answers the planner
      // may read anew for each row.
      .replaceAll(/\bIN list\((\?\d*): *\w+ (\w+)\)/g, (_all, parameter: string, type: string) => {
        const cell = type === "text" ? "value" : `value::${type}`;
        return `= ANY (ARRAY(SELECT ${cell} FROM jsonb_array_elements_text(${parameter}::jsonb) AS all_of (value)))`;
      })
      .replaceAll(LIST, tableOfList)
      .replaceAll(/\/\* (ORDER BY [^*]+) \*\//g, "$1")
      .replaceAll(/\bjson_array\(/g, "json_build_array(")
      .replaceAll(/\bjson\(\(/g, "((")
      .replaceAll("sqlite_sequence", "last_number")
      // Names that are not lower case would become so.
      .replaceAll(/\b(AS |\.)([a-z]+[A-Z]\w*)/g, '$1"$2"')
  );
}

const FROM_LIST = /^\s*SELECT\b[^]*?\bFROM list\([^)]*\) AS (\w+)/;

/** The rows of a list come in its order, unless the statement asks for another one or adds them up. */
function inOrderOfList(statement: string): string {
  const [, name] = FROM_LIST.exec(statement) ?? [];
  const isOther = /\b(?:ORDER BY|GROUP BY|DISTINCT)\b|\b(?:count|sum|min|max|json_group_array)\(/.test(
    statement,
  );
  return name === undefined || isOther ? statement : `${statement} ORDER BY ${name}.n`;
}

function endOfBracket(text: string, open: number): number {
  let depth = 0;
  let end = open;
  do {
    if (text[end] === "(") depth += 1;
    if (text[end] === ")") depth -= 1;
    end += 1;
  } while (depth > 0 && end < text.length);
  return end;
}

/** Replaces each call of a function, whatever calls are in its arguments. */
function withTheirArguments(text: string, name: string, by: (inner: string) => string): string {
  const start = text.indexOf(`${name}(`);
  if (start === -1) return text;
  const open = start + name.length;
  const end = endOfBracket(text, open);
  const inner = withTheirArguments(text.slice(open + 1, end - 1), name, by);
  return text.slice(0, start) + by(inner) + withTheirArguments(text.slice(end), name, by);
}
