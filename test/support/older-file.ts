import { APPLICATION_ID, MIGRATIONS } from "../../src/store/libsql/files/migrations.ts";
import { rawSql } from "../store/processes.ts";

/** Makes a data file as an older evreg left it: in the form of that version, then changed by `statements`. */
export function writeOlderFile(file: string, version: number, ...statements: readonly string[]): void {
  rawSql(
    file,
    ...MIGRATIONS.slice(0, version).flatMap((migration) => migration.statements),
    `PRAGMA application_id = ${APPLICATION_ID}`,
    `PRAGMA user_version = ${version}`,
    ...statements,
  );
}
