import type { Sql } from "../thread/sql.ts";
import type { RowidRange } from "./timeline.ts";

// Rowids of events only grow. So a block of rowids up to the largest one ever given is closed: its number of events of each
// action is stored. In the table's key the blocks of an action are a run of rows, so the total of a range is the sum of a run,
// and a count of what the index has before and behind it. A block without events has no count: the millions of blocks that
// a restore skips (see `files/id-reservation.ts`) and those that retention has emptied must cost nothing.

/** Rowids of a block; part of the file format. */
const BLOCK_ROWIDS = 4_096;

/** All actions together. Every closed block with events has such a count, and so has the last one. */
export const ALL_ACTIONS = 0;

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
    // The last of empty ones gets a count, which shows how far blocks are closed.
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

/** A range of rowids, and how many of the selected events are in it. */
export interface CountedRange extends RowidRange {
  readonly events: number;
  /** Whether it is made of several closed blocks; else it has at most as many rowids as one, or is open. */
  readonly isRun: boolean;
}

/** Selects events by the rowids of their actions. */
export interface ActionFilter {
  readonly actions: readonly number[];
  /** Whose counts of blocks are added up: the same, or `ALL_ACTIONS`. */
  readonly counted: readonly number[];
}

/** Counts the events that a filter selects. */
export class EventCounter {
  readonly #sql: Sql;
  readonly #filter: ActionFilter;
  readonly #size: number;

  /** @param size rowids of a block; only tests have others */
  constructor(sql: Sql, filter: ActionFilter, size = BLOCK_ROWIDS) {
    this.#sql = sql;
    this.#filter = filter;
    this.#size = size;
  }

  /** Divides each range into its closed blocks, and what is before and behind these. */
  count(ranges: readonly RowidRange[]): readonly CountedRange[] {
    const size = this.#size;
    const closedRowids = closedBlocks(this.#sql) * size;
    return ranges.flatMap(({ low, high }) => {
      const first = Math.ceil(low / size) * size;
      const end = Math.min(Math.floor((high + 1) / size) * size, closedRowids);
      if (end <= first) return [this.#countIndexed(low, high)];
      const before = first > low ? [this.#countIndexed(low, first - 1)] : [];
      const behind = end <= high ? [this.#countIndexed(end, high)] : [];
      return [...before, this.#countBlocks(first, end - 1), ...behind];
    });
  }

  /** Divides a run into two. */
  halve({ low, high, events }: CountedRange): readonly [CountedRange, CountedRange] {
    const blocks = (high + 1 - low) / this.#size;
    const middle = low + Math.floor(blocks / 2) * this.#size;
    const first = this.#countBlocks(low, middle - 1);
    return [first, { low: middle, high, events: events - first.events, isRun: blocks > 2 }];
  }

  /** Adds up the counts of closed blocks. */
  #countBlocks(low: number, high: number): CountedRange {
    const events = this.#sql.value<number>(
      `SELECT coalesce(sum(c.events), 0) FROM json_each(?1) AS a CROSS JOIN event_count AS c
        WHERE c.action_id = a.value AND c.block BETWEEN ?2 AND ?3`,
      JSON.stringify(this.#filter.counted),
      low / this.#size,
      (high + 1) / this.#size - 1,
    );
    return { low, high, events, isRun: high + 1 - low > this.#size };
  }

  #countIndexed(low: number, high: number): CountedRange {
    const events = this.#sql.value<number>(
      `SELECT count(*) FROM json_each(?1) AS a CROSS JOIN event AS e INDEXED BY event_action
        WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3`,
      JSON.stringify(this.#filter.actions),
      low,
      high,
    );
    return { low, high, events, isRun: false };
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
