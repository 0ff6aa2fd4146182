import type { Actor, AuditedChange, AuditEntry, ChangedMember } from "../../../domain/audit.ts";
import { ANSWERS } from "../../../model/answers.ts";
import type { AuditSelection } from "../../history.ts";
import { MAX_REMOVED_ROWS } from "../operation.ts";
import { insertRow, recordsOf, type Sql } from "../sql.ts";

interface Changed {
  readonly change: AuditedChange;
  readonly id: number | null;
  readonly name: string;
  readonly members?: readonly ChangedMember[];
}

/** Keeps a change, in the transaction of that change. Without `by`, evreg itself made it, which is not kept. */
export async function recordChange(
  sql: Sql,
  { change, id, name, members = [] }: Changed,
  nowMs: number,
  by: Actor | undefined,
): Promise<void> {
  if (by === undefined) return;
  await insertRow(sql, "audit", {
    changed_ms: nowMs,
    change,
    record_id: id,
    name,
    by_name: by.name,
    token_id: by.tokenId,
    address: by.address,
    members: members.length === 0 ? null : JSON.stringify(members),
  });
}

export async function listAudit(
  sql: Sql,
  { fromMs, toMs, limit, after }: AuditSelection,
): Promise<readonly AuditEntry[]> {
  const rows = await sql.rows<object>(
    `SELECT rowid AS rowid, changed_ms AS timestamped, change, record_id, name, by_name AS "by", token_id, address,
        coalesce(members, '[]') AS members FROM audit
      WHERE (?1 IS NULL OR changed_ms >= ?1) AND (?2 IS NULL OR changed_ms < ?2) AND (?3 IS NULL OR rowid < ?3)
      ORDER BY rowid DESC LIMIT ?4`,
    fromMs,
    toMs,
    after,
    limit,
  );
  return rows.map(entryOf);
}

const entryOf = recordsOf<AuditEntry>(ANSWERS.AuditEntry.properties);

export async function removeAudit(sql: Sql, beforeMs: number): Promise<number> {
  return await sql.run(
    "DELETE FROM audit WHERE rowid IN (SELECT rowid FROM audit WHERE changed_ms < ? LIMIT ?)",
    beforeMs,
    MAX_REMOVED_ROWS,
  );
}
