import { EvregError } from "../../domain/error.ts";
import {
  type EncryptionKeys,
  proofOf,
  resealed,
  type SecretTexts,
  vaultsFor,
  whyLocked,
} from "../secret-cipher.ts";
import type { Work } from "../sql/operation.ts";
import { IS_LIVING } from "./nodes.ts";

/**
 * Seals the secrets with the key where they are not yet, or were with the previous one.
 * @returns how many subscriptions have secrets that were sealed now
 * @param node the one that starts
 * @throws EvregError `usage` with the key that is missing or wrong; `conflict` for another one than nodes that run have
 */
export async function encryptSecrets(
  work: Work,
  keys: EncryptionKeys | undefined,
  node: string,
): Promise<number> {
  const stored = await work.value<string | undefined>("SELECT proof FROM encryption");
  const vaults = vaultsFor(stored, keys);
  if (vaults === undefined) throw new EvregError("usage", whyLocked("the database", keys));
  if (keys === undefined || !vaults.isNewKey) return 0;
  const others = await work.value<number>(
    `SELECT count(*) FROM node WHERE ${IS_LIVING} AND serves = 1 AND id <> ?`,
    node,
  );
  if (others > 0) {
    const message =
      "The encryption key is another one than that of the nodes that run, and they could not read what it encrypts. Stop all of them, and start them with this key.";
    throw new EvregError("conflict", message);
  }
  await work.run("DELETE FROM encryption");
  await work.run("INSERT INTO encryption (one, proof) VALUES (1, ?)", proofOf(keys.key));
  const rows = await work.rows<SecretTexts>(
    `SELECT k.subscription_id AS id, s.application, s.subscription, k.secret, k.previous_secret, k.bearer_token
      FROM subscription_secret AS k CROSS JOIN subscription AS s ON s.rowid = k.subscription_id`,
  );
  for (const row of rows) {
    await work.erase(
      "UPDATE subscription_secret SET secret = ?2, previous_secret = ?3, bearer_token = ?4 WHERE subscription_id = ?1",
      row.id,
      ...resealed(row, vaults),
    );
  }
  return rows.length;
}
