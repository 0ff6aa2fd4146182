import { closeSync, fsyncSync, openSync, rmSync } from "node:fs";
import { EvregError, messageOf } from "../../../domain/error.ts";
import { withFile } from "../../../runtime/files.ts";
import { type EncryptionKeys, type Vault, type Vaults, vaultsFor } from "../../secret-cipher.ts";
import { sealSecrets } from "../../sql/catalog/credentials.ts";
import type { Notice } from "../../sql/operation.ts";
import { addressOf, LARGE_CACHE, WriteConnection } from "../connection.ts";
import type { SyncSql } from "../statements.ts";
import { mustBeData, removeCopies, replaceFile } from "./data-folder.ts";
import { mustBeAt } from "./file-guard.ts";
import { passDropped, renewDataIdentity } from "./id-reservation.ts";
import { forEachPayload, KEPT_AS, OLDER_FORMS, SHORTENED_FORM } from "./older-forms.ts";
import { createTables, FORM, markForm, mustBeAsMade, readForm } from "./schema.ts";

/**
 * Opens a data file in today's form, its secrets encrypted with the key: makes the tables of an empty one, and writes it anew
 * where it has an older form.
 * @param notices gets what the log is to say of that
 */
export async function openDataFile(
  path: string,
  encryption: EncryptionKeys | undefined,
  notices: Notice[],
): Promise<WriteConnection> {
  let admitted: ReturnType<typeof admitFile>;
  const open = (): WriteConnection => {
    const admit = (sql: SyncSql): void => void (admitted = admitFile(sql, path, encryption));
    return WriteConnection.open(path, admit, encryption?.key);
  };
  let connection = open();
  const { form, vaults } = admitted!;
  if (form === 0) await makeFile(connection);
  const transactions = connection.log.commitsBehind;
  if (transactions > 0) {
    // Numbers are passed over before anything gets one.
    await connection.write(passDropped);
    const message =
      "The last transactions in the log could not be read and were dropped. After a power cut that is normal, and nobody was told that they were stored. If there was none, the log was damaged, and the last that was acknowledged may be lost. None of their numbers is given out again.";
    notices.push({ level: "warn", details: { transactions }, message });
  }
  if (form !== 0 && form !== FORM) {
    notices.push(await rewriteFile(connection, path, form, vaults.current));
    connection.close();
    connection = open();
  }
  if (vaults.isNewKey) await encryptSecrets(connection, vaults, notices);
  return connection;
}

/**
 * Refuses a file that is not evreg's, is newer, or has secrets that none of the keys opens. Only reads.
 * @returns its form, 0 for an empty one, and what opens its secrets
 */
function admitFile(sql: SyncSql, path: string, keys: EncryptionKeys | undefined) {
  const form = readForm(sql);
  if (form === 0 && sql.value("SELECT count(*) FROM sqlite_schema") === 0) {
    return { form, vaults: vaultsFor(undefined, keys, path) };
  }
  mustBeData(path, form);
  mustBeAsMade(sql, `The data file ${path}`, form);
  return { form, vaults: vaultsOf(sql, path, keys) };
}

async function makeFile(connection: WriteConnection): Promise<void> {
  await connection.write((sql) => {
    createTables(sql);
    renewDataIdentity(sql);
    markForm(sql);
  });
  // The form must be readable from the file itself, see `admittedVersion`.
  connection.checkpoint();
}

/** Seals the secrets with the next key. */
async function encryptSecrets(connection: WriteConnection, vaults: Vaults, notices: Notice[]): Promise<void> {
  // Without references the engine overwrites whole pages of what is removed, and so what is left in their gaps.
  connection.read.run("PRAGMA foreign_keys = OFF");
  const subscriptions = await connection.write((sql) => sealSecrets(sql, vaults));
  connection.read.run("PRAGMA foreign_keys = ON");
  connection.checkpoint();
  if (subscriptions === 0) return;
  const message =
    "Secrets are encrypted with the key from now on. Copies that upgrades have kept hold them as they were then; remove those.";
  notices.push({ level: "info", details: { subscriptions }, message });
}

/**
 * Refuses a file whose secrets none of these keys opens. Only reads.
 * @throws EvregError `usage` with the key that is missing or wrong
 */
export function vaultsOf(sql: SyncSql, path: string, keys: EncryptionKeys | undefined): Vaults {
  const proof = sql.value<string | undefined>("SELECT proof FROM encryption");
  return vaultsFor(proof, keys, path, { file: path });
}

// A file of an older form is written anew beside itself: the rows of each table are copied into a file of today's form, which then
// takes its place. Nothing is changed in the old file, so a kill at any moment leaves one of the two whole. The old one's lock
// is held until it has been replaced, so that nobody writes to it meanwhile.

/**
 * Writes the file anew, its secrets as they are encrypted. The connection is not to be used afterwards, as it has the old file.
 * @throws EvregError `unavailable` when it cannot be done, and nothing was changed
 */
async function rewriteFile(
  connection: WriteConnection,
  path: string,
  version: number,
  vault: Vault,
): Promise<Notice> {
  const sql = connection.read;
  removeCopies(path);
  try {
    const { kept: copy } = await replaceFile(path, KEPT_AS, async (made) => {
      withoutLog(sql, path);
      await writeAnew(sql, made, version, { current: vault, next: vault, isNewKey: false });
      mustBeAt(path, connection.file);
    });
    const message = "The data file was brought up to date; a copy from before is kept.";
    return { level: "info", details: { form: FORM, copy }, message };
  } catch (error) {
    const message = `The data file ${path} could not be brought from form ${version} to ${FORM}: ${messageOf(error)}. Nothing was changed.`;
    throw new EvregError("unavailable", message, { file: path, version }, { cause: error });
  }
}

/** Moves the log into the file and ends it: a log that is left would be taken for that of another file that gets its name. */
export function withoutLog(sql: SyncSql, file: string): void {
  sql.run("PRAGMA locking_mode = EXCLUSIVE");
  const mode = sql.value<string>("PRAGMA journal_mode = DELETE");
  if (mode !== "delete") throw new Error(`the log could not be ended (the mode is ${mode})`);
  // While the lock is held the engine keeps the journal of that change, which is done.
  rmSync(`${file}-journal`, { force: true });
}

async function writeAnew(sql: SyncSql, path: string, version: number, vaults: Vaults): Promise<void> {
  closeSync(openSync(path, "wx", 0o600));
  sql.run("ATTACH ? AS made", addressOf(path));
  // Nothing of the new file counts before all of it is on the disk.
  sql.run("PRAGMA made.journal_mode = OFF");
  sql.run("PRAGMA made.synchronous = OFF");
  sql.run(`PRAGMA made.${LARGE_CACHE}`);
  // Damage in the old file, such as a delivery without its event, is copied.
  sql.run("PRAGMA foreign_keys = OFF");
  createTables(sql, "made");
  await copyTables(sql, version);
  await sealSecrets(sql, vaults, aboutInOlder, "made.");
  // Which numbers were given, those of what was removed included, so that none is given again.
  sql.run("DELETE FROM made.sqlite_sequence");
  sql.run("INSERT INTO made.sqlite_sequence (name, seq) SELECT name, seq FROM main.sqlite_sequence");
  markForm(sql, "made");
  sql.run("DETACH made");
  withFile(path, "r+", fsyncSync);
}

/** Older forms bound a secret to the number of its subscription. */
const aboutInOlder = (id: number, column: string): string =>
  `${column.replace("_", " ")} of subscription ${id}`;

/** Tables that are not copied: counts are made at the start, and secrets are sealed anew. */
const APART = new Set(["event_count", "write_check", "subscription_secret", "encryption"]);

async function copyTables(sql: SyncSql, version: number): Promise<void> {
  const older = OLDER_FORMS.get(version)!;
  const tables = sql.column<string>(
    "SELECT name FROM made.sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'",
  );
  for (const table of tables.filter((name) => !APART.has(name))) {
    const oldColumns = columnsOf(sql, table, "main");
    const isOld = oldColumns.length > 0;
    const source = older.tables[table] ?? (isOld ? `main.${table}` : undefined);
    if (source === undefined) continue;
    const columns = columnsOf(sql, table, "made").flatMap((column) => {
      const isSame = !isOld || oldColumns.includes(column);
      const value = older.columns[`${table}.${column}`] ?? (isSame ? `o.${column}` : undefined);
      return value === undefined ? [] : [{ column, value }];
    });
    const names = columns.map(({ column }) => column).join(", ");
    const values = columns.map(({ value }) => value).join(", ");
    const copy = `INSERT INTO made.${table} (${names}) SELECT ${values} FROM ${source} AS o`;
    try {
      if (table === "event" && version === SHORTENED_FORM) await copyRestored(sql, copy);
      else sql.run(copy);
    } catch (error) {
      // The engine may not name it, such as where a row is not as evreg could have written it.
      throw new Error(`in the table ${table}: ${messageOf(error)}`, { cause: error });
    }
  }
}

function columnsOf(sql: SyncSql, table: string, database: "main" | "made"): readonly string[] {
  return sql.column("SELECT name FROM pragma_table_info(?, ?) ORDER BY cid", table, database);
}

async function copyRestored(sql: SyncSql, copy: string): Promise<void> {
  await forEachPayload(sql, SHORTENED_FORM, (payloads) => {
    for (const [event, payload] of payloads) sql.run(`${copy} WHERE o.rowid = ?1`, event, payload);
  });
}
