import type { Sql } from "../thread/sql.ts";
import type { RowidRange } from "./timeline.ts";
import { type ActionFilter, selectedEvents } from "./walk.ts";

// Rowids of events only grow. So a block of rowids up to the largest one ever given is closed: its number of events of each
// action is stored. In the table's key the blocks of an action are a run of rows, so the total of a range is the sum of a run,
// and a count of what the index has before and behind it. A block without events has no count: the millions of blocks that
// a restore skips (see `files/id-reservation.ts`) and those that retention has emptied must cost nothing.

/** How many rowids a block has; this is part of the file format. */
const BLOCK_ROWIDS = 4_096;

/**
 * The number that stands for all actions together. Every closed block with events has such a count, and so has the last one.
 */
const ALL_ACTIONS = 0;

/**
 * Closes the blocks that end among the rowids after `before` up to `last`, which a transaction gave.
 * @param size rowids of a block; only tests have others
 */
export function closePassedBlocks(sql: Sql, before: number, last: number, size = BLOCK_ROWIDS): void {
  if (blocksUpTo(before, size) < blocksUpTo(last, size)) closeBlocks(sql, last, size);
}

/**
 * Whether the index leads to all events that the table has, of those in the last block up to `last`: it is open, so their
 * number is stored nowhere. Where it does not, lists and totals lack some, and nothing else shows it.
 */
export function isIndexWhole(sql: Sql, last: number, size = BLOCK_ROWIDS): boolean {
  try {
    const counts = sql.first<{ events: number; indexed: number | null }>(
      `SELECT (SELECT count(*) FROM event NOT INDEXED WHERE rowid >= ?1) AS events,
          (SELECT sum((SELECT count(*) FROM event AS i INDEXED BY event_action
              CROSS JOIN event AS e NOT INDEXED ON e.rowid = i.rowid
            WHERE i.action_id = a.rowid AND i.rowid BETWEEN ?1 AND ?2)) FROM action AS a) AS indexed`,
      closedBlocks(sql) * size,
      last,
    );
    return counts?.events === (counts?.indexed ?? 0);
  } catch {
    // The engine has found the damage.
    return false;
  }
}

/** Closes the blocks up to `last`, the largest rowid ever given, that are open. Those without events cost nothing. */
export function closeBlocks(sql: Sql, last: number, size = BLOCK_ROWIDS): void {
  const end = blocksUpTo(last, size);
  for (let block = closedBlocks(sql); block < end;) {
    const next = Math.max(block + 1, Math.min(end, blockOfNextEvent(sql, block, size) ?? end));
    // The last of several empty blocks gets a count, which shows how far blocks are closed.
    closeBlock(sql, next - 1, size);
    block = next;
  }
}

/** The first block from this one on that has an event. */
function blockOfNextEvent(sql: Sql, block: number, size: number): number | undefined {
  const id = sql.value<number | null>("SELECT min(rowid) FROM event WHERE rowid >= ?", block * size);
  return id === null ? undefined : Math.floor(id / size);
}

function blocksUpTo(last: number, size: number): number {
  return Math.floor((last + 1) / size);
}

function closedBlocks(sql: Sql): number {
  return sql.value(`SELECT coalesce(max(block) + 1, 0) FROM event_count WHERE action_id = ${ALL_ACTIONS}`);
}

/** Looks up each action's part of the index, which sorts nothing and reads no event. */
function closeBlock(sql: Sql, block: number, size: number): void {
  sql.run(
    `INSERT INTO event_count (action_id, block, events)
      SELECT action_id, ?1, events FROM (
        SELECT a.rowid AS action_id, (SELECT count(*) FROM event AS e INDEXED BY event_action
          WHERE e.action_id = a.rowid AND e.rowid BETWEEN ?2 AND ?3) AS events
        FROM action AS a)
      WHERE events > 0`,
    block,
    block * size,
    (block + 1) * size - 1,
  );
  sql.run(
    `INSERT INTO event_count (action_id, block, events)
      SELECT ${ALL_ACTIONS}, ?1, coalesce(sum(c.events), 0)
      FROM action AS a CROSS JOIN event_count AS c ON c.action_id = a.rowid AND c.block = ?1`,
    block,
  );
}

/** Counts the events that a filter selects. */
export class EventCounter {
  readonly #sql: Sql;
  readonly #filter: ActionFilter;
  readonly #size: number;
  readonly #closedRowids: number;

  /** @param size rowids of a block; only tests have others */
  constructor(sql: Sql, filter: ActionFilter, size = BLOCK_ROWIDS) {
    this.#sql = sql;
    this.#filter = filter;
    this.#size = size;
    this.#closedRowids = closedBlocks(sql) * size;
  }

  count(ranges: readonly RowidRange[]): number {
    return ranges.reduce((sum, range) => sum + this.#countRange(range), 0);
  }

  /** The rowid of the event before which so many others are, oldest first. */
  rowidAt(ranges: readonly RowidRange[], before: number): number | undefined {
    let rest = before;
    for (const range of ranges) {
      const events = this.#countRange(range);
      if (rest < events) return this.#rowidWithin(range, rest);
      rest -= events;
    }
    return undefined;
  }

  /** Halves the range until a block is left. */
  #rowidWithin(range: RowidRange, before: number): number | undefined {
    const size = this.#size;
    let { low, high } = range;
    let rest = before;
    while (high - low >= size) {
      const half = Math.floor((low + high) / 2 / size) * size;
      const middle = half > low ? half : half + size;
      const events = this.#countRange({ low, high: middle - 1 });
      if (rest < events) high = middle - 1;
      else {
        rest -= events;
        low = middle;
      }
    }
    return this.#sql.value<number | undefined>(
      `SELECT e.rowid ${selectedEvents(this.#filter)} ORDER BY e.rowid LIMIT 1 OFFSET ?4`,
      JSON.stringify(this.#filter.actions ?? null),
      low,
      high,
      rest,
    );
  }

  /** Adds up the counts of the range's closed blocks, and counts what is before and behind them. */
  #countRange({ low, high }: RowidRange): number {
    const first = Math.ceil(low / this.#size) * this.#size;
    const end = Math.min(Math.floor((high + 1) / this.#size) * this.#size, this.#closedRowids);
    if (end <= first) return this.#countIndexed(low, high);
    return (
      this.#countIndexed(low, first - 1) + this.#countBlocks(first, end - 1) + this.#countIndexed(end, high)
    );
  }

  /** Adds up the counts of closed blocks. */
  #countBlocks(low: number, high: number): number {
    return this.#sql.value(
      `SELECT coalesce(sum(c.events), 0) FROM json_each(?1) AS a CROSS JOIN event_count AS c
        WHERE c.action_id = a.value AND c.block BETWEEN ?2 AND ?3`,
      JSON.stringify(this.#filter.actions ?? [ALL_ACTIONS]),
      low / this.#size,
      (high + 1) / this.#size - 1,
    );
  }

  #countIndexed(low: number, high: number): number {
    if (low > high) return 0;
    const { actions } = this.#filter;
    return this.#sql.value(
      `SELECT count(*) FROM ${actions === undefined ? "(SELECT rowid AS value FROM action)" : "json_each(?1)"} AS a
        CROSS JOIN event AS e INDEXED BY event_action WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3`,
      JSON.stringify(actions ?? null),
      low,
      high,
    );
  }
}

/**
 * Deletes events to which nothing refers any more, and subtracts them from the counts of their blocks. Answers how many there
 * were. Events are deleted nowhere else, as a count that does not follow stays wrong.
 */
export function deleteEvents(sql: Sql, eventIds: readonly number[], size = BLOCK_ROWIDS): number {
  const gone = JSON.stringify(eventIds);
  // An open block has no count to change.
  sql.run(
    `WITH gone (block, action_id) AS (
        SELECT e.rowid / ?2, e.action_id
        FROM (SELECT DISTINCT value AS id FROM json_each(?1)) AS g CROSS JOIN event AS e ON e.rowid = g.id
      ), lost (block, action_id, events) AS (
        SELECT block, action_id, count(*) FROM gone GROUP BY 1, 2
        UNION ALL SELECT block, ${ALL_ACTIONS}, count(*) FROM gone GROUP BY 1
      )
      UPDATE event_count SET events = event_count.events - lost.events FROM lost
      WHERE event_count.action_id = lost.action_id AND event_count.block = lost.block`,
    gone,
    size,
  );
  sql.run(
    `DELETE FROM event_count WHERE events = 0 AND NOT (action_id = ${ALL_ACTIONS} AND block = ?3)
        AND action_id IN (SELECT ${ALL_ACTIONS}
          UNION SELECT e.action_id FROM json_each(?1) AS g CROSS JOIN event AS e ON e.rowid = g.value)
        AND block IN (SELECT value / ?2 FROM json_each(?1))`,
    gone,
    size,
    // The last one's count shows how far blocks are closed.
    closedBlocks(sql) - 1,
  );
  return sql.run("DELETE FROM event WHERE rowid IN (SELECT value FROM json_each(?))", gone);
}
