import { closeSync, fsyncSync, openSync, rmSync } from "node:fs";
import { EvregError, messageOf } from "../../../domain/error.ts";
import { withFile } from "../../../runtime/files.ts";
import { aboutSecret, type EncryptionKeys, type SecretPurpose } from "../../secret-cipher.ts";
import { addressOf, type Connection } from "../thread/connection.ts";
import { mustBeAt } from "../thread/file-guard.ts";
import type { Sql } from "../thread/sql.ts";
import { type FileVaults, fileVaults, proofOf } from "./file-key.ts";
import { olderForm, SHORTENED_FORM } from "./older-forms.ts";
import { fileBehindLink, move, removeCopy, replaceFile } from "./replace-file.ts";
import { createTables, FORM, markForm, readForm } from "./schema.ts";
import { forEachPayload } from "./stored-payloads.ts";
import { KEPT_AS, mustHaveRoom } from "./upgrade-room.ts";

// A file of an older form, or one whose secrets get another key, is written anew beside itself: the rows of each table are copied
// into a file of today's form, which then takes its place. Nothing is changed in the old file, so a kill at any moment leaves
// one of the two whole. The old one's lock is held until it has been replaced, so that nobody writes to it meanwhile.

export interface Rewritten {
  /** Where a file of an older form is as it was. */
  readonly copy: string | undefined;
  /** How many subscriptions' secrets were encrypted; `undefined` when the key is the same. */
  readonly encrypted: number | undefined;
}

/** What the data file becomes; a start removes one that was cut off. */
function unfinishedOf(file: string): string {
  return `${file}.unfinished`;
}

/**
 * Writes the file anew where that is needed. The connection is not to be used afterwards, as it has the old file.
 * @param keys which `admitKeys` has admitted
 * @returns `undefined` where the file is as it should be
 * @throws EvregError `unavailable` when it cannot be done, and nothing was changed
 */
export function rewriteFile(
  connection: Connection,
  path: string,
  keys: EncryptionKeys | undefined,
): Rewritten | undefined {
  const file = fileBehindLink(path);
  const made = unfinishedOf(file);
  removeCopy(made);
  const sql = connection.read;
  const { version } = readForm(sql);
  const vaults = fileVaults(sql, keys);
  if (version === FORM && !vaults.isNewKey) return undefined;
  if (version === FORM) mustHaveRoom(path, `encrypt the secrets in the data file ${path}`);
  try {
    withoutLog(sql, file);
    const secrets = writeAnew(sql, made, { version, vaults, key: keys?.key });
    mustBeAt(path, connection.file);
    return { copy: takePlace(file, made, version), encrypted: vaults.isNewKey ? secrets : undefined };
  } catch (error) {
    removeCopy(made);
    throw new EvregError(
      "unavailable",
      `The data file ${path} could not be brought from form ${version} to ${FORM}: ${messageOf(error)}. Nothing was changed.`,
      { file: path, version },
      { cause: error },
    );
  }
}

/** Moves the log into the file and ends it: a log that is left would be taken for that of the new file. */
function withoutLog(sql: Sql, file: string): void {
  sql.run("PRAGMA locking_mode = EXCLUSIVE");
  const mode = sql.value<string>("PRAGMA journal_mode = DELETE");
  if (mode !== "delete") throw new Error(`the log could not be ended (the mode is ${mode})`);
  // While the lock is held the engine keeps the journal of that change, which is done.
  rmSync(`${file}-journal`, { force: true });
}

/** What is to be encrypted is not kept: it holds the secrets as they are. */
function takePlace(file: string, made: string, version: number): string | undefined {
  if (version !== FORM) return replaceFile(file, made, KEPT_AS);
  move(made, file);
  return undefined;
}

interface Rewriting {
  /** The form of the old file. */
  readonly version: number;
  readonly vaults: FileVaults;
  readonly key: Uint8Array | undefined;
}

/** @returns how many subscriptions have secrets */
function writeAnew(sql: Sql, path: string, { version, vaults, key }: Rewriting): number {
  closeSync(openSync(path, "wx", 0o600));
  sql.run("ATTACH ? AS made", addressOf(path));
  // Nothing of the new file counts before all of it is on the disk.
  sql.run("PRAGMA made.journal_mode = OFF");
  sql.run("PRAGMA made.synchronous = OFF");
  sql.run(`PRAGMA made.cache_size = ${CACHE}`);
  // Damage in the old file, such as a delivery without its event, is copied.
  sql.run("PRAGMA foreign_keys = OFF");
  createTables(sql, "made");
  copyTables(sql, version);
  if (version === SHORTENED_FORM) copyRestored(sql);
  const secrets = copySecrets(sql, version, vaults);
  if (key !== undefined) sql.run("INSERT INTO made.encryption (one, proof) VALUES (1, ?)", proofOf(key));
  copySequences(sql);
  markForm(sql, "made");
  sql.run("DETACH made");
  withFile(path, "r+", fsyncSync);
  return secrets;
}

/** In KiB, as the engine takes it: all indexes of a table are written to at once. */
const CACHE = -65_536;

/** Tables that are not copied as they are: counts are made at the start, the others below. */
const APART = new Set(["event_count", "write_check", "subscription_secret", "encryption"]);

function copyTables(sql: Sql, version: number): void {
  const older = olderForm(version);
  const tables = sql.rows<{ name: string }>(
    "SELECT name FROM made.sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'",
  );
  for (const { name: table } of tables) {
    if (APART.has(table) || (table === "event" && version === SHORTENED_FORM)) continue;
    const oldColumns = columnsOf(sql, table, "main");
    const source = older.tables[table] ?? (oldColumns.length > 0 ? `main.${table}` : undefined);
    if (source === undefined) continue;
    const columns = columnsOf(sql, table, "made").flatMap((column) => {
      const isSame = older.tables[table] !== undefined || oldColumns.includes(column);
      const value = older.columns[`${table}.${column}`] ?? (isSame ? `o.${column}` : undefined);
      return value === undefined ? [] : [{ column, value }];
    });
    const names = columns.map(({ column }) => column).join(", ");
    const values = columns.map(({ value }) => value).join(", ");
    within(table, () => sql.run(`INSERT INTO made.${table} (${names}) SELECT ${values} FROM ${source} AS o`));
  }
}

function columnsOf(sql: Sql, table: string, database: "main" | "made"): readonly string[] {
  const found = sql.rows<{ name: string }>(
    "SELECT name FROM pragma_table_info(?, ?) ORDER BY cid",
    table,
    database,
  );
  return found.map(({ name }) => name);
}

/** Copies events with their payloads as they were published. */
function copyRestored(sql: Sql): void {
  const columns = columnsOf(sql, "event", "made").filter((column) => column !== "payload");
  forEachPayload(sql, (payloads) => {
    let start = 1;
    const places = payloads.map(({ eventId, payload }) => {
      const place = [eventId, start, payload.length];
      start += payload.length;
      return place;
    });
    within("event", () =>
      sql.run(
        `INSERT INTO made.event (${columns.join(", ")}, payload)
          SELECT ${columns.map((column) => `o.${column}`).join(", ")}, substr(?2, j.value ->> 1, j.value ->> 2)
          FROM json_each(?1) AS j CROSS JOIN main.event AS o ON o.rowid = j.value ->> 0`,
        JSON.stringify(places),
        Buffer.concat(payloads.map(({ payload }) => payload)),
      ),
    );
  });
}

interface SecretRow {
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly secret: string;
  readonly previous_secret: string | null;
  readonly previous_until_ms: number | null;
  readonly bearer: string;
  readonly bearer_token: string | null;
}

const SECRETS_AT_ONCE = 1_000;

function copySecrets(sql: Sql, version: number, { current, next }: FileVaults): number {
  const sealed = (row: SecretRow, column: "secret" | "previous_secret" | "bearer_token"): string | null => {
    const stored = row[column];
    if (stored === null) return null;
    const purpose: SecretPurpose = column === "bearer_token" ? "bearer token" : "secret";
    const about = aboutSecret(row, purpose);
    // Older forms bound it to the number of its subscription.
    const before =
      version === FORM ? about : `${column.replace("_", " ")} of subscription ${row.subscription_id}`;
    const text = current.open(before, stored);
    // One that cannot be read stays as it is: its subscription sends nothing until it gets a new one.
    return text === undefined ? stored : next.seal(about, text);
  };
  let count = 0;
  for (let after = 0; ;) {
    const rows = sql.rows<SecretRow>(
      `SELECT k.subscription_id, s.application, s.subscription, k.secret, k.previous_secret, k.previous_until_ms, k.bearer,
          k.bearer_token
        FROM main.subscription_secret AS k CROSS JOIN main.subscription AS s ON s.rowid = k.subscription_id
        WHERE k.subscription_id > ? ORDER BY k.subscription_id LIMIT ${SECRETS_AT_ONCE}`,
      after,
    );
    const last = rows.at(-1);
    if (last === undefined) break;
    const resealed = rows.map((row) => [
      row.subscription_id,
      sealed(row, "secret"),
      sealed(row, "previous_secret"),
      row.previous_until_ms,
      row.bearer,
      sealed(row, "bearer_token"),
    ]);
    within("subscription_secret", () =>
      sql.run(
        `INSERT INTO made.subscription_secret
            (subscription_id, secret, previous_secret, previous_until_ms, bearer, bearer_token)
          SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?)`,
        JSON.stringify(resealed),
      ),
    );
    count += rows.length;
    after = last.subscription_id;
  }
  return count;
}

/** Numbers that were given stay given, also those of what was removed. */
function copySequences(sql: Sql): void {
  sql.run("DELETE FROM made.sqlite_sequence");
  sql.run("INSERT INTO made.sqlite_sequence (name, seq) SELECT name, seq FROM main.sqlite_sequence");
}

/** Names the table in what the engine says, such as that a row is not as evreg could have written it. */
function within(table: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw new Error(`in the table ${table}: ${messageOf(error)}`, { cause: error });
  }
}
