import {
  SERVICE_APPLICATION,
  SERVICE_EVENT_NAMES,
  SERVICE_EVENT_SCHEMAS,
  type ServiceEventName,
} from "../../domain/service-events.ts";
import { insertRevision } from "./actions.ts";
import type { Connection } from "./connection.ts";
import type { Sql } from "./sql.ts";

interface Kept {
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
export function keepServiceActions(connection: Connection, nowMs: number): readonly ServiceEventName[] {
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

function find(sql: Sql, name: ServiceEventName): Kept | undefined {
  return sql.first<Kept>(
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

function revise(sql: Sql, name: ServiceEventName, { id, revision }: Kept, nowMs: number): void {
  insertRevision(sql, id, revision + 1, SERVICE_EVENT_SCHEMAS[name], nowMs);
  sql.run("UPDATE action SET revision = ?, edition = edition + 1 WHERE rowid = ?", revision + 1, id);
}

/** As `insertRevision` writes it. */
function schemaText(name: ServiceEventName): string {
  return JSON.stringify(SERVICE_EVENT_SCHEMAS[name]);
}
