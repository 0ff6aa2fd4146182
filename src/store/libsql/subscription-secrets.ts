import { EvregError } from "../../domain/error.ts";
import { toIso } from "../../runtime/clock.ts";
import type { BearerSetting } from "../subscriptions.ts";
import { aboutSecret, Vault } from "../vault.ts";
import type { Sql, SqlValue } from "./sql.ts";

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
  const { kind, token } = keptBearer(vault, id, given.bearer ?? { kind: "secret" });
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
  const { kind, token } = keptBearer(new Vault(key), id, bearer);
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
  forgetPreviousSecrets(sql, nowMs);
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
export function forgetPreviousSecrets(sql: Sql, nowMs: number): void {
  change(
    sql,
    `UPDATE subscription_secret SET previous_secret = NULL, previous_until_ms = NULL WHERE previous_until_ms <= ?`,
    nowMs,
  );
}

export function deleteSecrets(sql: Sql, id: number): void {
  change(sql, "DELETE FROM subscription_secret WHERE subscription_id = ?", id);
}

function keptBearer(
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
