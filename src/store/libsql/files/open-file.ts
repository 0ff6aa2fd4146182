import type { EncryptionKeys } from "../../secret-cipher.ts";
import { WriteConnection } from "../thread/connection.ts";
import type { FileId } from "../thread/file-guard.ts";
import type { Sql } from "../thread/sql.ts";
import { checkForm, notEvreg } from "./data-folder.ts";
import { admitKeys, proofOf } from "./file-key.ts";
import { passNumbers, renewDataIdentity } from "./id-reservation.ts";
import { rewriteFile, type Rewritten } from "./rewrite.ts";
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
  const { commitsBehind: dropped, pagesBehind, pageBytes } = connection.log;
  // Numbers are passed over before anything gets one.
  if (dropped > 0) connection.write((sql) => passNumbers(sql, pagesBehind * pageBytes));
  const rewritten = rewriteFile(connection, path, encryption);
  if (rewritten === undefined) return { connection, dropped };
  connection.close();
  return { connection: WriteConnection.open(path, admit, { key }), dropped, ...rewritten };
}

/** Refuses a file that is not evreg's, is newer, or has secrets that none of the keys opens. Only reads. */
export function admitFile(sql: Sql, path: string, encryption?: EncryptionKeys): void {
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
