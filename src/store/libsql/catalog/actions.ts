import type {
  ActionChange,
  ActionRecord,
  ActionSelection,
  RevisionSelection,
  StoredAction,
} from "../../catalog.ts";
import {
  type Action,
  type ActionRevision,
  type ActionSettings,
  type Admission,
  type CompatibilityMode,
  type CompatibilityRule,
  DEFAULT_RULE,
  type Schemata,
} from "../../../domain/action.ts";
import { EvregError } from "../../../domain/error.ts";
import {
  SERVICE_APPLICATION,
  SERVICE_EVENT_NAMES,
  SERVICE_EVENT_SCHEMAS,
  type ServiceEventName,
} from "../../../domain/service-events.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { Connection } from "../thread/connection.ts";
import { isRowid, parseKept, type Sql } from "../thread/sql.ts";

interface ActionRow extends SettingsRow {
  readonly id: number;
  readonly action: string;
  readonly application: string;
  readonly schemata: string;
  readonly revision: number;
  readonly version: number;
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
  SELECT a.rowid AS id, a.action, a.application, r.schemata, a.revision, a.version, a.created_ms, a.built_in, ${SETTINGS}
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
  const { id: actionId, version, deprecated_ms: deprecatedMs } = row;
  return { ...actionOf(row), actionId, version, deprecatedMs, isBuiltIn: row.built_in === 1 };
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
  if (found.version !== input.expectedVersion) return "stale";
  const { schemata, admission, application, settings = {} } = input;
  let { revision } = found;
  if (schemata !== undefined || application !== undefined) {
    revision += 1;
    insertRevision(sql, found.id, revision, schemata ?? parsed(found.schemata), nowMs, admission);
  }
  const next = settingsAfter(found, settings, nowMs);
  sql.run(
    `UPDATE action SET version = version + 1, revision = ?, application = ?, compatibility = ?,
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

function insertRevision(
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

interface StoredServiceAction {
  readonly id: number;
  readonly revision: number;
  readonly built_in: number;
  readonly schemata: string;
}

/**
 * Makes sure that the file has the actions of the service's own events, with the schemas of this evreg. Writes nothing
 * where it has. An action of such a name that a person created in an earlier evreg stays as it is, with whoever
 * publishes and receives it: answers the names that are taken so, whose events are not told.
 */
export function ensureServiceActions(connection: Connection, nowMs: number): readonly ServiceEventName[] {
  const found = SERVICE_EVENT_NAMES.map((name) => [name, find(connection.read, name)] as const);
  const outdated = found.filter(
    ([name, kept]) => kept === undefined || (kept.built_in === 1 && kept.schemata !== schemaText(name)),
  );
  if (outdated.length > 0) {
    connection.write((sql) => {
      for (const [name, kept] of outdated) {
        if (kept === undefined) create(sql, name, nowMs);
        else revise(sql, name, kept, nowMs);
      }
    });
  }
  return found.flatMap(([name, kept]) => (kept?.built_in === 0 ? [name] : []));
}

function find(sql: Sql, name: ServiceEventName): StoredServiceAction | undefined {
  return sql.first<StoredServiceAction>(
    `SELECT a.rowid AS id, a.revision, a.built_in, r.schemata
      FROM action AS a JOIN action_revision AS r ON r.action_id = a.rowid AND r.revision = a.revision
      WHERE a.action = ?`,
    name,
  );
}

function create(sql: Sql, name: ServiceEventName, nowMs: number): void {
  const { id } = sql.first<{ id: number }>(
    `INSERT INTO action (action, application, revision, created_ms, built_in) VALUES (?, ?, 1, ?, 1)
      RETURNING rowid AS id`,
    name,
    SERVICE_APPLICATION,
    nowMs,
  )!;
  insertRevision(sql, id, 1, SERVICE_EVENT_SCHEMAS[name], nowMs);
}

function revise(
  sql: Sql,
  name: ServiceEventName,
  { id, revision }: StoredServiceAction,
  nowMs: number,
): void {
  insertRevision(sql, id, revision + 1, SERVICE_EVENT_SCHEMAS[name], nowMs);
  sql.run("UPDATE action SET revision = ?, version = version + 1 WHERE rowid = ?", revision + 1, id);
}

/** As `insertRevision` writes it. */
function schemaText(name: ServiceEventName): string {
  return JSON.stringify(SERVICE_EVENT_SCHEMAS[name]);
}
