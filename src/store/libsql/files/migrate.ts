import { createHash } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { EvregError, messageOf } from "../../../domain/error.ts";
import { syncFolderOf } from "../../../runtime/files.ts";
import { aboutSecret, type EncryptionKeys, Vault } from "../../secret-cipher.ts";
import { type Connection, openInMemory } from "../thread/connection.ts";
import { type Sql, Statements } from "../thread/sql.ts";
import { checkForm, notEvreg } from "./data-folder.ts";
import { APPLICATION_ID, type Migration, MIGRATIONS } from "./migrations.ts";
import { mustBeServable } from "./row-limits.ts";

interface AppliedMigrations {
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
        `${messageOf(error)}. This step changed nothing.${kept}`,
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

const ABOUT_PROOF = "proof of the key";
const PROOF = "evreg";
const ROWS_AT_ONCE = 1_000;
const PAGES_AT_ONCE = 2_000;
/** In each page of a long value, the number of its next one. */
const PAGE_LINK_BYTES = 4;

/**
 * Refuses a file whose secrets are encrypted with none of these keys, having only read from it.
 * @throws EvregError `usage`, telling which key is missing or wrong
 */
export function admitKeys(sql: Sql, path: string, keys: EncryptionKeys | undefined): void {
  const proof = findProof(sql);
  if (proof === undefined || vaultOf(proof, keys) !== undefined) return;
  throw new EvregError("usage", `The secrets in ${path} are encrypted${refusal(keys)} Nothing was changed.`);
}

/**
 * Encrypts what is plain, or is encrypted with the key before, with the key there is now: all of it in one transaction,
 * so that a crash leaves one or the other. Nothing that was there stays in the file: what is deleted is overwritten, and
 * the log is emptied.
 * @returns how many subscriptions' secrets were written anew; `undefined` when there was nothing to do
 */
export function encryptFile(connection: Connection, keys: EncryptionKeys | undefined): number | undefined {
  if (keys === undefined) return undefined;
  const next = new Vault(keys.key);
  const proof = findProof(connection.read);
  if (proof !== undefined && next.open(ABOUT_PROOF, proof) === PROOF) return undefined;
  const before = proof === undefined ? new Vault(undefined) : vaultOf(proof, keys);
  if (before === undefined) throw new Error("the file's key was not checked");
  fillFreePages(connection);
  connection.read.run("PRAGMA secure_delete = ON");
  const count = connection.write((sql) => {
    sql.run("DROP TABLE free_pages");
    sql.run("DELETE FROM encryption");
    sql.run("INSERT INTO encryption (one, proof) VALUES (1, ?)", next.seal(ABOUT_PROOF, PROOF));
    return reseal(sql, before, next);
  });
  connection.checkpoint();
  connection.read.run("PRAGMA secure_delete = OFF");
  return count;
}

/** Overwrites the free pages, where secrets of subscriptions deleted long ago may be, by putting nothing into them. */
function fillFreePages(connection: Connection): void {
  const isThere =
    connection.read.first("SELECT 1 FROM sqlite_schema WHERE name = 'free_pages'") !== undefined;
  if (!isThere) connection.write((sql) => sql.run(FREE_PAGES));
  const { page_size: pageBytes } = connection.read.first<{ page_size: number }>("PRAGMA page_size")!;
  for (let free = freePages(connection.read); free > 0; free = freePages(connection.read)) {
    const bytes = Math.min(free, PAGES_AT_ONCE) * (pageBytes - PAGE_LINK_BYTES);
    connection.write((sql) => sql.run("INSERT INTO free_pages (filler) VALUES (zeroblob(?))", bytes));
  }
}

function freePages(sql: Sql): number {
  return sql.first<{ freelist_count: number }>("PRAGMA freelist_count")!.freelist_count;
}

interface Row {
  readonly subscription_id: number;
  readonly secret: string;
  readonly previous_secret: string | null;
  readonly previous_until_ms: number | null;
  readonly bearer: string;
  readonly bearer_token: string | null;
}

/** The whole table is emptied first, which frees its pages, and freed pages are overwritten as a whole. */
function reseal(sql: Sql, before: Vault, next: Vault): number {
  const rows = sql.rows<Row>(
    `SELECT subscription_id, secret, previous_secret, previous_until_ms, bearer, bearer_token
      FROM subscription_secret ORDER BY subscription_id`,
  );
  sql.run("DELETE FROM subscription_secret");
  for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
    const resealed = rows.slice(at, at + ROWS_AT_ONCE).map((row) => {
      const { subscription_id: id, previous_until_ms: untilMs, bearer } = row;
      const again = (purpose: Parameters<typeof aboutSecret>[1], kept: string | null): string | null => {
        if (kept === null) return null;
        const about = aboutSecret(id, purpose);
        const text = before.open(about, kept);
        // What cannot be read is kept as it is: its subscription sends nothing until it gets a new one.
        return text === undefined ? kept : next.seal(about, text);
      };
      return [
        id,
        again("secret", row.secret),
        again("previous secret", row.previous_secret),
        untilMs,
        bearer,
        again("bearer token", row.bearer_token),
      ];
    });
    sql.run(
      `INSERT INTO subscription_secret
          (subscription_id, secret, previous_secret, previous_until_ms, bearer, bearer_token)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?)`,
      JSON.stringify(resealed),
    );
  }
  return rows.length;
}

export function isEncrypted(sql: Sql): boolean {
  return findProof(sql) !== undefined;
}

/** `undefined` for a file that is not encrypted, or of a form that knew nothing of it. */
function findProof(sql: Sql): string | undefined {
  const table = sql.first<{ n: number }>("SELECT 1 AS n FROM sqlite_schema WHERE name = 'encryption'");
  if (table === undefined) return undefined;
  return sql.first<{ proof: string }>("SELECT proof FROM encryption")?.proof;
}

function vaultOf(proof: string, keys: EncryptionKeys | undefined): Vault | undefined {
  return [keys?.key, keys?.previous]
    .filter((key) => key !== undefined)
    .map((key) => new Vault(key))
    .find((vault) => vault.open(ABOUT_PROOF, proof) === PROOF);
}

function refusal(keys: EncryptionKeys | undefined): string {
  if (keys === undefined) {
    return ", and no key was given: set EVREG_ENCRYPTION_KEY or EVREG_ENCRYPTION_KEY_FILE to the one they were encrypted with.";
  }
  if (keys.previous === undefined) {
    return " with another key than the one given: set EVREG_ENCRYPTION_KEY to the right one or, if the key is to be changed, EVREG_ENCRYPTION_KEY_PREVIOUS to the one before.";
  }
  return " with neither of the keys given, EVREG_ENCRYPTION_KEY and EVREG_ENCRYPTION_KEY_PREVIOUS: set one of them to the one they were encrypted with.";
}

// Triggers, views, tables and indexes that evreg did not make. A trigger runs with each write, so one in a crafted backup
// could make tokens as it likes. A file of any form has exactly what the migrations up to that form make.

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/** What the encryption of a file leaves when it is cut off, see encrypt-file.ts; the next start takes it away. */
const FREE_PAGES = "CREATE TABLE free_pages (filler BLOB NOT NULL) STRICT";

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
