import type { Sql } from "./sql.ts";

// Which data a file holds, wherever it lies and whatever address a server has it at: 128 random bits, made with the file.
// Whoever keeps notes about data outside of it, such as a checkpoint, knows by it whether they are about this data. What
// is restored is other data: it lacks what was published since its backup was made.

export function dataIdentity(sql: Sql): string {
  const row = sql.first<{ id: string }>("SELECT id FROM data_identity");
  if (row === undefined) throw new Error("the data file has no identity");
  return row.id;
}

/** A file of a form that has none yet gets its own with the next start. */
export function renewDataIdentity(sql: Sql): void {
  const table = sql.first("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'data_identity'");
  if (table === undefined) return;
  sql.run("INSERT OR REPLACE INTO data_identity (one, id) VALUES (1, lower(hex(randomblob(16))))");
}
