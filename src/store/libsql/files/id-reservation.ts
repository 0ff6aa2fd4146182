import { LOCAL_ACTOR } from "../../../domain/audit.ts";
import { recordChange } from "../history/audit.ts";
import { loadLastNumbers } from "../events/timeline.ts";
import { withDatabase } from "../thread/connection.ts";
import type { Sql } from "../thread/sql.ts";
import { UNCHECKED_FORM } from "./older-forms.ts";
import { readForm } from "./schema.ts";

// A backup does not know what was published since it was made, and receivers remember those numbers. So restored data
// give none of the numbers that may have been given since: their own go on far beyond.

/**
 * The numbers that are passed over are more than an evreg can give: its one thread writes an event in 7 µs and a delivery in
 * 2.5, where that was measured. People and their scripts create the others. Each period is passed over once, as the next backup
 * is of the restored data; so 2^53, the end of what JavaScript counts, is 285 years away.
 */
const PER_SECOND = {
  event: 1_000_000,
  delivery: 1_000_000,
  action: 1_000,
  subscription: 1_000,
  replay: 1_000,
  token: 1_000,
};

type Numbered = keyof typeof PER_SECOND;

/** The largest rowids ever given, by table; 0, or no member, where there was none. */
export type Sequences = Readonly<Partial<Record<Numbered, number>>>;

const NUMBERED = Object.keys(PER_SECOND) as readonly Numbered[];

/**
 * A row takes at least so many bytes: its cell's pointer, its length and rowid, and the length of its header and of each
 * column.
 */
const MIN_ROW_BYTES = 8;
/** How much the clocks of two machines may differ. */
const CLOCK_DOUBT_MS = 10 * 60_000;
/** Nothing gives a million numbers a second for longer. A greater age is rather a wrong clock. */
const MAX_AGE_MS = 366 * 86_400_000;

/**
 * Moves the numbers of a restored file on, which is not in its place yet, and gives it an identity of its own. If this is
 * cut off, the file is not to be used.
 * @param replaced of the data that it takes the place of, so that none of these numbers is given again
 * @param name what the audit calls the file
 * @returns the numbers that the next ones follow
 */
export function moveNumbers(path: string, nowMs: number, replaced: Sequences = {}, name = path): Sequences {
  return withDatabase(path, (sql) => {
    // The journal is in memory, as nothing beside the file is to remain, and nobody would roll back.
    sql.run("PRAGMA journal_mode = MEMORY");
    sql.run("PRAGMA synchronous = FULL");
    // A file of form 10 does not keep who changed what, nor when its backup was begun.
    const isUnchecked = readForm(sql).version === UNCHECKED_FORM;
    const seconds = ageMs(sql, nowMs, isUnchecked) / 1_000;
    const sequences = loadSequences(sql);
    sql.run("BEGIN IMMEDIATE");
    setSequences(sql, (table) => {
      const next = (sequences[table] ?? 0) + Math.ceil(seconds * PER_SECOND[table]);
      return Math.max(next, replaced[table] ?? 0);
    });
    renewDataIdentity(sql);
    if (!isUnchecked) recordChange(sql, { change: "data.restored", id: null, name }, nowMs, LOCAL_ACTOR);
    sql.run("COMMIT");
    return loadSequences(sql);
  });
}

export function loadSequences(sql: Sql): Sequences {
  const rows = sql.rows<{ name: Numbered; seq: number }>("SELECT name, seq FROM sqlite_sequence");
  return Object.fromEntries(rows.map(({ name, seq }) => [name, seq]));
}

/** Makes the next row of each table get the number after this one. */
function setSequences(sql: Sql, last: (table: Numbered) => number): void {
  for (const table of NUMBERED) {
    sql.run("DELETE FROM sqlite_sequence WHERE name = ?", table);
    sql.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, last(table));
  }
}

/** Moves all numbers on by what so many unreadable bytes of the log may have given: each row takes at least its cell. */
export function passNumbers(sql: Sql, bytes: number): void {
  const sequences = loadSequences(sql);
  setSequences(sql, (table) => (sequences[table] ?? 0) + Math.ceil(bytes / MIN_ROW_BYTES));
}

/**
 * Answers how long ago the last number in the file may have been given; rather more than less. The backup says when it was
 * begun; where it does not, the time of its newest record counts.
 */
function ageMs(sql: Sql, nowMs: number, isUnchecked: boolean): number {
  const startedMs = isUnchecked
    ? 0
    : (sql.value<number | undefined>("SELECT started_ms FROM last_backup") ?? 0);
  const lastMs = Math.max(startedMs, loadLastNumbers(sql).lastMs);
  const since = lastMs || sql.value<number>("SELECT coalesce(max(created_ms), 0) FROM action");
  return Math.min(Math.max(nowMs - since + CLOCK_DOUBT_MS, CLOCK_DOUBT_MS), MAX_AGE_MS);
}

/** Stores in the file that a backup of it starts. */
export function noteBackup(sql: Sql, nowMs: number): number {
  return sql.run("INSERT OR REPLACE INTO last_backup (one, started_ms) VALUES (1, ?)", nowMs);
}

// Which data a file holds, whatever its path and its server's address: 128 random bits, made with the file. What is stored
// elsewhere about the data, such as a checkpoint, names them. Restored data are other data: they lack what was published
// since the backup was made.

export function dataIdentity(sql: Sql): string {
  const id = sql.value<string | undefined>("SELECT id FROM data_identity");
  if (id === undefined) throw new Error("the data file has no identity");
  return id;
}

export function renewDataIdentity(sql: Sql): void {
  sql.run("INSERT OR REPLACE INTO data_identity (one, id) VALUES (1, lower(hex(randomblob(16))))");
}
