import { createHash } from "node:crypto";
import { EvregError, messageOf } from "../../domain/error.ts";
import { EngineFailure, type Sql } from "../sql/sql.ts";
import {
  keyBeyond,
  keysOf,
  type KeyRange,
  MOVED_TABLES,
  type MovedTable,
  removeRows,
  rowsIn,
  sizeOf,
  startOf,
  storeRows,
} from "./moved-tables.ts";

export interface MoveEngine {
  /** Answers the checksum of the rows in a range: the same where they are the same, in whichever engine. */
  checksum(sql: Sql, table: MovedTable, range: KeyRange): Promise<string>;
  /** Answers the largest number that a table ever gave a row; 0 where it gave none. */
  lastNumber(sql: Sql, table: string): Promise<number>;
  /** Makes the next row of a table get the number after this one. */
  setLastNumber(sql: Sql, table: MovedTable, last: number): Promise<void>;
}

// A move needs two places of data, one of each engine. What each can do is the same.

/** Where data are moved from: one state of them, which nobody changes meanwhile. */
export interface OpenSource {
  readonly engine: MoveEngine;
  readonly sql: Sql;
  readonly dataId: string;
  /** Whether nobody serves the data while this is open, so that the move can come to its end. */
  readonly isAtRest: boolean;
  /** The name under which the data are kept that were moved away before; they are only to complete that move. */
  readonly kept?: string | undefined;
  /** Has servers find no data here any more. Answers under which name they are kept. */
  leave(): Promise<string>;
}

/** Where data are moved to, while it is open. Servers do not find them there before they have arrived. */
export interface OpenTarget {
  /** What messages call it. */
  readonly where: string;
  readonly engine: MoveEngine;
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** Has servers find them. */
  arrive(): Promise<void>;
  close(): Promise<void>;
}

/** What a target has to know of the source. */
export type SourceFacts = Pick<OpenSource, "dataId" | "kept">;

/**
 * Refuses to move once more what was moved away before, where this is not the end of that move: others may have gone on with it.
 * @throws EvregError `conflict`
 */
export function mustBeBegun(isBegun: boolean, { kept }: SourceFacts, where: string): void {
  if (isBegun || kept === undefined) return;
  const message = `The data were moved away already and are kept as ${kept}, and no move of them into ${where} is left to be finished. Use them where they are now, or move them on from there.`;
  throw new EvregError("conflict", message);
}

/**
 * Gives data that are only begun their identity.
 * @param advice what to do where these are other data
 * @throws EvregError `conflict` where they are
 */
export async function identify(sql: Sql, dataId: string, where: string, advice: string): Promise<void> {
  // The actions are moved first, and there are always some.
  await sql.run(
    `INSERT INTO data_identity (one, id) VALUES (1, ?)
      ON CONFLICT (one) DO UPDATE SET id = excluded.id WHERE NOT EXISTS (SELECT 1 FROM action)`,
    dataId,
  );
  if ((await sql.value<string>("SELECT id FROM data_identity")) === dataId) return;
  const message = `In ${where} a move of other data was begun. To give that one up, ${advice}; or name another place with --to.`;
  throw new EvregError("conflict", message);
}

/**
 * How far a move is, and whether it is to end: memory that its thread shares with the one that started it, which can then show it
 * at any time.
 */
export class MoveProgress {
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  constructor(memory = new SharedArrayBuffer(3 * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new BigInt64Array(memory);
  }

  /** How many rows there are in all; 0 until that is known. */
  get rows(): number {
    return Number(Atomics.load(this.#cells, 0));
  }

  /** How many of them are the same in both places by now. */
  get same(): number {
    return Number(Atomics.load(this.#cells, 1));
  }

  begin(rows: number): void {
    Atomics.store(this.#cells, 0, BigInt(rows));
  }

  passed(rows: number): void {
    Atomics.add(this.#cells, 1, BigInt(rows));
  }

  /** Has the move end before its next chunk. */
  end(): void {
    Atomics.store(this.#cells, 2, 1n);
  }

  /** @throws EvregError `unavailable` once it is to end */
  mustGoOn(): void {
    if (Atomics.load(this.#cells, 2) === 0n) return;
    throw new EvregError("unavailable", "The move was interrupted.");
  }
}

export interface PassResult {
  readonly events: number;
  readonly deliveries: number;
  /** How many rows all tables have together. */
  readonly rows: number;
  /** How many of them were missing or others in the target, or were there and should not be. */
  readonly changed: number;
  /** The checksum of everything, which the same data have in both engines. */
  readonly sha256: string;
}

/**
 * Makes the target hold what the source does, and nothing else. Each chunk of rows has one checksum in either; where these
 * differ, the rows that differ are put right in one transaction, which is committed only when the checksums are the same. So a
 * pass that was cut off anywhere is begun again, and passes over what is the same; and one that has come to its end has shown that
 * all is.
 * @throws EvregError `invalid` for rows that the target cannot hold
 */
export async function makeSame(
  source: OpenSource,
  target: OpenTarget,
  progress: MoveProgress,
): Promise<PassResult> {
  const counts = await countsOf(source.sql);
  progress.begin(sum(counts));
  const whole = createHash("sha256");
  let changed = 0;
  for (const table of MOVED_TABLES) {
    for (let after: readonly number[] | undefined = startOf(table); after !== undefined;) {
      progress.mustGoOn();
      const { range, rows } = await nextChunk(source.sql, table, after);
      const chunk = await makeChunkSame(source, target, table, range);
      changed += chunk.changed;
      whole.update(`${table.name} ${chunk.checksum}\n`);
      progress.passed(rows);
      after = range.to;
    }
  }
  const stored = await target.transaction(countsOf);
  for (const { name } of MOVED_TABLES) {
    if (stored.get(name) !== counts.get(name)) {
      throw new Error(
        `the table ${name} has ${stored.get(name)} rows in the place of ${counts.get(name)}, although all checksums are the same`,
      );
    }
  }
  return {
    events: counts.get("event")!,
    deliveries: counts.get("delivery")!,
    rows: sum(counts),
    changed,
    sha256: whole.digest("hex"),
  };
}

async function countsOf(sql: Sql): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const { name } of MOVED_TABLES) {
    counts.set(name, await sql.value<number>(`SELECT count(*) FROM ${name}`));
  }
  return counts;
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}

/** So many rows are compared and put right at once, or fewer where they come to more bytes. */
const CHUNK_ROWS = 2_000;
const CHUNK_BYTES = 2 * 1_024 * 1_024;

/** The last chunk of a table has no end, as the target must have no rows beyond, either. */
async function nextChunk(
  sql: Sql,
  table: MovedTable,
  after: readonly number[],
): Promise<{ readonly range: KeyRange; readonly rows: number }> {
  for (let most = CHUNK_ROWS; ; most = Math.ceil(most / 2)) {
    const last = await sql.first<Readonly<Record<string, number>>>(keyBeyond(table), ...after, most - 1);
    const range = { after, to: last && table.key.map((column) => last[column]!) };
    const size = await sql.first<{ rows: number; bytes: number }>(sizeOf(table, range), ...keysOf(range));
    const { rows, bytes } = size!;
    if (bytes <= CHUNK_BYTES || rows <= 1) return { range, rows };
  }
}

async function makeChunkSame(
  source: OpenSource,
  target: OpenTarget,
  table: MovedTable,
  range: KeyRange,
): Promise<{ readonly checksum: string; readonly changed: number }> {
  try {
    return await target.transaction(async (sql) => {
      const stored = (): Promise<string> => target.engine.checksum(sql, table, range);
      // Both at once: the database works in another process.
      const [checksum, before] = await Promise.all([
        source.engine.checksum(source.sql, table, range),
        stored(),
      ]);
      if (before === checksum) return { checksum, changed: 0 };
      const changed = await putRight(source.sql, sql, table, range);
      if ((await stored()) !== checksum) throw new Error("what was stored is not the same");
      return { checksum, changed };
    });
  } catch (error) {
    if (error instanceof EvregError || error instanceof EngineFailure) throw error;
    const message = `Rows of the table ${table.name} (after ${range.after.join(", ")}) cannot be moved to ${target.where}: ${messageOf(error)}. Nothing of them was stored there, and the data are as they were.`;
    throw new EvregError("invalid", message, { table: table.name, after: range.after }, { cause: error });
  }
}

async function putRight(from: Sql, to: Sql, table: MovedTable, range: KeyRange): Promise<number> {
  const [wanted, stored] = [await rowsByKey(from, table, range), await rowsByKey(to, table, range)];
  const gone = [...stored.keys()].filter((key) => !wanted.has(key));
  // Rows that are gone go before the others, of which one may have what had to be unique.
  if (gone.length > 0) await to.run(removeRows(table), `[${gone.join(",")}]`);
  const different = [...wanted].filter(([key, row]) => stored.get(key) !== row);
  const rows = different.map(([, row]) => row);
  if (rows.length > 0) await to.run(storeRows(table), `[${rows.join(",")}]`);
  return gone.length + different.length;
}

/** The rows of a range as JSON, by their keys as JSON. */
async function rowsByKey(sql: Sql, table: MovedTable, range: KeyRange): Promise<ReadonlyMap<string, string>> {
  const rows = await sql.rows<Readonly<Record<string, unknown>>>(rowsIn(table, range), ...keysOf(range));
  return new Map(
    rows.map((row) => {
      const key = table.key.map((column) => row[column]);
      const cells = table.columns.map(({ name }) => row[name]);
      return [JSON.stringify(key.length === 1 ? key[0] : key), JSON.stringify(cells)];
    }),
  );
}

/** Makes the numbers of the target go on after the last ones that the source gave. */
export async function continueNumbers(source: OpenSource, target: OpenTarget): Promise<void> {
  await target.transaction(async (sql) => {
    for (const table of MOVED_TABLES) {
      const { name, numbers } = table;
      if (numbers === "none") continue;
      const last =
        numbers === "after last"
          ? await source.engine.lastNumber(source.sql, name)
          : await source.sql.value<number>(`SELECT coalesce(max(rowid), 0) FROM ${name}`);
      await target.engine.setLastNumber(sql, table, last);
      if (numbers === "after last" && (await target.engine.lastNumber(sql, name)) !== last) {
        throw new Error(`the numbers of the table ${name} do not go on after ${last}`);
      }
    }
  });
}
