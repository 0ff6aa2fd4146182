import type { ActionRevision, Schemata } from "../../domain/action.ts";
import { toIso } from "../../runtime/clock.ts";
import type { RevisionSelection } from "../actions.ts";
import type { Sql } from "./sql.ts";
import { isRowid } from "./text.ts";

interface RevisionRow {
  readonly action: string;
  readonly revision: number;
  readonly schemata: string;
  readonly created_ms: number;
}

const SELECT_REVISION = `
  SELECT a.action, r.revision, r.schemata, r.created_ms
  FROM action a JOIN action_revision r ON r.action_id = a.rowid
  WHERE a.action = ?`;

export function findRevision(sql: Sql, action: string, revision: number): ActionRevision | undefined {
  if (!isRowid(revision)) return undefined;
  const row = sql.first<RevisionRow>(`${SELECT_REVISION} AND r.revision = ?`, action, revision);
  return row === undefined ? undefined : revisionOf(row);
}

export function listRevisions(sql: Sql, query: RevisionSelection): readonly ActionRevision[] {
  const { action, limit, after = Number.MAX_SAFE_INTEGER } = query;
  const rows = sql.rows<RevisionRow>(
    `${SELECT_REVISION} AND r.revision < ? ORDER BY r.revision DESC LIMIT ?`,
    action,
    after,
    limit,
  );
  return rows.map(revisionOf);
}

function revisionOf(row: RevisionRow): ActionRevision {
  return {
    action: row.action,
    revision: row.revision,
    schemata: JSON.parse(row.schemata) as Schemata,
    timestamped: toIso(row.created_ms),
  };
}
