import type { EncryptionKeys } from "../../secret-cipher.ts";
import { WriteConnection } from "../connection.ts";
import type { Notice } from "../../sql/prepare.ts";
import type { SyncSql } from "../statements.ts";
import { mustBeKnown } from "./data-folder.ts";
import { passDropped, renewDataIdentity } from "./id-reservation.ts";
import { rewriteFile, storeProof, vaultsOf } from "./rewrite-file.ts";
import { createTables, markForm, mustBeAsMade, readForm } from "./schema.ts";

interface OpenedFile {
  readonly connection: WriteConnection;
  readonly notices: readonly Notice[];
}

/**
 * Opens a data file in today's form, its secrets encrypted with the key: makes the tables of an empty one, and writes it anew
 * where it has an older form or another key.
 */
export async function openDataFile(path: string, encryption?: EncryptionKeys): Promise<OpenedFile> {
  const admit = (sql: SyncSql): void => admitFile(sql, path, encryption);
  const key = encryption?.key;
  const connection = WriteConnection.open(path, admit, key);
  if (isEmpty(connection.read)) await makeFile(connection, encryption);
  const notices: Notice[] = [];
  const transactions = connection.log.commitsBehind;
  if (transactions > 0) {
    // Numbers are passed over before anything gets one.
    await connection.write(passDropped);
    notices.push({
      level: "warn",
      details: { transactions },
      message:
        "The last transactions in the log could not be read and were dropped. After a power cut that is normal, and nobody was told that they were stored. If there was none, the log was damaged, and the last that was acknowledged may be lost. None of their numbers is given out again.",
    });
  }
  const rewritten = rewriteFile(connection, path, encryption);
  if (rewritten === undefined) return { connection, notices };
  connection.close();
  return { connection: WriteConnection.open(path, admit, key), notices: [...notices, ...rewritten] };
}

/** Refuses a file that is not evreg's, is newer, or has secrets that none of the keys opens. Only reads. */
function admitFile(sql: SyncSql, path: string, encryption?: EncryptionKeys): void {
  if (isEmpty(sql)) return;
  const form = readForm(sql);
  mustBeKnown(path, form);
  mustBeAsMade(sql, `The data file ${path}`, form);
  vaultsOf(sql, path, encryption);
}

function isEmpty(sql: SyncSql): boolean {
  return readForm(sql) === 0 && sql.value("SELECT count(*) FROM sqlite_schema") === 0;
}

async function makeFile(connection: WriteConnection, encryption: EncryptionKeys | undefined): Promise<void> {
  await connection.write((sql) => {
    createTables(sql);
    renewDataIdentity(sql);
    storeProof(sql, "main", encryption);
    markForm(sql);
  });
  // The form must be readable from the file itself, see `admittedVersion`.
  connection.checkpoint();
}
