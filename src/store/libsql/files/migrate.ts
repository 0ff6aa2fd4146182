import { createHash } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { EvregError, messageOf } from "../../../domain/error.ts";
import { syncFolderOf, withFile } from "../../../runtime/files.ts";
import { aboutSecret, type EncryptionKeys, Vault } from "../../secret-cipher.ts";
import { type Connection, withMemoryDatabase } from "../thread/connection.ts";
import type { Sql } from "../thread/sql.ts";
import { checkForm, notEvreg } from "./data-folder.ts";
import { hasTable } from "./id-reservation.ts";
import { APPLICATION_ID, MIGRATIONS } from "./migrations.ts";
import type { Migration } from "./released-migrations.ts";
import { removeCopy } from "./replace-file.ts";
import { mustBeServable } from "./row-limits.ts";

interface AppliedMigrations {
  /** Versions applied, in order. */
  readonly applied: readonly number[];
  /** The copy kept of the file as it was; `undefined` when it was empty or up to date. */
  readonly copy: string | undefined;
}

/** Refuses a file that is not evreg's or is newer. Only reads. */
export function admitFile(sql: Sql, path: string): void {
  const { applicationId, version } = readForm(sql);
  if (applicationId === 0) {
    if (version === 0 && sql.value("SELECT count(*) FROM sqlite_schema") === 0) return;
    throw notEvreg(path);
  }
  checkForm(path, applicationId, version);
  mustBeAsMade(sql, `The data file ${path}`, version);
  mustBeServable(sql, path);
}

/**
 * Brings the file to the last of `migrations`, each step in a transaction of its own. A new file gets them in one
 * transaction, as each waits for the disk and there is nothing to lose if a later step fails.
 */
export function migrateFile(
  connection: Connection,
  path: string,
  migrations: readonly Migration[] = MIGRATIONS,
): AppliedMigrations {
  const { version } = readForm(connection.read);
  const pending = migrations.filter((migration) => migration.version > version);
  const [first] = pending;
  if (first === undefined) return { applied: [], copy: undefined };
  const copy = version === 0 ? undefined : `${path}.before-v${first.version}`;
  if (copy !== undefined) keepCopy(connection, copy);
  for (const steps of version === 0 ? [pending] : pending.map((migration) => [migration])) {
    try {
      apply(connection, steps);
    } catch (error) {
      throw notApplied(connection, error as EvregError, { before: version, copy });
    }
  }
  // The form must be readable from the file itself, see readFileVersion.
  connection.checkpoint();
  return { applied: pending.map((migration) => migration.version), copy };
}

function apply(connection: Connection, steps: readonly Migration[]): void {
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
    throw new EvregError(
      "unavailable",
      `The data file could not be brought to form ${step?.version} (${step?.name}): ` +
        `${messageOf(error)}. This step changed nothing.`,
      { version: step?.version },
      { cause: error },
    );
  }
}

/** A copy of a file that no step has changed is of no use, and takes room. */
function notApplied(
  connection: Connection,
  error: EvregError,
  { before, copy }: { before: number; copy: string | undefined },
): EvregError {
  if (copy === undefined) return error;
  if (readForm(connection.read).version === before) {
    rmSync(copy, { force: true });
    return error;
  }
  const message = `${error.message} A copy from before is in ${copy}.`;
  return new EvregError(error.code, message, error.details, { cause: error.cause });
}

/** A whole copy of the committed state, made durable before it gets its name. Nothing is left of one that fails. */
function keepCopy(connection: Connection, copy: string): void {
  const unfinished = `${copy}.unfinished`;
  removeCopy(unfinished);
  try {
    closeSync(openSync(unfinished, "wx", 0o600));
    connection.read.run("VACUUM INTO ?", unfinished);
    chmodSync(unfinished, 0o600);
    withFile(unfinished, "r+", fsyncSync);
    renameSync(unfinished, copy);
    syncFolderOf(copy);
  } catch (error) {
    removeCopy(unfinished);
    throw error;
  }
}

export function readForm(sql: Sql): { applicationId: number; version: number } {
  return { applicationId: sql.value("PRAGMA application_id"), version: sql.value("PRAGMA user_version") };
}

const ABOUT_PROOF = "proof of the key";
const PROOF = "evreg";
const ROWS_AT_ONCE = 1_000;
const PAGES_AT_ONCE = 2_000;
/** In each page of a long value, the number of its next one. */
const PAGE_LINK_BYTES = 4;

/**
 * Refuses a file whose secrets are encrypted with none of these keys. Only reads.
 * @throws EvregError `usage` with the key that is missing or wrong
 */
export function admitKeys(sql: Sql, path: string, keys: EncryptionKeys | undefined): void {
  const proof = findProof(sql);
  if (proof === undefined || vaultOf(proof, keys) !== undefined) return;
  throw new EvregError("usage", `The secrets in ${path} are encrypted${refusal(keys)} Nothing was changed.`);
}

/**
 * Encrypts secrets that are plain, or encrypted with the previous key, with the current key: all in one transaction, so that
 * a crash leaves either state. Nothing of the old state stays in the file: what is deleted is overwritten, and the log is
 * emptied.
 * @returns how many subscriptions' secrets were rewritten; `undefined` when there was nothing to do
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

/** Overwrites the free pages, where secrets of subscriptions deleted long ago may be, by a table of zeros. */
function fillFreePages(connection: Connection): void {
  const { read } = connection;
  if (!hasTable(read, "free_pages")) connection.write((sql) => sql.run(FREE_PAGES));
  const usableBytes = read.value<number>("PRAGMA page_size") - PAGE_LINK_BYTES;
  for (;;) {
    const free = read.value<number>("PRAGMA freelist_count");
    if (free === 0) return;
    const bytes = Math.min(free, PAGES_AT_ONCE) * usableBytes;
    connection.write((sql) => sql.run("INSERT INTO free_pages (filler) VALUES (zeroblob(?))", bytes));
  }
}

interface Row {
  readonly subscription_id: number;
  readonly secret: string;
  readonly previous_secret: string | null;
  readonly previous_until_ms: number | null;
  readonly bearer: string;
  readonly bearer_token: string | null;
}

/** Empties the table first, which frees its pages: freed pages are overwritten as a whole. */
function reseal(sql: Sql, before: Vault, next: Vault): number {
  const rows = sql.rows<Row>(
    `SELECT subscription_id, secret, previous_secret, previous_until_ms, bearer, bearer_token
      FROM subscription_secret ORDER BY subscription_id`,
  );
  sql.run("DELETE FROM subscription_secret");
  for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
    const resealed = rows.slice(at, at + ROWS_AT_ONCE).map((row) => {
      const { subscription_id: id, previous_until_ms: untilMs, bearer } = row;
      const again = (purpose: Parameters<typeof aboutSecret>[1], sealed: string | null): string | null => {
        if (sealed === null) return null;
        const about = aboutSecret(id, purpose);
        const text = before.open(about, sealed);
        // A secret that cannot be read stays as it is: its subscription sends nothing until it gets a new one.
        return text === undefined ? sealed : next.seal(about, text);
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

/** `undefined` for a file that is not encrypted, or of a form without encryption. */
function findProof(sql: Sql): string | undefined {
  return hasTable(sql, "encryption") ? sql.value("SELECT proof FROM encryption") : undefined;
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

// A file of any form has exactly the tables, indexes, triggers and views that the migrations up to that form make. A trigger
// runs with each write, so one in a crafted backup could create tokens.

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly tbl_name: string;
  readonly sql: string | null;
}

/** Remains when `encryptFile` is cut off; the next start removes it. */
const FREE_PAGES = "CREATE TABLE free_pages (filler BLOB NOT NULL) STRICT";

/**
 * Refuses a file with another schema than the migrations up to its form make. Costs a query and a digest.
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

/** Objects that are unknown, changed or missing, each as a part of a sentence. */
function foreignObjects(sql: Sql, form: number): readonly string[] {
  const found = objectsIn(sql);
  if (digestOf(found) === MIGRATIONS[form - 1]?.schemaDigest) return [];
  const expected = new Map(madeAt(form).map((object) => [titleOf(object), textOf(object)]));
  const actual = new Map(found.map((object) => [titleOf(object), textOf(object)]));
  return [
    ...[...actual.keys()].filter((title) => !expected.has(title)),
    ...[...actual]
      .filter(([title, text]) => (expected.get(title) ?? text) !== text)
      .map(([title]) => `a changed ${title}`),
    ...[...expected.keys()].filter((title) => !actual.has(title)).map((title) => `no ${title}`),
  ];
}

/** The same for the same objects, however their statements are laid out. */
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
  return withMemoryDatabase((sql) => {
    for (const { statements } of MIGRATIONS.slice(0, form)) for (const one of statements) sql.run(one);
    return objectsIn(sql);
  });
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
