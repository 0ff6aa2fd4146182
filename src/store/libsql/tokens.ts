import { EvregError } from "../../domain/error.ts";
import type { Token } from "../../domain/token.ts";
import { toIso } from "../../runtime/clock.ts";
import type { TokenRecord } from "../tokens.ts";
import type { Sql } from "./sql.ts";
import { isRowid, parseKept } from "./text.ts";

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

export function touchTokens(sql: Sql, uses: readonly { rowid: number; atMs: number }[]): undefined {
  sql.run(
    `UPDATE token SET last_used_ms = max(coalesce(last_used_ms, 0), used.at_ms)
      FROM (SELECT value ->> 0 AS id, value ->> 1 AS at_ms FROM json_each(?)) AS used
      WHERE token.rowid = used.id`,
    JSON.stringify(uses.map(({ rowid, atMs }) => [rowid, atMs])),
  );
}

function tokenOf(row: TokenRow): Token {
  return {
    rowid: row.id,
    name: row.name,
    scopes: parseKept(row.scopes) as string[],
    expires_at: row.expires_ms === null ? null : toIso(row.expires_ms),
    last_used_at: row.last_used_ms === null ? null : toIso(row.last_used_ms),
    timestamped: toIso(row.created_ms),
  };
}
