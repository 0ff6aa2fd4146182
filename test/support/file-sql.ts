import { DatabaseSync } from "node:sqlite";

/**
 * Runs statements on a data file that nobody has open, as any program with SQLite could; answers the last one's rows. Another
 * engine than evreg's does it, as this process may load that in threads alone.
 */
export function fileSql(path: string, ...statements: readonly string[]): readonly Record<string, unknown>[] {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  try {
    database.exec("PRAGMA synchronous = OFF");
    const last = statements.at(-1) ?? "";
    for (const statement of statements.slice(0, -1)) database.exec(statement);
    return database.prepare(last).all();
  } finally {
    database.close();
  }
}
