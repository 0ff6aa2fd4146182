import type { Action, Schemata } from "../../domain/action.ts";
import { EvregError } from "../../domain/error.ts";
import { toIso } from "../../runtime/clock.ts";
import type { ActionRecord, ActionRevision, StoredAction } from "../store.ts";
import type { Sql } from "./sql.ts";

interface ActionRow {
  readonly id: number;
  readonly action: string;
  readonly application: string;
  readonly schemata: string;
  readonly revision: number;
  readonly created_ms: number;
  readonly built_in: number;
}

const SELECT_ACTION = `
  SELECT a.rowid AS id, a.action, a.application, r.schemata, a.revision, a.created_ms, a.built_in
  FROM action a JOIN action_revision r ON r.action_id = a.rowid AND r.revision = a.revision`;

export function createAction(sql: Sql, input: ActionRecord, nowMs: number): Action {
  const taken = sql.first<{ application: string }>(
    "SELECT application FROM action WHERE action = ?",
    input.action,
  );
  if (taken !== undefined) {
    const message = `there is an action ${input.action} already, owned by ${taken.application}`;
    throw new EvregError("conflict", `action: ${message}.`, {
      field: "action",
      message,
      value: input.action,
    });
  }
  const row = sql.first<{ id: number }>(
    "INSERT INTO action (action, application, revision, created_ms) VALUES (?, ?, 1, ?) RETURNING rowid AS id",
    input.action,
    input.application,
    nowMs,
  );
  insertRevision(sql, row?.id ?? 0, 1, input.schemata, nowMs);
  return mustFind(sql, input.action);
}

export function findAction(sql: Sql, name: string): StoredAction | undefined {
  const row = sql.first<ActionRow>(`${SELECT_ACTION} WHERE a.action = ?`, name);
  return row === undefined
    ? undefined
    : { ...actionOf(row), actionId: row.id, isBuiltIn: row.built_in === 1 };
}

export function listActions(
  sql: Sql,
  query: { application?: string; applications?: readonly string[] },
): readonly Action[] {
  const rows = sql.rows<ActionRow>(
    `${SELECT_ACTION}
      WHERE (?1 IS NULL OR a.application = ?1)
        AND (?2 IS NULL OR a.application IN (SELECT value FROM json_each(?2)))
      ORDER BY a.action`,
    query.application ?? null,
    query.applications === undefined ? null : JSON.stringify(query.applications),
  );
  return rows.map(actionOf);
}

export function reviseAction(sql: Sql, input: ActionRevision, nowMs: number): Action | "stale" | undefined {
  const found = sql.first<{ id: number; revision: number; application: string }>(
    "SELECT rowid AS id, revision, application FROM action WHERE action = ?",
    input.action,
  );
  if (found === undefined) return undefined;
  if (found.revision !== input.basedOnRevision) return "stale";
  insertRevision(sql, found.id, found.revision + 1, input.schemata, nowMs);
  sql.run(
    "UPDATE action SET revision = ?, application = ? WHERE rowid = ?",
    found.revision + 1,
    input.application ?? found.application,
    found.id,
  );
  return mustFind(sql, input.action);
}

export function insertRevision(
  sql: Sql,
  actionId: number,
  revision: number,
  schemata: Schemata,
  nowMs: number,
): void {
  sql.run(
    "INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (?, ?, ?, ?)",
    actionId,
    revision,
    // Written this way, NUL and lone surrogates are escapes, so the text itself never holds either.
    JSON.stringify(schemata),
    nowMs,
  );
}

function mustFind(sql: Sql, name: string): Action {
  const row = sql.first<ActionRow>(`${SELECT_ACTION} WHERE a.action = ?`, name);
  if (row === undefined) throw new Error(`the action ${name} was written and is not there`);
  return actionOf(row);
}

function actionOf(row: ActionRow): Action {
  return {
    rowid: row.id,
    action: row.action,
    application: row.application,
    schemata: JSON.parse(row.schemata) as Schemata,
    revision: row.revision,
    timestamped: toIso(row.created_ms),
  };
}
