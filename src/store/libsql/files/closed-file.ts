import { statSync } from "node:fs";
import { dirname } from "node:path";
import { EvregError, messageOf } from "../../../domain/error.ts";
import { toIso } from "../../../runtime/clock.ts";
import { LARGE_CACHE, withDatabase } from "../connection.ts";
import type { EncryptionKeys } from "../../secret-cipher.ts";
import { engineFailure, type SyncSql } from "../statements.ts";
import { isEvregs, mustBeWritable } from "./data-folder.ts";
import { forEachPayload, mustBeKnown, UNCHECKED_FORM } from "./older-forms.ts";
import { vaultsOf } from "./open-file.ts";
import { FORM, mustBeAsMade, readForm } from "./schema.ts";

/** What a whole data file holds. */
export interface FileFacts {
  readonly bytes: number;
  /** The form it has, and the one that this evreg brings it to. */
  readonly form: number;
  readonly latest: number;
  readonly actions: number;
  readonly subscriptions: number;
  /** The number of the newest event; 0 when there is none. */
  readonly last_event: number;
  readonly last_event_at: string | null;
  /** How many deliveries of active subscriptions are unfinished: a server on the data sends them. */
  readonly waiting_deliveries: number;
  readonly tokens: number;
  readonly encrypted: boolean;
  /** Events whose payloads do not fit their checksums, which those of old versions lack; of very many, the first thousand. */
  readonly damaged_events: readonly number[];
}

export interface ExamineOptions {
  /** What messages call the file, if not by its path. */
  readonly name?: string;
  /** The keys that must open the file's secrets; these are not checked when this is left out. */
  readonly encryption?: { readonly keys: EncryptionKeys | undefined };
}

const MAX_PROBLEMS = 5;
const MAX_DAMAGED = 1_000;

/**
 * Reads every page of a data file, compares all indexes with their tables, all rows with the CHECKs of their tables and all
 * payloads with their checksums. Opens it alone, so that nobody changes it meanwhile. Blocks its thread for
 * seconds a GB.
 * @throws EvregError `invalid` when it is damaged, not evreg's, or a newer evreg's; `conflict` when another process has
 * it; `usage` for a key that is missing or wrong; `unavailable` where it cannot be written to or opened
 */
export async function examineFile(
  path: string,
  { name = path, encryption }: ExamineOptions = {},
): Promise<FileFacts> {
  // The engine opens nothing where it cannot write beside it, and does not say why.
  for (const written of [path, dirname(path)]) mustBeWritable(written);
  if (!isEvregs(path)) {
    const message = `${name} is no data file or backup of evreg, or its beginning is damaged.`;
    throw new EvregError("invalid", message, { file: name });
  }
  try {
    return await withDatabase(path, async (sql) => {
      sql.run("PRAGMA query_only = ON");
      sql.run(`PRAGMA ${LARGE_CACHE}`);
      const form = readForm(sql);
      mustBeKnown("invalid", name, form);
      mustBeAsMade(sql, name, form);
      mustBeWhole(sql, name);
      if (encryption !== undefined) vaultsOf(sql, name, encryption.keys);
      return { ...factsOf(sql, path, form), damaged_events: await damagedEvents(sql, form) };
    });
  } catch (error) {
    throw explained(error, name);
  }
}

function mustBeWhole(sql: SyncSql, name: string): void {
  // One problem that the engine names may be several lines.
  const found = sql
    .column<string>(`PRAGMA integrity_check(${MAX_PROBLEMS})`)
    .join("\n")
    .split(/\s*\n\s*/);
  const dangling = sql.column<string>(
    `SELECT "table" || ' ' || coalesce(rowid, 'row') || ' without its ' || parent AS finding FROM pragma_foreign_key_check
      LIMIT ${MAX_PROBLEMS}`,
  );
  const problems = [...found.filter((line) => line !== "" && line !== "ok"), ...dangling];
  if (problems.length > 0) throw damaged(name, problems.join("; "));
}

async function damagedEvents(sql: SyncSql, form: number): Promise<readonly number[]> {
  if (form === UNCHECKED_FORM) return [];
  const events: number[] = [];
  await forEachPayload(sql, form, (payloads) => {
    for (const [event, payload] of payloads)
      if (payload === null && events.length < MAX_DAMAGED) events.push(event);
  });
  return events;
}

function factsOf(sql: SyncSql, path: string, form: number): Omit<FileFacts, "damaged_events"> {
  const last = sql.first<{ id: number; ms: number }>(
    "SELECT rowid AS id, timestamped_ms AS ms FROM event ORDER BY rowid DESC LIMIT 1",
  );
  return {
    bytes: statSync(path).size,
    form,
    latest: FORM,
    actions: sql.value("SELECT count(*) FROM action"),
    subscriptions: sql.value("SELECT count(*) FROM subscription WHERE deleted_ms IS NULL"),
    last_event: last?.id ?? 0,
    last_event_at: last === undefined || Number.isNaN(new Date(last.ms).getTime()) ? null : toIso(last.ms),
    waiting_deliveries: sql.value(
      `SELECT count(*) FROM subscription s JOIN delivery d ON d.subscription_id = s.rowid
        WHERE s.active = 1 AND s.deleted_ms IS NULL AND d.due_ms IS NOT NULL`,
    ),
    tokens: sql.value("SELECT count(*) FROM token"),
    encrypted: sql.value<number>("SELECT count(*) FROM encryption") > 0,
  };
}

function damaged(name: string, why: string, cause?: unknown): EvregError {
  const message = `${name} is damaged: ${why}. What is in it cannot be relied on; go back to a backup that is whole.`;
  return new EvregError("invalid", message, { file: name }, { cause });
}

function explained(error: unknown, name: string): unknown {
  const failure = engineFailure(error, "statement");
  if (failure === undefined) return error;
  if (failure.kind === "damaged") return damaged(name, messageOf(failure.cause), error);
  if (failure.kind === "in_use") {
    return new EvregError("conflict", `${name} is in use by another process.`, { file: name });
  }
  const what = `${name} could not be looked through: ${failure.message}.`;
  return new EvregError("unavailable", what, { file: name }, { cause: error });
}

/**
 * Moves a data file's log into it.
 * @throws EvregError `conflict` when another process has it; as `examineFile`
 */
export async function settleFile(path: string): Promise<void> {
  try {
    await withDatabase(path, (sql) => sql.run("PRAGMA wal_checkpoint(TRUNCATE)"));
  } catch (error) {
    throw explained(error, path);
  }
}
