import type { BearerSetting, SecretReplacement } from "../../catalog.ts";
import { EvregError } from "../../../domain/error.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import type { Token } from "../../../domain/token.ts";
import { answersOf } from "../../../model/field.ts";
import { TOKEN } from "../../../model/token.ts";
import { toIso } from "../../../runtime/clock.ts";
import { aboutSecret, type SecretOwner, type Vaults } from "../../secret-cipher.ts";
import type { TokenRecord } from "../../store.ts";
import type { Work } from "../operation.ts";
import { insertRow, recordsOf, type Sql } from "../sql.ts";

// Secrets have a table of their own, so that no listing reads them. What a write removes there is erased at once.

/** Those who share a secret: the subscriptions of an application, name and mode. */
type Sharing = Pick<Subscription, "application" | "subscription" | "mode">;

/**
 * Reads what is stored of a secret, once for each subscription that shares it, the oldest first. Subscriptions of mode pull have
 * one of their own: whoever takes their deliveries knows it, and must not sign for a handler.
 */
async function loadShared(sql: Sql, { application, subscription, mode }: Sharing) {
  return await sql.rows<{ id: number; secret: string; previous: string | null; untilMs: number | null }>(
    `SELECT k.subscription_id AS id, k.secret, k.previous_secret AS previous, k.previous_until_ms AS untilMs
      FROM subscription AS s INDEXED BY subscription_living
      CROSS JOIN subscription_secret AS k ON k.subscription_id = s.rowid
      WHERE s.application = ? AND s.subscription = ? AND s.mode = ? AND s.deleted_ms IS NULL ORDER BY s.rowid`,
    application,
    subscription,
    mode,
  );
}

/** @param input of the new subscription `id`; its secret is for the first of those that share one */
export async function insertSecrets(
  work: Work,
  id: number,
  input: Sharing & { readonly secret: string; readonly bearer?: BearerSetting | undefined },
): Promise<void> {
  const { vault } = work;
  const about = aboutSecret(input, "secret");
  const [shared] = await loadShared(work, input);
  const isReadable = shared !== undefined && vault.open(about, shared.secret) !== undefined;
  await work.erase(
    `INSERT INTO subscription_secret (subscription_id, secret, previous_secret, previous_until_ms, bearer)
      VALUES (?, ?, ?, ?, 'secret')`,
    id,
    isReadable ? shared.secret : vault.seal(about, input.secret),
    isReadable ? shared.previous : null,
    isReadable ? shared.untilMs : null,
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
  const token = bearer.kind === "own" ? work.vault.seal(about, bearer.token) : null;
  const update = "UPDATE subscription_secret SET bearer = ?, bearer_token = ? WHERE subscription_id = ?";
  await work.erase(update, bearer.kind, token, id);
}

/**
 * Gives all who share a secret another one.
 * @throws EvregError `conflict` for an overlap while another one lasts
 */
export async function replaceSecrets(
  work: Work,
  owner: Sharing,
  rotation: SecretReplacement,
  nowMs: number,
): Promise<void> {
  await deleteExpiredSecrets(work, nowMs);
  const rows = await loadShared(work, owner);
  const untilMs = rows.find((row) => row.untilMs !== null)?.untilMs ?? null;
  if (rotation.overlapMs > 0 && untilMs !== null) {
    const until = toIso(untilMs);
    const message = `Its secret is being rotated already: the previous one stays valid until ${until}. Wait until then, or rotate without an overlap (overlap_ms 0, --expire-now), which ends both earlier secrets at once.`;
    throw new EvregError("conflict", message, { field: "overlap_ms", previous_secret_until: until });
  }
  const { vault } = work;
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

/** The columns that may be encrypted, with what each is about. A previous secret has the purpose that it had. */
const SEALED = { secret: "secret", previous_secret: "secret", bearer_token: "bearer token" } as const;
type SealedColumn = keyof typeof SEALED;

interface SecretRow extends SecretOwner, Readonly<Record<SealedColumn, string | null>> {
  readonly id: number;
  readonly until_ms: number | null;
  readonly bearer: string;
}

/**
 * Seals all secrets with the next key, and keeps its proof.
 * @param aboutBefore what they were about when they were sealed, where that was something else
 * @param into the database that is to have them, where that is another one
 * @returns how many subscriptions have secrets
 */
export async function sealSecrets(
  sql: Sql,
  { current, next }: Vaults,
  aboutBefore?: (id: number, column: SealedColumn) => string,
  into: "" | "made." = "",
): Promise<number> {
  const columns = Object.keys(SEALED) as readonly SealedColumn[];
  const resealed = (row: SecretRow, column: SealedColumn): string | null => {
    const stored = row[column];
    const about = aboutSecret(row, SEALED[column]);
    const text = stored === null ? undefined : current.open(aboutBefore?.(row.id, column) ?? about, stored);
    // A secret that cannot be read stays as it is: its subscription sends nothing until it gets a new one.
    return text === undefined ? stored : next.seal(about, text);
  };
  const rows = await sql.rows<SecretRow>(
    `SELECT k.subscription_id AS id, s.application, s.subscription, ${columns.join(", ")},
        k.previous_until_ms AS until_ms, k.bearer
      FROM subscription_secret AS k CROSS JOIN subscription AS s ON s.rowid = k.subscription_id`,
  );
  await sql.erase(`DELETE FROM ${into}subscription_secret`);
  await sql.run(
    `INSERT INTO ${into}subscription_secret (subscription_id, previous_until_ms, bearer, ${columns.join(", ")})
      SELECT id, until_ms, bearer, ${columns.join(", ")}
      FROM list(?: id bigint, until_ms bigint, bearer text, ${columns.join(" text, ")} text) AS sealed`,
    rows.map((row) => [row.id, row.until_ms, row.bearer, ...columns.map((column) => resealed(row, column))]),
  );
  await sql.run(`DELETE FROM ${into}encryption`);
  const proof = next.proof();
  if (proof !== undefined) await insertRow(sql, `${into}encryption`, { one: 1, proof });
  return rows.length;
}

const tokenOf = recordsOf<Token>(answersOf(TOKEN));

const COLUMNS =
  "rowid AS rowid, name, scopes, expires_ms AS expires_at, last_used_ms AS last_used_at, created_ms AS timestamped";

const MANAGED_FOR_MS = 60 * 60_000;

export async function createToken(sql: Sql, input: TokenRecord, nowMs: number): Promise<Token> {
  if ((await findToken(sql, input.hash)) !== undefined) {
    throw new EvregError("conflict", "This token exists already.");
  }
  await insertRow(sql, "token", {
    name: input.name,
    scopes: JSON.stringify(input.scopes),
    hash: input.hash,
    expires_ms: input.expiresAtMs,
    created_ms: nowMs,
  });
  return (await findToken(sql, input.hash))!;
}

export async function findToken(sql: Sql, hash: string): Promise<Token | undefined> {
  const row = await sql.first<object>(`SELECT ${COLUMNS} FROM token WHERE hash = ?`, hash);
  return row && tokenOf(row);
}

export async function listTokens(sql: Sql): Promise<readonly Token[]> {
  return (await sql.rows<object>(`SELECT ${COLUMNS} FROM token ORDER BY rowid`)).map(tokenOf);
}

/** @returns what was revoked */
export async function revokeToken(
  sql: Sql,
  id: number,
  keepsAdmin: boolean,
  nowMs: number,
): Promise<Token | undefined> {
  const wasManaged = keepsAdmin && (await isManaged(sql, nowMs));
  const row = await sql.first<object>(`DELETE FROM token WHERE rowid = ? RETURNING ${COLUMNS}`, id);
  if (wasManaged && !(await isManaged(sql, nowMs))) {
    const message =
      "This is the last token with the scope admin; without one nobody could manage this server. Create another first, then revoke this one with it.";
    throw new EvregError("conflict", message);
  }
  return row && tokenOf(row);
}

/** Whether a token can manage others at that time, and for long enough to make another. */
async function isManaged(sql: Sql, atMs: number): Promise<boolean> {
  return (
    (await sql.value<number>(
      `SELECT EXISTS (SELECT 1 FROM token AS t WHERE (t.expires_ms IS NULL OR t.expires_ms > ?)
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
