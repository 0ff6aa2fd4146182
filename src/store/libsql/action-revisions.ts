import type { ActionRevision, Schemata } from "../../domain/action.ts";
import type { CompatibilityMode } from "../../domain/compatibility.ts";
import { toIso } from "../../runtime/clock.ts";
import type { RevisionSelection } from "../actions.ts";
import type { Sql } from "./sql.ts";
import { isRowid, parseKept } from "./text.ts";

interface RevisionRow {
  readonly action: string;
  readonly revision: number;
  readonly schemata: string;
  readonly created_ms: number;
  readonly compatibility: CompatibilityMode | null;
  readonly breaks: number | null;
}

const SELECT_REVISION = `
  SELECT a.action, r.revision, r.schemata, r.created_ms, r.compatibility, r.breaks
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
  const { compatibility, breaks } = row;
  return {
    action: row.action,
    revision: row.revision,
    schemata: parseKept(row.schemata) as Schemata,
    admission: compatibility === null || breaks === null ? null : { compatibility, breaks },
    timestamped: toIso(row.created_ms),
  };
}
