import { loadLastIds } from "../events/record.ts";
import { openDatabase } from "../thread/connection.ts";
import type { Numbered, Sequences } from "../thread/protocol.ts";
import { type Sql, Statements } from "../thread/sql.ts";
import { impossible, impossibleNumbers } from "./row-limits.ts";

// A backup does not know what was published since it was made, and receivers remember the numbers of that. So what is
// restored gives out none of the numbers that may have been given out since: its own go on far beyond.
/**
 * More than an evreg can give out: its one thread writes an event in 7 µs and a delivery in 2.5, where that was measured.
 * The rest is made one by one, by people and their scripts. An age is passed over once only, as the next backup is of what
 * was restored; so 2^53, the end of what JavaScript counts, is 285 years away.
 */
const PER_SECOND = {
  event: 1_000_000,
  delivery: 1_000_000,
  action: 1_000,
  subscription: 1_000,
  replay: 1_000,
  token: 1_000,
} as const satisfies Record<Numbered, number>;

/** A cell's place, its length and rowid, and the length of its header and of each column. */
const LEAST_ROW_BYTES = 8;
/** By so much the clocks of two machines may differ. */
const CLOCK_DOUBT_MS = 10 * 60_000;
/** Nothing gives out a million a second for longer; an age beyond this is rather a wrong clock. */
const LONGEST_AGE_MS = 366 * 86_400_000;

/**
 * Moves the numbers of a restored file on, which is not in its place yet, and gives it an identity of its own. If this is
 * cut off, the file is not to be used.
 * @param replaced of the data that it takes the place of, so that none of these numbers is given again
 * @param name what messages call the file
 * @returns the numbers that the next ones follow
 */
export function moveNumbers(path: string, nowMs: number, replaced: Sequences = {}, name = path): Sequences {
  const { pool } = openDatabase(path);
  try {
    const sql = new Statements(pool.acquireSync());
    sql.run("PRAGMA locking_mode = EXCLUSIVE");
    // Nothing beside the file is to be left, and nobody would go back.
    sql.run("PRAGMA journal_mode = MEMORY");
    sql.run("PRAGMA synchronous = FULL");
    const seconds = ageMs(sql, nowMs) / 1_000;
    const given = loadSequences(sql);
    const moved = Object.entries(PER_SECOND).map(([table, perSecond]) => {
      const numbered = table as Numbered;
      const beyond = (given[numbered] ?? 0) + Math.ceil(seconds * perSecond);
      return [numbered, Math.max(beyond, replaced[numbered] ?? 0)] as const;
    });
    sql.run("BEGIN IMMEDIATE");
    setSequences(sql, Object.fromEntries(moved));
    // Moving on may have come to the end of what can be given; a start would refuse that.
    const found = impossibleNumbers(sql);
    if (found.length > 0) throw impossible(name, found);
    renewDataIdentity(sql);
    sql.run("COMMIT");
    return loadSequences(sql);
  } finally {
    pool.close();
  }
}

export function loadSequences(sql: Sql): Sequences {
  const rows = sql.rows<{ name: string; seq: number }>("SELECT name, seq FROM sqlite_sequence");
  return Object.fromEntries(
    rows.filter(({ name }) => name in PER_SECOND).map(({ name, seq }) => [name, seq]),
  );
}

/** The next row of each gets the number behind. A table that the file does not have yet is left out. */
function setSequences(sql: Sql, sequences: Sequences): void {
  const wanted = JSON.stringify(sequences);
  sql.run("DELETE FROM sqlite_sequence WHERE name IN (SELECT key FROM json_each(?))", wanted);
  sql.run(
    `INSERT INTO sqlite_sequence (name, seq)
      SELECT j.key, j.value FROM json_each(?) AS j
      WHERE EXISTS (SELECT 1 FROM sqlite_schema AS t WHERE t.type = 'table' AND t.name = j.key)`,
    wanted,
  );
}

/**
 * Moves all numbers on by what so many pages of the log may have given out that cannot be read any more: no row takes
 * less than its cell in a page.
 */
export function passNumbers(sql: Sql, bytes: number): void {
  const given = loadSequences(sql);
  const rows = Math.ceil(bytes / LEAST_ROW_BYTES);
  const moved = Object.keys(PER_SECOND).map((name) => [name, (given[name as Numbered] ?? 0) + rows] as const);
  setSequences(sql, Object.fromEntries(moved));
}

/** How long ago the last number may have been given that is in the file; a little more, and never less. */
function ageMs(sql: Sql, nowMs: number): number {
  const age = nowMs - lastMs(sql) + CLOCK_DOUBT_MS;
  return Math.min(Math.max(age, CLOCK_DOUBT_MS), LONGEST_AGE_MS);
}

/** When the backup was begun; in one from before this was noted, the time of the last thing it has. */
function lastMs(sql: Sql): number {
  // Up to version 11 of the schema it is in `probe`, which also counted trial writes.
  const isOld = hasTable(sql, "probe");
  const startedMs =
    sql.first<{ ms: number }>(
      isOld ? "SELECT tried AS ms FROM probe" : "SELECT started_ms AS ms FROM last_backup",
    )?.ms ?? 0;
  const last = Math.max(startedMs, loadLastIds(sql).lastMs);
  if (last > 0) return last;
  return sql.first<{ ms: number }>("SELECT coalesce(max(created_ms), 0) AS ms FROM action")!.ms;
}

/** Stores in the file that a backup of it starts. */
export function noteBackup(sql: Sql, nowMs: number): number {
  return sql.run("INSERT OR REPLACE INTO last_backup (one, started_ms) VALUES (1, ?)", nowMs);
}

// Which data a file holds, wherever it lies and whatever address a server has it at: 128 random bits, made with the file.
// Whoever keeps notes about data outside of it, such as a checkpoint, knows by it whether they are about this data. What
// is restored is other data: it lacks what was published since its backup was made.

export function dataIdentity(sql: Sql): string {
  const row = sql.first<{ id: string }>("SELECT id FROM data_identity");
  if (row === undefined) throw new Error("the data file has no identity");
  return row.id;
}

/** A file of a form that has none yet gets its own with the next start. */
function renewDataIdentity(sql: Sql): void {
  if (!hasTable(sql, "data_identity")) return;
  sql.run("INSERT OR REPLACE INTO data_identity (one, id) VALUES (1, lower(hex(randomblob(16))))");
}

function hasTable(sql: Sql, name: string): boolean {
  return sql.first("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", name) !== undefined;
}
