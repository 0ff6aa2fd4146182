import { LOCAL_ACTOR } from "../../../domain/audit.ts";
import { recordChange } from "../../sql/history/audit.ts";
import { withDatabase } from "../connection.ts";
import type { Sql } from "../../sql/sql.ts";
import type { SyncSql } from "../statements.ts";
import { UNCHECKED_FORM } from "./older-forms.ts";
import { readForm } from "./schema.ts";

// A backup does not know what was published since it was made, and receivers remember those numbers. So restored data give
// none of the numbers that may have been given by anybody until now.

/**
 * Restored data go on at so many numbers for each second since `FIRST_MS`. That is more than an evreg can give: its one thread
 * writes an event in 7 µs and a delivery in 2.5, where that was measured, and people and their scripts create the others. So
 * whatever data were restored before, and whenever their backup was made, they have not come as far. 2^53, the end of what
 * JavaScript counts, is 285 years away.
 */
const PER_SECOND = {
  event: 1_000_000,
  delivery: 1_000_000,
  action: 1_000,
  subscription: 1_000,
  replay: 1_000,
  token: 1_000,
};

/** No evreg gave a number before. */
const FIRST_MS = Date.UTC(2026, 0, 1);
/** Numbers go on by so many seconds more, as the clocks of two machines may differ, or one may be far behind. */
const CLOCK_DOUBT_S = 600;
/** These are more rows than all transactions that a power cut may take. */
const MAX_DROPPED_ROWS = 1_000_000;

const NUMBERED = Object.keys(PER_SECOND) as readonly (keyof typeof PER_SECOND)[];

/**
 * Moves the numbers of a restored file on, which is not in its place yet, and gives it an identity of its own. If this is
 * cut off, the file is not to be used.
 * @param name what the audit calls the file
 * @returns the number that the next event follows
 */
export async function moveNumbers(path: string, nowMs: number, name = path): Promise<number> {
  return await withDatabase(path, async (sql) => {
    sql.run("PRAGMA synchronous = FULL");
    // The journal is in memory, as nothing beside the file is to remain, and nobody would roll back. It ends the log, too.
    const mode = sql.value("PRAGMA journal_mode = MEMORY");
    if (mode !== "memory") throw new Error(`the log could not be ended (the mode is ${String(mode)})`);
    sql.run("BEGIN IMMEDIATE");
    const seconds = Math.max(Math.ceil((nowMs - FIRST_MS) / 1_000), 0);
    for (const table of NUMBERED) {
      const rate = PER_SECOND[table];
      const last = Math.max(await lastNumber(sql, table), seconds * rate);
      await setLastNumber(sql, table, last + CLOCK_DOUBT_S * rate);
    }
    renewDataIdentity(sql);
    // A file of form 10 does not keep who changed what.
    if (readForm(sql) !== UNCHECKED_FORM) {
      await recordChange(sql, { change: "data.restored", id: null, name }, nowMs, LOCAL_ACTOR);
    }
    sql.run("COMMIT");
    return await lastNumber(sql, "event");
  });
}

/** The largest rowid that the table ever gave; 0 where it gave none. */
export async function lastNumber(sql: Sql, table: string): Promise<number> {
  return (await sql.value<number | undefined>("SELECT seq FROM sqlite_sequence WHERE name = ?", table)) ?? 0;
}

/** Makes the next row of the table get the number after this one. */
export async function setLastNumber(sql: Sql, table: string, last: number): Promise<void> {
  await sql.run("DELETE FROM sqlite_sequence WHERE name = ?", table);
  if (last > 0) await sql.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, last);
}

/** Moves all numbers on by what the transactions at the end of the log may have given that cannot be read. */
export async function passDropped(sql: Sql): Promise<void> {
  for (const table of NUMBERED) {
    await setLastNumber(sql, table, (await lastNumber(sql, table)) + MAX_DROPPED_ROWS);
  }
}

// Which data a file holds, whatever its path and its server's address: 128 random bits, made with the file. What is stored
// elsewhere about the data, such as a checkpoint, names them. Restored data are other data: they lack what was published
// since the backup was made.

export function dataIdentity(sql: SyncSql): string {
  const id = sql.value<string | undefined>("SELECT id FROM data_identity");
  if (id === undefined) throw new Error("the data file has no identity");
  return id;
}

export function renewDataIdentity(sql: SyncSql): void {
  sql.run("INSERT OR REPLACE INTO data_identity (one, id) VALUES (1, lower(hex(randomblob(16))))");
}
