import type {
  ActionChange,
  ActionRecord,
  ActionSelection,
  RevisionSelection,
  StoredAction,
} from "../../catalog.ts";
import type { Action, ActionRevision, CompatibilityMode, Schemata } from "../../../domain/action.ts";
import { EvregError } from "../../../domain/error.ts";
import { nearest } from "../../../domain/words/nearest.ts";
import {
  SERVICE_APPLICATION,
  SERVICE_EVENT_NAMES,
  SERVICE_EVENT_SCHEMAS,
} from "../../../domain/service-events.ts";
import { ACTION } from "../../../model/action.ts";
import { ACTION_ANSWERS } from "../../../model/action-answers.ts";
import { answersOf, field } from "../../../model/field.ts";
import { insertNumbered, insertRow, recordsOf, type Sql, updateRow } from "../sql.ts";
import { matchNewAction } from "./matching.ts";

const actionOf = recordsOf<Action>(answersOf(ACTION));
const storedOf = recordsOf<StoredAction>({
  ...answersOf(ACTION),
  isBuiltIn: field.flag,
  version: field.ordinal,
  deprecatedMs: field.nullableCount,
  retiredMs: field.nullableCount,
});
const revisionOf = recordsOf<ActionRevision>(ACTION_ANSWERS.ActionRevision.properties);

const SELECT_ACTION = `
  SELECT a.rowid AS rowid, a.action, a.application, r.schemata, a.revision, a.compatibility,
    a.deprecated_ms IS NOT NULL AS deprecated, a.retired_ms IS NOT NULL AS retired, a.successor, a.created_ms AS timestamped,
    a.version, a.built_in AS isBuiltIn, a.deprecated_ms AS deprecatedMs, a.retired_ms AS retiredMs
  FROM action a JOIN action_revision r ON r.action_id = a.rowid AND r.revision = a.revision`;

/** @param input with `isBuiltIn` where evreg publishes its events */
export async function createAction(
  sql: Sql,
  input: ActionRecord & Partial<Pick<StoredAction, "isBuiltIn">>,
  nowMs: number,
): Promise<StoredAction> {
  const existing = await findAction(sql, input.action);
  if (existing !== undefined) {
    const { action, application } = existing;
    const message = `there is an action ${action} already, owned by ${application}`;
    throw new EvregError("conflict", `action: ${message}.`, { field: "action", message, value: action });
  }
  const id = await insertNumbered(sql, "action", {
    action: input.action,
    application: input.application,
    revision: 1,
    created_ms: nowMs,
    compatibility: input.compatibility ?? ACTION.compatibility.new.default,
    built_in: input.isBuiltIn ?? false,
  });
  await insertRevision(sql, id, 1, input.schemata, nowMs);
  await matchNewAction(sql, id, input.action);
  return (await findAction(sql, input.action))!;
}

export async function findAction(sql: Sql, name: string): Promise<StoredAction | undefined> {
  const row = await sql.first<object>(`${SELECT_ACTION} WHERE a.action = ?`, name);
  return row && storedOf(row);
}

export async function listActions(sql: Sql, query: ActionSelection): Promise<readonly Action[]> {
  const rows = await sql.rows<object>(
    `${SELECT_ACTION}
      WHERE (?1 IS NULL OR a.application IN list(?1: name text)) AND a.action > ?2
      ORDER BY a.action LIMIT ?3`,
    query.applications,
    query.after ?? "",
    query.limit ?? Number.MAX_SAFE_INTEGER,
  );
  return rows.map(actionOf);
}

/** Names are compared letter by letter, so a registry with more is looked through in part. */
const MAX_COMPARED_NAMES = 1_000;

export async function nearestAction(
  sql: Sql,
  name: string,
  applications: readonly string[] | undefined,
): Promise<string | undefined> {
  const names = await sql.column<string>(
    "SELECT action FROM action WHERE ?1 IS NULL OR application IN list(?1: name text) ORDER BY rowid LIMIT ?2",
    applications,
    MAX_COMPARED_NAMES,
  );
  return nearest(name, names);
}

export async function reviseAction(
  sql: Sql,
  input: ActionChange,
  nowMs: number,
): Promise<StoredAction | "stale" | undefined> {
  const before = await findAction(sql, input.action);
  if (before === undefined) return undefined;
  if (before.version !== input.expectedVersion) return "stale";
  const { schemata, application, settings = {}, acceptedIn } = input;
  const { compatibility = before.compatibility, successor = before.successor } = settings;
  // A schema or an application makes the next revision.
  const isRevised = schemata !== undefined || application !== undefined;
  const revision = before.revision + (isRevised ? 1 : 0);
  if (isRevised) {
    await insertRevision(sql, before.rowid, revision, schemata ?? before.schemata, nowMs, acceptedIn);
  }
  await updateRow(sql, "action", before.rowid, {
    version: before.version + 1,
    application: application ?? before.application,
    revision,
    compatibility,
    deprecated_ms: sinceWhen(settings.deprecated, before.deprecatedMs, nowMs),
    retired_ms: sinceWhen(settings.retired, before.retiredMs, nowMs),
    successor,
  });
  return (await findAction(sql, input.action))!;
}

/** Since when something is, where a change may say whether it is: what was so before keeps its time. */
function sinceWhen(is: boolean | undefined, beforeMs: number | null, nowMs: number): number | null {
  if (is === undefined) return beforeMs;
  return is ? (beforeMs ?? nowMs) : null;
}

async function insertRevision(
  sql: Sql,
  actionId: number,
  revision: number,
  schemata: Schemata,
  nowMs: number,
  compatibility?: CompatibilityMode,
): Promise<void> {
  await insertRow(sql, "action_revision", {
    action_id: actionId,
    revision,
    // In JSON, NUL and lone surrogates are escapes, so the text itself never holds either.
    schemata: JSON.stringify(schemata),
    created_ms: nowMs,
    compatibility,
  });
}

export async function listRevisions(sql: Sql, query: RevisionSelection): Promise<readonly ActionRevision[]> {
  const { action, limit, after = Number.MAX_SAFE_INTEGER } = query;
  const rows = await sql.rows<object>(
    `SELECT a.action, r.revision, r.schemata, r.compatibility, r.created_ms AS timestamped
      FROM action a JOIN action_revision r ON r.action_id = a.rowid
      WHERE a.action = ? AND r.revision < ? ORDER BY r.revision DESC LIMIT ?`,
    action,
    after,
    limit,
  );
  return rows.map(revisionOf);
}

/**
 * Makes sure that the file has the actions of the service's own events, with the schemas of this evreg. An action that a person
 * made of such a name in an earlier evreg stays as it is, and its service events are not published. Those that only an earlier
 * evreg published are retired.
 * @returns whether there was no action at all, as the data are made by that
 */
export async function ensureServiceActions(sql: Sql, nowMs: number): Promise<boolean> {
  const isNew = (await sql.value<0 | 1>("SELECT NOT EXISTS (SELECT 1 FROM action)")) === 1;
  for (const action of SERVICE_EVENT_NAMES) {
    const schemata = SERVICE_EVENT_SCHEMAS[action];
    const stored = await findAction(sql, action);
    if (stored === undefined) {
      const made = { action, application: SERVICE_APPLICATION, schemata, isBuiltIn: true };
      await createAction(sql, made, nowMs);
    } else if (stored.isBuiltIn && JSON.stringify(stored.schemata) !== JSON.stringify(schemata)) {
      await reviseAction(sql, { action, schemata, expectedVersion: stored.version }, nowMs);
    }
  }
  // Older ones published more.
  await sql.run(
    `UPDATE action SET retired_ms = ?1 WHERE action BETWEEN 'evreg.' AND 'evreg/' AND built_in = 1
      AND retired_ms IS NULL AND NOT action IN list(?2: name text)`,
    nowMs,
    SERVICE_EVENT_NAMES,
  );
  return isNew;
}
