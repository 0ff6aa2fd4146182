import type { Steps } from "../../../runtime/yielding.ts";
import type { Sql } from "../thread/sql.ts";
import type { RowidRange } from "./timeline.ts";

// Rowids of events only grow. So a block of rowids up to the largest one ever given is closed: its number of events of each
// action is stored. Larger blocks, each of `fanOut` smaller ones, make any range of rowids the sum of a few hundred numbers. A
// block that was empty when it was closed may have no count, as the millions of blocks that a restore skips (see
// `files/id-reservation.ts`) must cost nothing.

/** How rowids are divided; part of the file format. */
export interface BlockShape {
  /** Rowids of a block of level 0. */
  readonly rowids: number;
  /** Blocks of a level in one of the next. */
  readonly fanOut: number;
  readonly levels: number;
}

export const BLOCKS: BlockShape = { rowids: 4_096, fanOut: 64, levels: 3 };

/** All actions together. Every closed block that had events has such a count, and so has the last one. */
export const ALL_ACTIONS = 0;

function rowidsOf(level: number, { rowids, fanOut }: BlockShape): number {
  return rowids * fanOut ** level;
}

/** The first block of a level from `block` on that has a count. */
function firstCounted(sql: Sql, level: number, block: number): number | undefined {
  const row = sql.first<{ block: number | null }>(
    "SELECT min(block) AS block FROM event_count WHERE level = ? AND block >= ?",
    level,
    block,
  );
  return row?.block ?? undefined;
}

/** Closes the blocks that end among the rowids after `before` up to `last`, which a transaction gave. */
export function closePassedBlocks(sql: Sql, before: number, last: number, shape: BlockShape = BLOCKS): void {
  if (blocksUpTo(before, shape) < blocksUpTo(last, shape)) closeBlocks(sql, last, Infinity, shape);
}

/** Whether every block up to `last`, the largest rowid ever given, is closed. */
export function areAllClosed(sql: Sql, last: number, shape: BlockShape = BLOCKS): boolean {
  return closedBlocks(sql) >= blocksUpTo(last, shape);
}

/**
 * Whether the index leads to all events that the table has, of those in the last block up to `last`: it is open, so their
 * number is stored nowhere. Where it does not, lists and totals lack some, and nothing else shows it.
 */
export function isIndexWhole(sql: Sql, last: number, { rowids }: BlockShape = BLOCKS): boolean {
  try {
    const found = sql.first<{ events: number; indexed: number | null }>(
      `SELECT (SELECT count(*) FROM event NOT INDEXED WHERE rowid >= ?1) AS events,
          (SELECT sum((SELECT count(*) FROM event AS i INDEXED BY event_action
              CROSS JOIN event AS e NOT INDEXED ON e.rowid = i.rowid
            WHERE i.action_id = a.rowid AND i.rowid BETWEEN ?1 AND ?2)) FROM action AS a) AS indexed`,
      closedBlocks(sql) * rowids,
      last,
    );
    return found?.events === (found?.indexed ?? 0);
  } catch {
    // The engine has found the damage.
    return false;
  }
}

/** Closes the next `maxBlocks` blocks up to `last`; empty ones in a row count as one. */
export function closeBlocks(sql: Sql, last: number, maxBlocks: number, shape: BlockShape = BLOCKS): void {
  const end = blocksUpTo(last, shape);
  let block = closedBlocks(sql);
  for (let steps = 0; block < end && steps < maxBlocks; steps += 1) {
    const next = Math.max(block + 1, Math.min(end, blockOfNextEvent(sql, block, shape) ?? end));
    // The last of empty ones gets a count, which shows how far blocks are closed.
    countEvents(sql, next - 1, shape);
    addUpPassed(sql, block, next, shape);
    block = next;
  }
}

/** The first block from this one on that has an event. */
function blockOfNextEvent(sql: Sql, block: number, { rowids }: BlockShape): number | undefined {
  const row = sql.first<{ id: number | null }>(
    "SELECT min(rowid) AS id FROM event WHERE rowid >= ?",
    block * rowids,
  );
  const id = row?.id ?? undefined;
  return id === undefined ? undefined : Math.floor(id / rowids);
}

/** Counts the larger blocks that end from `block` to before `next`; all of these but the first are empty. */
function addUpPassed(sql: Sql, block: number, next: number, shape: BlockShape): void {
  for (let level = 1; level < shape.levels; level += 1) {
    const blocks = shape.fanOut ** level;
    const larger = Math.floor(block / blocks);
    if ((larger + 1) * blocks > next) break;
    addUp(sql, level, larger, shape);
  }
}

function blocksUpTo(last: number, { rowids }: BlockShape): number {
  return Math.floor((last + 1) / rowids);
}

function closedBlocks(sql: Sql): number {
  const row = sql.first<{ closed: number }>(
    "SELECT coalesce(max(block) + 1, 0) AS closed FROM event_count WHERE level = 0",
  );
  return row?.closed ?? 0;
}

/** Looks up each action's part of the index, which sorts nothing and reads no event. */
function countEvents(sql: Sql, block: number, { rowids }: BlockShape): void {
  sql.run(
    `INSERT INTO event_count (level, block, action_id, events)
      SELECT 0, ?1, action_id, events FROM (
        SELECT a.rowid AS action_id, (SELECT count(*) FROM event AS e INDEXED BY event_action
          WHERE e.action_id = a.rowid AND e.rowid BETWEEN ?2 AND ?3) AS events
        FROM action AS a)
      WHERE events > 0`,
    block,
    block * rowids,
    (block + 1) * rowids - 1,
  );
  sql.run(
    `INSERT INTO event_count (level, block, action_id, events)
      SELECT 0, ?1, ${ALL_ACTIONS}, coalesce(sum(events), 0) FROM event_count WHERE level = 0 AND block = ?1`,
    block,
  );
}

function addUp(sql: Sql, level: number, block: number, { fanOut }: BlockShape): void {
  sql.run(
    `INSERT INTO event_count (level, block, action_id, events)
      SELECT ?1, ?2, action_id, sum(events) FROM event_count
      WHERE level = ?1 - 1 AND block BETWEEN ?3 AND ?4 GROUP BY action_id`,
    level,
    block,
    block * fanOut,
    (block + 1) * fanOut - 1,
  );
}

/** A range of rowids, and how many of the selected events are in it. */
export interface CountedRange extends RowidRange {
  /** Of a closed block; `undefined` for a part of a block or an open one. */
  readonly level: number | undefined;
  readonly events: number;
}

/** Selects events by the rowids of their actions. */
export interface ActionFilter {
  readonly actions: readonly number[];
  /** Whose counts of blocks are added up: the same, or `ALL_ACTIONS`. */
  readonly counted: readonly number[];
}

type Uncounted = Omit<CountedRange, "events">;

/** Look-ups of one step; each takes up to half a microsecond. */
const STEP_LOOKUPS = 2_000;
/** Pieces that one step makes; each of the largest needs a query. */
const STEP_PIECES = 500;

/** Divides ranges into the largest blocks that fit, in rising order, and counts them. */
export function* countRanges(
  sql: Sql,
  ranges: readonly RowidRange[],
  filter: ActionFilter,
  shape: BlockShape,
): Steps<readonly CountedRange[]> {
  const closed = closedBlocks(sql) * shape.rowids;
  const pieces: Uncounted[] = [];
  for (const range of ranges) {
    for (const piece of divide(sql, range, closed, shape)) {
      pieces.push(piece);
      if (pieces.length % STEP_PIECES === 0) yield;
    }
  }
  return yield* count(sql, pieces, filter, shape);
}

/** Counts the blocks that a larger block is made of, in rising order. */
export function countParts(
  sql: Sql,
  piece: CountedRange,
  filter: ActionFilter,
  shape: BlockShape,
): Steps<readonly CountedRange[]> {
  const level = (piece.level ?? 0) - 1;
  const size = rowidsOf(level, shape);
  const parts = Array.from({ length: shape.fanOut }, (_, index): Uncounted => {
    const low = piece.low + index * size;
    return { low, high: low + size - 1, level };
  });
  return count(sql, parts, filter, shape);
}

/**
 * Makes some 250 pieces of the longest range, and one more for each 16 million rowids with events. Those without, such as those
 * that a restore skipped, are left out.
 */
function* divide(
  sql: Sql,
  { low, high }: RowidRange,
  closed: number,
  shape: BlockShape,
): Generator<Uncounted, void> {
  const top = shape.levels - 1;
  const lastWhole = Math.min(high, closed - 1);
  for (let at = low; at <= high;) {
    let level = top;
    while (level >= 0) {
      const size = rowidsOf(level, shape);
      if (at % size === 0 && at + size - 1 <= lastWhole) break;
      level -= 1;
    }
    const size = rowidsOf(Math.max(0, level), shape);
    if (level === top) {
      const end = Math.floor((lastWhole + 1) / size);
      const next = Math.min(end, firstCounted(sql, top, at / size) ?? end) * size;
      if (next > at) {
        at = next;
        continue;
      }
    }
    const end = level < 0 ? Math.min(high, at - (at % size) + size - 1) : at + size - 1;
    yield { low: at, high: end, level: level < 0 ? undefined : level };
    at = end + 1;
  }
}

function* count(
  sql: Sql,
  pieces: readonly Uncounted[],
  filter: ActionFilter,
  shape: BlockShape,
): Steps<readonly CountedRange[]> {
  const events = new Map<Uncounted, number>();
  const blocks = pieces.filter(({ level }) => level !== undefined);
  const counted = JSON.stringify(filter.counted);
  for (const some of chunks(blocks, STEP_LOOKUPS / filter.counted.length)) {
    const requested = some.map(({ level, low }) => [level, low / rowidsOf(level ?? 0, shape)]);
    add(events, some, sql.rows(BLOCK_COUNTS, JSON.stringify(requested), counted));
    yield;
  }
  const actions = JSON.stringify(filter.actions);
  const parts = pieces.filter(({ level }) => level === undefined);
  for (const some of chunks(parts, STEP_LOOKUPS / (filter.actions.length + shape.rowids / 8))) {
    const requested = some.map(({ low, high }) => [low, high]);
    add(events, some, sql.rows(INDEX_COUNTS, JSON.stringify(requested), actions));
    yield;
  }
  return pieces.map((piece) => ({ ...piece, events: events.get(piece) ?? 0 }));
}

const BLOCK_COUNTS = `
  SELECT p.key AS place, (SELECT sum(c.events) FROM json_each(?2) AS a CROSS JOIN event_count AS c
      WHERE c.level = p.value ->> 0 AND c.block = p.value ->> 1 AND c.action_id = a.value) AS events
    FROM json_each(?1) AS p`;

const INDEX_COUNTS = `
  SELECT p.key AS place, (SELECT count(*) FROM json_each(?2) AS a CROSS JOIN event AS e INDEXED BY event_action
      WHERE e.action_id = a.value AND e.rowid BETWEEN p.value ->> 0 AND p.value ->> 1) AS events
    FROM json_each(?1) AS p`;

function add(
  events: Map<Uncounted, number>,
  pieces: readonly Uncounted[],
  counts: readonly { readonly place: number; readonly events: number | null }[],
): void {
  for (const { place, events: found } of counts) {
    const piece = pieces[place];
    if (piece !== undefined) events.set(piece, found ?? 0);
  }
}

function* chunks<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  const length = Math.max(1, Math.floor(size));
  for (let at = 0; at < all.length; at += length) yield all.slice(at, at + length);
}

/**
 * Deletes events to which nothing refers any more, and subtracts them from the counts of their blocks. Answers how many there
 * were. Events are deleted nowhere else, as a count that does not follow stays wrong.
 */
export function deleteEvents(sql: Sql, eventIds: readonly number[], shape: BlockShape = BLOCKS): number {
  const gone = JSON.stringify(eventIds);
  for (let level = 0; level < shape.levels; level += 1) {
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
        WHERE event_count.level = ?3 AND event_count.block = lost.block AND event_count.action_id = lost.action_id`,
      gone,
      rowidsOf(level, shape),
      level,
    );
    sql.run(
      `DELETE FROM event_count WHERE events = 0 AND action_id <> ${ALL_ACTIONS} AND level = ?3
        AND block IN (SELECT value / ?2 FROM json_each(?1))`,
      gone,
      rowidsOf(level, shape),
      level,
    );
  }
  return sql.run("DELETE FROM event WHERE rowid IN (SELECT value FROM json_each(?))", gone);
}
