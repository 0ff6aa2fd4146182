import { EvregError } from "../../../domain/error.ts";
import { type EncryptionKeys, Vault } from "../../secret-cipher.ts";
import type { Sql } from "../thread/sql.ts";

const ABOUT_PROOF = "proof of the key";
const PROOF = "evreg";

/**
 * Refuses a file whose secrets none of these keys opens. Only reads.
 * @throws EvregError `usage` with the key that is missing or wrong
 */
export function admitKeys(sql: Sql, path: string, keys: EncryptionKeys | undefined): void {
  if (currentVault(sql, keys) !== undefined) return;
  throw new EvregError("usage", `The secrets in ${path} are encrypted${refusal(keys)} Nothing was changed.`);
}

export function isEncrypted(sql: Sql): boolean {
  return findProof(sql) !== undefined;
}

/** What opens the secrets as they are stored, and what seals them as they are to be. */
export interface FileVaults {
  readonly current: Vault;
  readonly next: Vault;
  /** Whether the next key is another one than that of the file, or its first one. */
  readonly isNewKey: boolean;
}

/** @param keys which `admitKeys` has admitted */
export function fileVaults(sql: Sql, keys: EncryptionKeys | undefined): FileVaults {
  const current = currentVault(sql, keys);
  if (current === undefined) throw new Error("the file's key was not checked");
  const next = new Vault(keys?.key);
  const stored = findProof(sql);
  const isNewKey = keys !== undefined && (stored === undefined || !provesKey(next, stored));
  return { current, next, isNewKey };
}

/** Makes the text that a file holds so that its key can be checked. */
export function proofOf(key: Uint8Array): string {
  return new Vault(key).seal(ABOUT_PROOF, PROOF);
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

/** Answers `undefined` where secrets are stored as they are. */
function findProof(sql: Sql): string | undefined {
  return sql.value<string | undefined>("SELECT proof FROM encryption");
}

function provesKey(vault: Vault, proof: string): boolean {
  return vault.open(ABOUT_PROOF, proof) === PROOF;
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
