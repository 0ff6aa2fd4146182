import { type EncryptionKeys, Vault } from "../../secret-cipher.ts";
import { WriteConnection } from "../thread/connection.ts";
import type { FileId } from "../thread/file-guard.ts";
import type { Sql } from "../thread/sql.ts";
import { checkForm, notEvreg } from "./data-folder.ts";
import { fileError } from "./earlier-data.ts";
import { passNumbers, renewDataIdentity } from "./id-reservation.ts";
import { type NewSecrets, rewriteFile, type Rewritten } from "./rewrite.ts";
import { createTables, markForm, mustBeAsMade, readForm } from "./schema.ts";

interface OpenedFile extends Partial<Rewritten> {
  readonly connection: WriteConnection;
  /** How many commits at the log's end had a part that was missing. */
  readonly dropped: number;
}

interface OpenFileOptions {
  readonly encryption?: EncryptionKeys | undefined;
  /** The file that must be there, when it was open before. */
  readonly expected?: FileId | undefined;
}

/**
 * Opens a data file in today's form, its secrets encrypted with the key: makes the tables of an empty one, and writes it anew
 * where it has an older form or another key.
 */
export function openDataFile(path: string, { encryption, expected }: OpenFileOptions = {}): OpenedFile {
  const admit = (sql: Sql): void => admitFile(sql, path, encryption);
  const key = encryption?.key;
  const connection = WriteConnection.open(path, admit, { expected, key });
  if (isEmpty(connection.read)) makeFile(connection, encryption);
  const { commitsBehind: dropped, bytesBehind } = connection.log;
  // Numbers are passed over before anything gets one.
  if (dropped > 0) connection.write((sql) => passNumbers(sql, bytesBehind));
  const rewritten = rewriteFile(connection, path, newSecrets(connection.read, encryption));
  if (rewritten === undefined) return { connection, dropped };
  connection.close();
  return { connection: WriteConnection.open(path, admit, { key }), dropped, ...rewritten };
}

/** Refuses a file that is not evreg's, is newer, or has secrets that none of the keys opens. Only reads. */
function admitFile(sql: Sql, path: string, encryption?: EncryptionKeys): void {
  if (isEmpty(sql)) return;
  const { applicationId, version } = readForm(sql);
  if (applicationId === 0) throw notEvreg(path);
  checkForm(path, applicationId, version);
  mustBeAsMade(sql, `The data file ${path}`, version);
  admitKeys(sql, path, encryption);
}

function isEmpty(sql: Sql): boolean {
  const { applicationId, version } = readForm(sql);
  return applicationId === 0 && version === 0 && sql.value("SELECT count(*) FROM sqlite_schema") === 0;
}

function makeFile(connection: WriteConnection, encryption: EncryptionKeys | undefined): void {
  connection.write((sql) => {
    createTables(sql);
    renewDataIdentity(sql);
    if (encryption !== undefined) {
      sql.run("INSERT INTO encryption (one, proof) VALUES (1, ?)", proofOf(encryption.key));
    }
    markForm(sql);
  });
  // The form must be readable from the file itself, see readFileVersion.
  connection.checkpoint();
}

// A file whose secrets are encrypted holds a known text under the same key, which tells whether a key is the right one.

const ABOUT_PROOF = "proof of the key";
const PROOF = "evreg";

/**
 * Refuses a file whose secrets none of these keys opens. Only reads.
 * @throws EvregError `usage` with the key that is missing or wrong
 */
export function admitKeys(sql: Sql, path: string, keys: EncryptionKeys | undefined): void {
  if (currentVault(sql, keys) !== undefined) return;
  const why = keys === undefined ? "no key was given" : "no key that was given is the one";
  throw fileError(
    "usage",
    path,
    `The secrets in ${path} are encrypted, and ${why}: set EVREG_ENCRYPTION_KEY or EVREG_ENCRYPTION_KEY_FILE to the key they were encrypted with or, to change the key, EVREG_ENCRYPTION_KEY_PREVIOUS. Nothing was changed.`,
  );
}

/** Answers the known text as it is stored; `undefined` where secrets are stored as they are. */
export function findProof(sql: Sql): string | undefined {
  return sql.value<string | undefined>("SELECT proof FROM encryption");
}

function proofOf(key: Uint8Array): string {
  return new Vault(key).seal(ABOUT_PROOF, PROOF);
}

function newSecrets(sql: Sql, keys: EncryptionKeys | undefined): NewSecrets {
  const current = currentVault(sql, keys);
  if (current === undefined) throw new Error("the file's key was not checked");
  const next = new Vault(keys?.key);
  const stored = findProof(sql);
  const isNewKey = keys !== undefined && (stored === undefined || !provesKey(next, stored));
  return { current, next, isNewKey, proof: keys === undefined ? undefined : proofOf(keys.key) };
}

/** Answers what opens the file's secrets; `undefined` where none of the keys does. */
function currentVault(sql: Sql, keys: EncryptionKeys | undefined): Vault | undefined {
  const proof = findProof(sql);
  if (proof === undefined) return new Vault(undefined);
  return [keys?.key, keys?.previous]
    .filter((key) => key !== undefined)
    .map((key) => new Vault(key))
    .find((vault) => provesKey(vault, proof));
}

function provesKey(vault: Vault, proof: string): boolean {
  return vault.open(ABOUT_PROOF, proof) === PROOF;
}
