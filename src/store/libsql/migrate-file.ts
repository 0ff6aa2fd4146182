import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { syncFolderOf } from "../../runtime/replace-file.ts";
import type { Connection } from "./connection.ts";
import { checkForm, notEvreg } from "./file-header.ts";
import { mustBeAsMade } from "./foreign-objects.ts";
import { APPLICATION_ID, MIGRATIONS, type Migration } from "./migrations.ts";
import { mustBeServable } from "./row-limits.ts";
import type { Sql } from "./sql.ts";

export interface AppliedMigrations {
  /** Versions applied, in order; none when the file was up to date. */
  readonly applied: readonly number[];
  /** The copy kept of the file as it was; absent when there was nothing in it or nothing to do. */
  readonly copy?: string;
}

/** Refuses a file that is not evreg's or is newer, having only read from it. */
export function admitFile(sql: Sql, path: string): void {
  const { applicationId, version, tables } = readForm(sql);
  if (applicationId === 0 && version === 0 && tables === 0) return;
  if (applicationId === 0) throw notEvreg(path);
  checkForm(path, applicationId, version);
  mustBeAsMade(sql, `The data file ${path}`, version);
  mustBeServable(sql, path);
}

/**
 * Brings the file to the last of `migrations`, each step in a transaction of its own; a new file, in which there is nothing
 * to keep from a later step's failure, in one for all, as each transaction waits for the disk.
 */
export function migrateFile(
  connection: Connection,
  path: string,
  migrations: readonly Migration[] = MIGRATIONS,
): AppliedMigrations {
  const { version } = readForm(connection.read);
  const pending = migrations.filter((migration) => migration.version > version);
  const [first] = pending;
  if (first === undefined) return { applied: [] };
  const copy = version === 0 ? undefined : `${path}.before-v${first.version}`;
  if (copy !== undefined) keepCopy(connection, copy);
  const together = version === 0 ? [pending] : pending.map((migration) => [migration]);
  for (const steps of together) apply(connection, steps, copy);
  // The form must be readable from the file itself, see readFileVersion.
  connection.checkpoint();
  const applied = pending.map((migration) => migration.version);
  return copy === undefined ? { applied } : { applied, copy };
}

function apply(connection: Connection, steps: readonly Migration[], copy: string | undefined): void {
  let [step] = steps;
  try {
    connection.write((sql) => {
      for (step of steps) {
        for (const statement of step.statements) sql.run(statement);
        sql.run(`PRAGMA application_id = ${APPLICATION_ID}`);
        sql.run(`PRAGMA user_version = ${step.version}`);
      }
    });
  } catch (error) {
    const kept = copy === undefined ? "" : ` A copy from before is in ${copy}.`;
    throw new EvregError(
      "unavailable",
      `The data file could not be brought to form ${step?.version} (${step?.name}): ` +
        `${error instanceof Error ? error.message : String(error)}. This step changed nothing.${kept}`,
      { version: step?.version },
      { cause: error },
    );
  }
}

/** A whole copy of the committed state, made durable before it gets its name. */
function keepCopy(connection: Connection, copy: string): void {
  const unfinished = `${copy}.unfinished`;
  rmSync(unfinished, { force: true });
  closeSync(openSync(unfinished, "wx", 0o600));
  connection.read.run("VACUUM INTO ?", unfinished);
  chmodSync(unfinished, 0o600);
  const descriptor = openSync(unfinished, "r+");
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(unfinished, copy);
  syncFolderOf(copy);
}

function readForm(sql: Sql): { applicationId: number; version: number; tables: number } {
  const id = sql.first<{ application_id: number }>("PRAGMA application_id");
  const version = sql.first<{ user_version: number }>("PRAGMA user_version");
  const tables = sql.first<{ n: number }>("SELECT count(*) AS n FROM sqlite_schema");
  return {
    applicationId: id?.application_id ?? 0,
    version: version?.user_version ?? 0,
    tables: tables?.n ?? 0,
  };
}
