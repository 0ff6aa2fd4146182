import { EvregError } from "../../../domain/error.ts";
import { TABLES } from "../../sql/tables.ts";
import type { SyncSql } from "../statements.ts";

/** Tells an evreg file from any other SQLite file ("EvRg"). */
export const APPLICATION_ID = 0x45765267;

/** The form of the data file that this evreg reads and writes: the file's `user_version`. */
export const FORM = 24;

/** Makes the tables and indexes in a database that has none: the one of the connection, or one that is attached to it. */
export function createTables(sql: SyncSql, database: "main" | "made" = "main"): void {
  for (const statement of TABLES) {
    sql.run(statement.replace(/^CREATE (TABLE|UNIQUE INDEX|INDEX) /, `CREATE $1 ${database}.`));
  }
}

/** Marks a database as evreg's, of today's form. To be called once all that belongs to it is there. */
export function markForm(sql: SyncSql, database: "main" | "made" = "main"): void {
  sql.run(`PRAGMA ${database}.application_id = ${APPLICATION_ID}`);
  sql.run(`PRAGMA ${database}.user_version = ${FORM}`);
}

/** What form a file has by its two marks: 0 before its first tables are made, below 0 where it is not evreg's. */
export function formOf(applicationId: number, version: number): number {
  if (applicationId === 0 && version === 0) return 0;
  return applicationId === APPLICATION_ID && version > 0 ? version : -1;
}

export function readForm(sql: SyncSql): number {
  return formOf(sql.value("PRAGMA application_id"), sql.value("PRAGMA user_version"));
}

const MADE: ReadonlyMap<string, string> = new Map(
  TABLES.map((sql) => {
    const [, type = "", objectName = ""] = /^CREATE (?:UNIQUE )?(TABLE|INDEX) (\w+)/.exec(sql) ?? [];
    return [`${type.toLowerCase()} ${objectName}`, normalized(sql)];
  }),
);

/**
 * Refuses a file with other tables and indexes than evreg makes: without their CHECKs nothing says what its rows are. A trigger
 * runs with each write, so one in a crafted backup could create tokens. Of an older form's file only rows are read, so it
 * must be without triggers and views.
 * @param file what messages call it
 * @throws EvregError `invalid`
 */
export function mustBeAsMade(sql: SyncSql, file: string, form: number): void {
  const rows = sql.rows<{ title: string; sql: string }>(
    `SELECT type || ' ' || name AS title, sql FROM sqlite_schema
      WHERE type IN ('trigger', 'view') OR (sql IS NOT NULL AND name NOT GLOB 'sqlite_*')`,
  );
  const existing = new Map(rows.map((row) => [row.title, normalized(row.sql)]));
  const titles = [...new Set([...existing.keys(), ...MADE.keys()])];
  const objects =
    form === FORM
      ? titles.filter((title) => existing.get(title) !== MADE.get(title))
      : titles.filter((title) => /^(?:trigger|view) /.test(title));
  if (objects.length === 0) return;
  const message = `${file} is not as evreg makes it. What differs: ${objects.join(", ")}. A trigger or a view can change what evreg stores, so the file is left alone. Restore a backup that you trust. If you made the change yourself, undo it with sqlite3 first.`;
  throw new EvregError("invalid", message, { file, objects });
}

function normalized(sql: string): string {
  return sql.replaceAll(/\s+/g, " ").trim();
}
