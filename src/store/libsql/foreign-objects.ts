import { createHash } from "node:crypto";
import { EvregError } from "../../domain/error.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openInMemory } from "./open-database.ts";
import { type Sql, Statements } from "./sql.ts";

// Triggers, views, tables and indexes that evreg did not make. A trigger runs with each write, so one in a crafted backup
// could make tokens as it likes. A file of any form has exactly what the migrations up to that form make.

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/** What the encryption of a file leaves when it is cut off, see encrypt-file.ts; the next start takes it away. */
export const FREE_PAGES = "CREATE TABLE free_pages (filler BLOB NOT NULL) STRICT";

/**
 * Refuses a file that is not made as the migrations up to its form make it. Costs a query and a digest.
 * @param name what messages call it
 * @throws EvregError `invalid`
 */
export function mustBeAsMade(sql: Sql, name: string, form: number): void {
  const objects = foreignObjects(sql, form);
  if (objects.length === 0) return;
  throw new EvregError(
    "invalid",
    `${name} is not as evreg makes it: it has ${objects.join(", ")}. A trigger or a view can change what evreg stores, so the file is left alone. Restore a backup that you trust. If you made the change yourself, undo it with sqlite3 first.`,
    { file: name, objects },
  );
}

/** What is there and should not be, is changed or missing; each as a part of a sentence. */
function foreignObjects(sql: Sql, form: number): readonly string[] {
  const found = objectsIn(sql);
  if (digestOf(found) === MIGRATIONS[form - 1]?.schemaDigest) return [];
  const own = new Map(madeAt(form).map((object) => [titleOf(object), textOf(object)]));
  const there = new Map(found.map((object) => [titleOf(object), textOf(object)]));
  return [
    ...[...there.keys()].filter((title) => !own.has(title)),
    ...[...there]
      .filter(([title, text]) => (own.get(title) ?? text) !== text)
      .map(([title]) => `a changed ${title}`),
    ...[...own.keys()].filter((title) => !there.has(title)).map((title) => `no ${title}`),
  ];
}

/** Of what the migrations make; the same for the same objects, however their statements are laid out. */
export function schemaDigest(sql: Sql): string {
  return digestOf(objectsIn(sql));
}

function objectsIn(sql: Sql): readonly SchemaObject[] {
  const all = sql.rows<SchemaObject>(
    "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name",
  );
  return all.filter((object) => object.sql !== FREE_PAGES);
}

function madeAt(form: number): readonly SchemaObject[] {
  const pool = openInMemory();
  try {
    const sql = new Statements(pool.acquireSync());
    for (const { statements } of MIGRATIONS.slice(0, form)) for (const one of statements) sql.run(one);
    return objectsIn(sql);
  } finally {
    pool.close();
  }
}

function digestOf(objects: readonly SchemaObject[]): string {
  const text = objects.map((object) => `${titleOf(object)}: ${textOf(object)}`).join("\n");
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

function titleOf({ type, name, tbl_name: table }: SchemaObject): string {
  return name === table ? `${type} ${name}` : `${type} ${name} on ${table}`;
}

function textOf({ sql }: SchemaObject): string {
  return (sql ?? "").replaceAll(/\s+/g, " ").trim();
}
