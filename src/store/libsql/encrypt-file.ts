import { EvregError } from "../../domain/error.ts";
import { aboutSecret, Vault, type EncryptionKeys } from "../vault.ts";
import type { Connection } from "./connection.ts";
import { FREE_PAGES } from "./foreign-objects.ts";
import type { Sql } from "./sql.ts";
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
