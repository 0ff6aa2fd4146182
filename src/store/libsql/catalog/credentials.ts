import type { BearerSetting } from "../../catalog.ts";
import { EvregError } from "../../../domain/error.ts";
import type { Token } from "../../../domain/token.ts";
import { toIso } from "../../../runtime/clock.ts";
import { aboutSecret, Vault } from "../../secret-cipher.ts";
import type { TokenRecord } from "../../store.ts";
import { isRowid, readableOr, type Sql, type SqlValue } from "../thread/sql.ts";

// What deliveries are signed with, in a table of its own: no listing reads it, and all of it can be written anew when
// the key changes. What a write takes out of it is overwritten at once: a page that it gives up may become another
// table's, whose unused parts nobody overwrites when the file is encrypted later.

function change(sql: Sql, text: string, ...values: SqlValue[]): void {
  sql.run("PRAGMA secure_delete = ON");
  try {
    sql.run(text, ...values);
  } finally {
    sql.run("PRAGMA secure_delete = OFF");
  }
}

/** @param key what it is encrypted with, where it is */
export function insertSecrets(
  sql: Sql,
  id: number,
  given: { readonly secret: string; readonly bearer?: BearerSetting },
  key: Uint8Array | undefined,
): void {
  const vault = new Vault(key);
  const { kind, token } = storedBearer(vault, id, given.bearer ?? { kind: "secret" });
  change(
    sql,
    "INSERT INTO subscription_secret (subscription_id, secret, bearer, bearer_token) VALUES (?, ?, ?, ?)",
    id,
    vault.seal(aboutSecret(id, "secret"), given.secret),
    kind,
    token,
  );
}

export function setBearer(sql: Sql, id: number, bearer: BearerSetting, key: Uint8Array | undefined): void {
  const { kind, token } = storedBearer(new Vault(key), id, bearer);
  change(
    sql,
    "UPDATE subscription_secret SET bearer = ?, bearer_token = ? WHERE subscription_id = ?",
    kind,
    token,
    id,
  );
}

/** @throws EvregError `conflict` for an overlap while another one lasts */
export function replaceSecret(
  sql: Sql,
  id: number,
  { secret, overlapMs }: { readonly secret: string; readonly overlapMs: number },
  nowMs: number,
  key: Uint8Array | undefined,
): void {
  deleteExpiredSecrets(sql, nowMs);
  const row = sql.first<{ secret: string; until_ms: number | null }>(
    "SELECT secret, previous_until_ms AS until_ms FROM subscription_secret WHERE subscription_id = ?",
    id,
  );
  if (row === undefined) throw new Error(`subscription ${id} has no secret`);
  if (overlapMs > 0 && row.until_ms !== null) throw overlapping(row.until_ms);
  const vault = new Vault(key);
  const before = overlapMs > 0 ? vault.open(aboutSecret(id, "secret"), row.secret) : undefined;
  change(
    sql,
    `UPDATE subscription_secret SET secret = ?, previous_secret = ?, previous_until_ms = ?
      WHERE subscription_id = ?`,
    vault.seal(aboutSecret(id, "secret"), secret),
    before === undefined ? null : vault.seal(aboutSecret(id, "previous secret"), before),
    before === undefined ? null : nowMs + overlapMs,
    id,
  );
}

/** Those whose overlap has ended. */
export function deleteExpiredSecrets(sql: Sql, nowMs: number): void {
  change(
    sql,
    `UPDATE subscription_secret SET previous_secret = NULL, previous_until_ms = NULL WHERE previous_until_ms <= ?`,
    nowMs,
  );
}

export function deleteSecrets(sql: Sql, id: number): void {
  change(sql, "DELETE FROM subscription_secret WHERE subscription_id = ?", id);
}

function storedBearer(
  vault: Vault,
  id: number,
  bearer: BearerSetting,
): { kind: BearerSetting["kind"]; token: string | null } {
  const token = bearer.kind === "own" ? vault.seal(aboutSecret(id, "bearer token"), bearer.token) : null;
  return { kind: bearer.kind, token };
}

function overlapping(untilMs: number): EvregError {
  const until = toIso(untilMs);
  return new EvregError(
    "conflict",
    `Its secret is being rotated already: the one before stays valid until ${until}. Wait until then, or rotate without an overlap (overlap_ms 0, --expire-now), which ends both secrets before at once.`,
    { field: "overlap_ms", previous_secret_until: until },
  );
}

interface TokenRow {
  readonly id: number;
  readonly name: string;
  readonly scopes: string;
  readonly expires_ms: number | null;
  readonly last_used_ms: number | null;
  readonly created_ms: number;
}

const COLUMNS = "rowid AS id, name, scopes, expires_ms, last_used_ms, created_ms";

export function createToken(sql: Sql, input: TokenRecord, nowMs: number): Token {
  const taken = sql.first("SELECT 1 FROM token WHERE hash = ?", input.hash);
  if (taken !== undefined) throw new EvregError("conflict", "This token exists already.");
  const row = sql.first<TokenRow>(
    `INSERT INTO token (name, scopes, hash, expires_ms, created_ms) VALUES (?, ?, ?, ?, ?) RETURNING ${COLUMNS}`,
    input.name,
    JSON.stringify(input.scopes),
    input.hash,
    input.expiresAtMs ?? null,
    nowMs,
  );
  if (row === undefined) throw new Error("a token was written and not answered");
  return tokenOf(row);
}

export function findToken(sql: Sql, hash: string): Token | undefined {
  const row = sql.first<TokenRow>(`SELECT ${COLUMNS} FROM token WHERE hash = ?`, hash);
  return row === undefined ? undefined : tokenOf(row);
}

export function listTokens(sql: Sql): readonly Token[] {
  const rows = sql.rows<TokenRow>(`SELECT ${COLUMNS} FROM token ORDER BY rowid`);
  return rows.map(tokenOf);
}

export function revokeToken(sql: Sql, id: number, managedAtMs?: number): Token | undefined {
  if (!isRowid(id)) return undefined;
  const wasManaged = managedAtMs !== undefined && isManaged(sql, managedAtMs);
  const row = sql.first<TokenRow>(`DELETE FROM token WHERE rowid = ? RETURNING ${COLUMNS}`, id);
  if (wasManaged && !isManaged(sql, managedAtMs)) throw lastAdmin();
  return row === undefined ? undefined : tokenOf(row);
}

/** Whether some token can manage others then. */
function isManaged(sql: Sql, atMs: number): boolean {
  const admin = sql.first(
    `SELECT 1 FROM token AS t WHERE (t.expires_ms IS NULL OR t.expires_ms > ?)
      AND EXISTS (SELECT 1 FROM json_each(t.scopes) AS s WHERE s.value = 'admin') LIMIT 1`,
    atMs,
  );
  return admin !== undefined;
}

function lastAdmin(): EvregError {
  return new EvregError(
    "conflict",
    "This is the last token with the scope admin; without one nobody could manage this server. Create another first, then revoke this one with it.",
  );
}

export function recordTokenUses(sql: Sql, uses: readonly { rowid: number; atMs: number }[]): undefined {
  sql.run(
    `UPDATE token SET last_used_ms = max(coalesce(last_used_ms, 0), used.at_ms)
      FROM (SELECT value ->> 0 AS id, value ->> 1 AS at_ms FROM json_each(?)) AS used
      WHERE token.rowid = used.id`,
    JSON.stringify(uses.map(({ rowid, atMs }) => [rowid, atMs])),
  );
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function tokenOf(row: TokenRow): Token {
  return {
    rowid: row.id,
    name: row.name,
    // Damaged ones grant nothing.
    scopes: readableOr([], row.scopes, (value) => (isTexts(value) ? value : undefined)),
    expires_at: row.expires_ms === null ? null : toIso(row.expires_ms),
    last_used_at: row.last_used_ms === null ? null : toIso(row.last_used_ms),
    timestamped: toIso(row.created_ms),
  };
}
