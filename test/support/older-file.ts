import { readFileSync } from "node:fs";
import { APPLICATION_ID } from "../../src/store/libsql/files/schema.ts";
import { fileSql } from "./file-sql.ts";

export const ONE_ACTION =
  "INSERT INTO action (action, application, revision, created_ms, compatibility_against) VALUES ('a', 'x', 1, 1, 'all')";
export const ONE_REVISION =
  "INSERT INTO action_revision (action_id, revision, schemata, created_ms, compatibility, breaks) VALUES (1, 1, '{}', 1, 'none', 2)";

/** Makes a data file as an older evreg left it: in the form of version 0.2.0 or 0.3.0, then changed by `statements`. */
export function writeOlderFile(file: string, form: 10 | 21, ...statements: readonly string[]): void {
  const tables = readFileSync(new URL(`form-${form}.sql`, import.meta.url), "utf8");
  fileSql(
    file,
    ...tables.split(";\n").filter((statement) => statement.trim() !== ""),
    `PRAGMA application_id = ${APPLICATION_ID}`,
    `PRAGMA user_version = ${form}`,
    ...statements,
  );
}
