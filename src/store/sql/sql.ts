import { EvregError, invalidField } from "../../domain/error.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { NO_SETTINGS, settingsIn, type SubscriptionSettings } from "../../domain/subscription-settings.ts";
import { parseText } from "../../json/parse.ts";
import { toIso } from "../../runtime/clock.ts";

/**
 * What a failure means for the connection it was seen on.
 * - `full`: nothing was committed; writing can go on once there is room.
 * - `in_use`: nothing was committed, as another connection holds the file.
 * - `away`: nothing was committed, as the database cannot be reached or takes no writes; writing can go on once it does.
 * - `in_doubt`: it went away at a commit, and nobody knows whether that was done.
 * - `refused`: the database lets nobody in with what it was opened with.
 * - `damaged`: the disk failed to read, or what is on it is damaged.
 * - `failed`: anything else.
 * After `damaged` and `failed` a connection must not write again: what is in the file is not known until a new start reads it.
 */
export type FailureKind = "full" | "in_use" | "away" | "in_doubt" | "refused" | "damaged" | "failed";

/** The engine itself failed, not the request. The transaction in which it happened has ended. */
export class EngineFailure extends Error {
  override readonly name = "EngineFailure";
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }

  /** Whether the connection must not write again. */
  get isFatal(): boolean {
    return this.kind === "damaged" || this.kind === "failed";
  }
}

/** Refuses what the engine would silently change: it cuts text at a NUL and replaces lone surrogates. BLOBs stay as they are. */
export function checkText(field: string, text: string): string {
  if (text.includes("\0")) throw invalidField(field, "must not hold the character U+0000");
  if (!text.isWellFormed()) throw invalidField(field, "must not hold half a surrogate pair");
  return text;
}

/** `undefined` is NULL, and an array is a list, see `list(…)` in `libsql/statements.ts`. */
export type SqlValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Uint8Array
  | readonly unknown[];

/** Whether it is the list of a statement. */
export function isList(value: SqlValue): value is readonly unknown[] {
  return Array.isArray(value);
}

/**
 * Runs statements, inside a transaction or between two.
 * @throws EngineFailure when the engine itself fails; EvregError `invalid` for text that it would change; the driver's
 * error for what is wrong with one statement
 */
export interface Sql {
  /** The rows of a query as objects by column name. Its columns hold no BLOBs. */
  readonly rows: <T>(text: string, ...values: SqlValue[]) => Promise<readonly T[]> | readonly T[];
  /** The values of a query with one column, which holds no BLOBs. */
  readonly column: <T>(text: string, ...values: SqlValue[]) => Promise<readonly T[]> | readonly T[];
  /** The first row of anything that answers rows; BLOBs come as ArrayBuffers. */
  readonly first: <T>(text: string, ...values: SqlValue[]) => Promise<T | undefined> | T | undefined;
  /** The value of a query that answers one row of one column. */
  readonly value: <T>(text: string, ...values: SqlValue[]) => Promise<T> | T;
  /** The BLOBs of a query whose one column is `bytes`, one after the other in the order of its rows. */
  readonly joined: (
    text: string,
    ...values: SqlValue[]
  ) => Promise<Uint8Array<ArrayBuffer>> | Uint8Array<ArrayBuffer>;
  /** Runs the statement and drops the rows it may answer. Returns how many rows it changed. */
  readonly run: (text: string, ...values: SqlValue[]) => Promise<number> | number;
  /** Runs a statement as `run` does. What the statement removes is overwritten at once, where the engine can do that. */
  readonly erase: (text: string, ...values: SqlValue[]) => Promise<number> | number;
}

/**
 * SQL of the order in which the embedded engine answers rows by itself, as it walks the tables from the first one on. It would sort
 * all before it answers any, were it asked for that; other engines are asked.
 */
export function walkedBy(order: string): string {
  return `/* ORDER BY ${order} */`;
}

type Row = Readonly<Record<string, SqlValue>>;

function insertion(table: string, row: Row): string {
  const names = Object.keys(row);
  return `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
}

export async function insertRow(sql: Sql, table: string, row: Row): Promise<void> {
  await sql.run(insertion(table, row), ...Object.values(row));
}

/** Inserts a row whose number the table gives; answers that. */
export async function insertNumbered(sql: Sql, table: string, row: Row): Promise<number> {
  return await sql.value(`${insertion(table, row)} RETURNING rowid AS id`, ...Object.values(row));
}

export async function updateRow(sql: Sql, table: string, rowid: number, changes: Row): Promise<void> {
  const set = Object.keys(changes).map((name) => `${name} = ?`);
  await sql.run(`UPDATE ${table} SET ${set.join(", ")} WHERE rowid = ?`, ...Object.values(changes), rowid);
}

/** The times that can be written as ISO 8601 with four digits for the year. */
export const FIRST_MS = Date.parse("0000-01-01T00:00:00.000Z");
export const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

export function isoOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : toIso(epochMs);
}

/**
 * Answers what makes records of rows, by the schemas of their members: times and flags are numbers in a row, and lists and objects
 * are JSON. Columns are named as the members; what else a row has is dropped.
 */
export function recordsOf<T>(members: Readonly<Record<string, JsonSchema>>): (row: object) => T {
  const schemas = Object.entries(members);
  return (row) => {
    const cells = row as Readonly<Record<string, unknown>>;
    const stored = schemas.filter(([name]) => Object.hasOwn(cells, name));
    return Object.fromEntries(stored.map(([name, schema]) => [name, valueOf(schema, cells[name])])) as T;
  };
}

function valueOf({ type, format }: JsonSchema, cell: unknown): unknown {
  if (cell === null) return null;
  if (format === "date-time") return toIso(cell as number);
  if (type === "boolean") return cell === 1;
  return type === "object" || type === "array" ? parseStored(cell as string) : cell;
}

/**
 * Parses JSON that evreg has written itself.
 * @throws EvregError `internal` for what it could not have written
 */
export function parseStored(text: string): unknown {
  try {
    return parseText(text);
  } catch {
    const message =
      "A record in the data file has JSON that evreg could not have written. `evreg backup` tells which; restore a backup from before.";
    throw new EvregError("internal", message);
  }
}

export function settingsToJson(settings: SubscriptionSettings): string | null {
  const named = Object.entries(settingsIn(settings)).filter(
    ([name, value]) => value !== NO_SETTINGS[name as keyof SubscriptionSettings],
  );
  return named.length === 0 ? null : JSON.stringify(Object.fromEntries(named));
}

export function settingsFromJson(text: string | null): SubscriptionSettings {
  return text === null
    ? NO_SETTINGS
    : { ...NO_SETTINGS, ...(parseStored(text) as Partial<SubscriptionSettings>) };
}
