import type { BearerSetting, SecretReplacement } from "../../catalog.ts";
import { EvregError } from "../../../domain/error.ts";
import { isCodeHash, SIGN_IN_CODES } from "../../../domain/token-secret.ts";
import type { Token } from "../../../domain/token.ts";
import { toIso } from "../../../runtime/clock.ts";
import { aboutSecret, type SecretOwner, Vault } from "../../secret-cipher.ts";
import type { CallerToken, TokenRecord } from "../../store.ts";
import type { Work } from "../operation.ts";
import { isoOrNull, isRowid, parseStored, type Sql, type StoredRecord, updateRow } from "../sql.ts";

// Secrets have a table of their own, so that no listing reads them. What a write removes there is erased at once.

/**
 * Answers the stored secret of the oldest other subscription of the same application, name and mode, as these share it.
 * Subscriptions of mode pull have one of their own: whoever takes their deliveries knows it, and must not sign for a handler.
 */
async function sharedSecret(sql: Sql, id: number) {
  return await sql.first<{
    secret: string;
    previous_secret: string | null;
    previous_until_ms: number | null;
  }>(
    `SELECT k.secret, k.previous_secret, k.previous_until_ms
      FROM subscription AS s CROSS JOIN subscription AS o INDEXED BY subscription_living
      CROSS JOIN subscription_secret AS k ON k.subscription_id = o.rowid
      WHERE s.rowid = ? AND o.application = s.application AND o.subscription = s.subscription
        AND o.mode = s.mode AND o.deleted_ms IS NULL AND o.rowid <> s.rowid
      ORDER BY o.rowid LIMIT 1`,
    id,
  );
}

/** @param input of the subscription `id`; its secret is for the first of its application and name */
export async function insertSecrets(
  work: Work,
  id: number,
  input: SecretOwner & { readonly secret: string; readonly bearer?: BearerSetting },
): Promise<void> {
  const vault = new Vault(work.key);
  const about = aboutSecret(input, "secret");
  const shared = await sharedSecret(work, id);
  const isReadable = shared !== undefined && vault.open(about, shared.secret) !== undefined;
  await work.erase(
    `INSERT INTO subscription_secret (subscription_id, secret, previous_secret, previous_until_ms, bearer)
      VALUES (?, ?, ?, ?, 'secret')`,
    id,
    isReadable ? shared.secret : vault.seal(about, input.secret),
    isReadable ? shared.previous_secret : null,
    isReadable ? shared.previous_until_ms : null,
  );
  if (input.bearer !== undefined) await setBearer(work, id, input, input.bearer);
}

export async function setBearer(
  work: Work,
  id: number,
  owner: SecretOwner,
  bearer: BearerSetting,
): Promise<void> {
  const about = aboutSecret(owner, "bearer token");
  const token = bearer.kind === "own" ? new Vault(work.key).seal(about, bearer.token) : null;
  const update = "UPDATE subscription_secret SET bearer = ?, bearer_token = ? WHERE subscription_id = ?";
  await work.erase(update, bearer.kind, token, id);
}

/**
 * Gives all subscriptions of an application, name and mode the same secret.
 * @throws EvregError `conflict` for an overlap while another one lasts
 */
export async function replaceSecrets(
  work: Work,
  owner: SecretOwner & { readonly mode: string },
  rotation: SecretReplacement,
  nowMs: number,
): Promise<void> {
  await deleteExpiredSecrets(work, nowMs);
  const rows = await work.rows<{ id: number; secret: string; until_ms: number | null }>(
    `SELECT k.subscription_id AS id, k.secret, k.previous_until_ms AS until_ms
      FROM subscription AS s INDEXED BY subscription_living
      CROSS JOIN subscription_secret AS k ON k.subscription_id = s.rowid
      WHERE s.application = ? AND s.subscription = ? AND s.mode = ? AND s.deleted_ms IS NULL`,
    owner.application,
    owner.subscription,
    owner.mode,
  );
  const untilMs = rows.find((row) => row.until_ms !== null)?.until_ms ?? null;
  if (rotation.overlapMs > 0 && untilMs !== null) {
    const until = toIso(untilMs);
    const message = `Its secret is being rotated already: the previous one stays valid until ${until}. Wait until then, or rotate without an overlap (overlap_ms 0, --expire-now), which ends both earlier secrets at once.`;
    throw new EvregError("conflict", message, { field: "overlap_ms", previous_secret_until: until });
  }
  const vault = new Vault(work.key);
  const about = aboutSecret(owner, "secret");
  for (const { id, secret } of rows) {
    // A secret that cannot be read signs nothing, so it has no overlap.
    const overlaps = rotation.overlapMs > 0 && vault.open(about, secret) !== undefined;
    await work.erase(
      `UPDATE subscription_secret SET secret = ?, previous_secret = ?, previous_until_ms = ?
        WHERE subscription_id = ?`,
      vault.seal(about, rotation.secret),
      overlaps ? secret : null,
      overlaps ? nowMs + rotation.overlapMs : null,
      id,
    );
  }
}

export async function deleteExpiredSecrets(sql: Sql, nowMs: number): Promise<void> {
  await sql.erase(
    `UPDATE subscription_secret SET previous_secret = NULL, previous_until_ms = NULL WHERE previous_until_ms <= ?`,
    nowMs,
  );
}

export async function deleteSecrets(sql: Sql, id: number): Promise<void> {
  await sql.erase("DELETE FROM subscription_secret WHERE subscription_id = ?", id);
}

interface TokenRow extends StoredRecord<
  Omit<Token, "scopes">,
  "expires_at" | "last_used_at" | "timestamped"
> {
  readonly scopes: string;
}

const COLUMNS =
  "rowid AS rowid, name, scopes, expires_ms AS expires_at, last_used_ms AS last_used_at, created_ms AS timestamped";

/** Tokens of browsers are not listed once they have ended, and nobody manages a server with them. */
const IS_OF_BROWSER = "parent_id IS NOT NULL";

/** So many living tokens may be made, by codes, for one token. */
const MAX_BROWSERS = 32;
const MANAGED_FOR_MS = 60 * 60_000;

export async function createToken(sql: Sql, input: TokenRecord, nowMs: number): Promise<Token> {
  await sql.run(`DELETE FROM token WHERE expires_ms <= ? AND ${IS_OF_BROWSER}`, nowMs);
  const { parentId, scopes } = input;
  if (parentId !== undefined && isCodeHash(input.hash)) await checkCodes(sql, parentId, nowMs);
  else if (parentId !== undefined) await useCode(sql, parentId, input.expiresAtMs ?? null, nowMs);
  if ((await sql.first("SELECT 1 FROM token WHERE hash = ?", input.hash)) !== undefined) {
    throw new EvregError("conflict", "This token exists already.");
  }
  const row = await sql.first<TokenRow>(
    `INSERT INTO token (name, scopes, hash, expires_ms, created_ms, parent_id) VALUES (?, ?, ?, ?, ?, ?)
      RETURNING ${COLUMNS}`,
    input.name,
    JSON.stringify(scopes),
    input.hash,
    input.expiresAtMs,
    nowMs,
    parentId,
  );
  return tokenOf(row!);
}

const IS_CODE = "hash LIKE 'code %'";

/** Checks whether one more code may be made with a token, as each could make more for ever. */
async function checkCodes(sql: Sql, id: number, nowMs: number): Promise<void> {
  const { own, all } = (await sql.first<{ own: number; all: number }>(
    `SELECT count(*) AS "all", coalesce(sum(parent_id = ?1), 0) AS own FROM token
      WHERE ${IS_CODE} AND created_ms > ?2`,
    id,
    nowMs - SIGN_IN_CODES.holdMs,
  ))!;
  if (own < SIGN_IN_CODES.maxOfOne && all < SIGN_IN_CODES.max) return;
  const message = "Too many codes for signing in were made in the last two minutes. Try again in a moment.";
  throw new EvregError("rate_limited", message);
}

/** @param endsMs of what it is used for: until then it is known that it was used */
async function useCode(sql: Sql, id: number, endsMs: number | null, nowMs: number): Promise<void> {
  const code = await sql.first<{ readonly used: number | null }>(
    `SELECT last_used_ms AS used FROM token WHERE rowid = ?1 AND ${IS_CODE} AND ?2 - created_ms BETWEEN 0 AND ?3 - 1`,
    id,
    nowMs,
    SIGN_IN_CODES.holdMs,
  );
  if (code === undefined) throw new EvregError("unauthorized", SIGN_IN_CODES.unknown);
  if (code.used !== null) throw new EvregError("conflict", "The code was used before.");
  await updateRow(sql, "token", id, { last_used_ms: nowMs, expires_ms: endsMs });
  const browsers = await sql.value<number>(
    `SELECT count(*) FROM token WHERE parent_id IN (SELECT rowid FROM token
      WHERE parent_id > 0 AND parent_id = (SELECT parent_id FROM token WHERE rowid = ?))`,
    id,
  );
  if (browsers < MAX_BROWSERS) return;
  const message = `${MAX_BROWSERS} browsers are signed in by this token. Sign out in one of them, or revoke a token named browser.`;
  throw new EvregError("rate_limited", message);
}

export async function findToken(sql: Sql, hash: string): Promise<CallerToken | undefined> {
  const row = await sql.first<TokenRow & Pick<CallerToken, "parentId" | "callerId">>(
    `SELECT ${COLUMNS}, parent_id AS parentId,
        coalesce((SELECT nullif(c.parent_id, 0) FROM token AS c WHERE c.rowid = token.parent_id), nullif(parent_id, 0), rowid) AS callerId
      FROM token WHERE hash = ?`,
    hash,
  );
  if (row === undefined) return undefined;
  const { callerId, parentId } = row;
  return { ...tokenOf(row), callerId, parentId };
}

export async function listTokens(sql: Sql): Promise<readonly Token[]> {
  return (await sql.rows<TokenRow>(`SELECT ${COLUMNS} FROM token WHERE NOT ${IS_CODE} ORDER BY rowid`)).map(
    tokenOf,
  );
}

/**
 * Revokes a token. Answers it, and after it those that were made for it, which end with it; none where there is no such token.
 */
export async function revokeToken(sql: Sql, id: number, managedAtMs?: number): Promise<readonly Token[]> {
  if (!isRowid(id)) return [];
  const wasManaged = managedAtMs !== undefined && (await isManaged(sql, managedAtMs));
  const family = await sql.rows<TokenRow & { readonly isCode: number }>(
    `SELECT ${COLUMNS}, ${IS_CODE} AS isCode FROM token
      WHERE rowid = ?1 OR parent_id = ?1 OR parent_id IN (SELECT rowid FROM token WHERE parent_id = ?1) ORDER BY rowid`,
    id,
  );
  for (const { rowid } of family) await sql.run("DELETE FROM token WHERE rowid = ?", rowid);
  const revoked = family
    .filter(({ isCode }) => isCode === 0)
    .map(({ isCode: _isCode, ...row }) => tokenOf(row));
  if (wasManaged && !(await isManaged(sql, managedAtMs))) {
    const message =
      "This is the last token with the scope admin; without one nobody could manage this server. Create another first, then revoke this one with it.";
    throw new EvregError("conflict", message);
  }
  return revoked;
}

/** Whether a token can manage others at that time, and for long enough to make another. */
async function isManaged(sql: Sql, atMs: number): Promise<boolean> {
  return (
    (await sql.value<number>(
      `SELECT EXISTS (SELECT 1 FROM token AS t WHERE (t.expires_ms IS NULL OR t.expires_ms > ?) AND NOT (${IS_OF_BROWSER})
      AND EXISTS (SELECT 1 FROM json_each(t.scopes) AS s WHERE s.value = 'admin'))`,
      atMs + MANAGED_FOR_MS,
    )) === 1
  );
}

export async function recordTokenUse(sql: Sql, id: number, atMs: number): Promise<undefined> {
  await sql.run(
    "UPDATE token SET last_used_ms = max(coalesce(last_used_ms, 0), ?2) WHERE rowid = ?1",
    id,
    atMs,
  );
}

function tokenOf(row: TokenRow): Token {
  return {
    ...row,
    scopes: parseStored(row.scopes) as readonly string[],
    expires_at: isoOrNull(row.expires_at),
    last_used_at: isoOrNull(row.last_used_at),
    timestamped: toIso(row.timestamped),
  };
}
