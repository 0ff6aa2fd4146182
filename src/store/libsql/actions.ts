import type { Action, ActionSettings, Admission, Schemata } from "../../domain/action.ts";
import { DEFAULT_RULE } from "../../domain/compatibility.ts";
import type { CompatibilityRule } from "../../domain/compatibility.ts";
import { EvregError } from "../../domain/error.ts";
import { toIso } from "../../runtime/clock.ts";
import type { ActionChange, ActionRecord, ActionSelection, StoredAction } from "../actions.ts";
import type { Sql } from "./sql.ts";
import { parseKept } from "./text.ts";

interface ActionRow extends SettingsRow {
  readonly id: number;
  readonly action: string;
  readonly application: string;
  readonly schemata: string;
  readonly revision: number;
  readonly edition: number;
  readonly created_ms: number;
  readonly built_in: number;
}

interface SettingsRow extends CompatibilityRule {
  readonly deprecated_ms: number | null;
  readonly retired_ms: number | null;
  readonly successor: string | null;
}

const SETTINGS = "a.compatibility, a.compatibility_against, a.deprecated_ms, a.retired_ms, a.successor";

const SELECT_ACTION = `
  SELECT a.rowid AS id, a.action, a.application, r.schemata, a.revision, a.edition, a.created_ms, a.built_in, ${SETTINGS}
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
  const rule = { ...DEFAULT_RULE, ...input };
  const row = sql.first<{ id: number }>(
    `INSERT INTO action (action, application, revision, created_ms, compatibility, compatibility_against)
      VALUES (?, ?, 1, ?, ?, ?) RETURNING rowid AS id`,
    input.action,
    input.application,
    nowMs,
    rule.compatibility,
    rule.compatibility_against,
  );
  insertRevision(sql, row?.id ?? 0, 1, input.schemata, nowMs);
  return mustFind(sql, input.action);
}

export function findAction(sql: Sql, name: string): StoredAction | undefined {
  const row = sql.first<ActionRow>(`${SELECT_ACTION} WHERE a.action = ?`, name);
  if (row === undefined) return undefined;
  const { id: actionId, edition, deprecated_ms: deprecatedMs } = row;
  return { ...actionOf(row), actionId, edition, deprecatedMs, isBuiltIn: row.built_in === 1 };
}

export function listActions(sql: Sql, query: ActionSelection): readonly Action[] {
  const rows = sql.rows<ActionRow>(
    `${SELECT_ACTION}
      WHERE (?1 IS NULL OR a.application = ?1)
        AND (?2 IS NULL OR a.application IN (SELECT value FROM json_each(?2)))
        AND a.action > ?3
      ORDER BY a.action LIMIT ?4`,
    query.application ?? null,
    query.applications === undefined ? null : JSON.stringify(query.applications),
    query.after ?? "",
    query.limit ?? -1,
  );
  return rows.map(actionOf);
}

export function reviseAction(sql: Sql, input: ActionChange, nowMs: number): Action | "stale" | undefined {
  const found = sql.first<ActionRow>(`${SELECT_ACTION} WHERE a.action = ?`, input.action);
  if (found === undefined) return undefined;
  if (found.edition !== input.basedOnEdition) return "stale";
  const { schemata, admission, application, settings = {} } = input;
  let { revision } = found;
  if (schemata !== undefined || application !== undefined) {
    revision += 1;
    insertRevision(sql, found.id, revision, schemata ?? parsed(found.schemata), nowMs, admission);
  }
  const next = settingsAfter(found, settings, nowMs);
  sql.run(
    `UPDATE action SET edition = edition + 1, revision = ?, application = ?, compatibility = ?,
      compatibility_against = ?, deprecated_ms = ?, retired_ms = ?, successor = ? WHERE rowid = ?`,
    revision,
    application ?? found.application,
    next.compatibility,
    next.compatibility_against,
    next.deprecated_ms,
    next.retired_ms,
    next.successor,
    found.id,
  );
  return mustFind(sql, input.action);
}

/** What was true already keeps its time. */
function settingsAfter(found: SettingsRow, settings: Partial<ActionSettings>, nowMs: number): SettingsRow {
  const since = (is: boolean | undefined, before: number | null) =>
    is === undefined ? before : is ? (before ?? nowMs) : null;
  return {
    compatibility: settings.compatibility ?? found.compatibility,
    compatibility_against: settings.compatibility_against ?? found.compatibility_against,
    deprecated_ms: since(settings.deprecated, found.deprecated_ms),
    retired_ms: since(settings.retired, found.retired_ms),
    successor: settings.successor === undefined ? found.successor : settings.successor,
  };
}

export function insertRevision(
  sql: Sql,
  actionId: number,
  revision: number,
  schemata: Schemata,
  nowMs: number,
  admission?: Admission,
): void {
  sql.run(
    `INSERT INTO action_revision (action_id, revision, schemata, created_ms, compatibility, breaks)
      VALUES (?, ?, ?, ?, ?, ?)`,
    actionId,
    revision,
    // Written this way, NUL and lone surrogates are escapes, so the text itself never holds either.
    JSON.stringify(schemata),
    nowMs,
    admission?.compatibility ?? null,
    admission?.breaks ?? null,
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
    schemata: parsed(row.schemata),
    revision: row.revision,
    compatibility: row.compatibility,
    compatibility_against: row.compatibility_against,
    deprecated: row.deprecated_ms !== null,
    retired: row.retired_ms !== null,
    successor: row.successor,
    timestamped: toIso(row.created_ms),
  };
}

function parsed(schemata: string): Schemata {
  return parseKept(schemata) as Schemata;
}
