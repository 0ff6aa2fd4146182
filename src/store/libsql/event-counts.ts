import type { Sql } from "./sql.ts";

// Rowids of events only grow. So a block of rowids that lies wholly at or below the largest one ever given takes in no
// event any more: it is sealed, and how many events of each action it holds is written down. Larger blocks, each of
// `fanOut` of the next smaller ones, make any range of rowids the sum of a few hundred numbers at most. A block that was
// empty when it was sealed may have no count: rowids go on far away after a restore (see `number-gap.ts`), and the millions
// of blocks between must cost nothing.

/** How rowids are divided; part of the file's form. */
export interface BlockShape {
  /** Rowids of a block of level 0. */
  readonly rowids: number;
  /** Blocks of a level in one of the next. */
  readonly fanOut: number;
  readonly levels: number;
}

export const BLOCKS: BlockShape = { rowids: 4_096, fanOut: 64, levels: 3 };

/** Stands for all actions together; there is such a count for every sealed block that had events, and for the last one. */
export const ALL_ACTIONS = 0;

export function rowidsOf(level: number, { rowids, fanOut }: BlockShape): number {
  return rowids * fanOut ** level;
}

/** All rowids below this one are in sealed blocks of level 0, and so are all whole blocks of a higher level among them. */
export function firstUnsealed(sql: Sql, shape: BlockShape): number {
  return sealedBlocks(sql) * shape.rowids;
}

/** The first block of a level, from this one on, that has a count. */
export function firstCounted(sql: Sql, level: number, block: number): number | undefined {
  const row = sql.first<{ block: number | null }>(
    "SELECT min(block) AS block FROM event_count WHERE level = ? AND block >= ?",
    level,
    block,
  );
  return row?.block ?? undefined;
}

/** Seals the blocks that a transaction, which gave the rowids after `before` up to `last`, has come to the end of. */
export function sealPassed(sql: Sql, before: number, last: number, shape: BlockShape = BLOCKS): void {
  if (blocksUpTo(before, shape) < blocksUpTo(last, shape)) sealBlocks(sql, last, Infinity, shape);
}

/** Whether every block is sealed that can be, `last` being the largest rowid ever given. */
export function isAllSealed(sql: Sql, last: number, shape: BlockShape = BLOCKS): boolean {
  return sealedBlocks(sql) >= blocksUpTo(last, shape);
}

/** Seals the first `most` of the blocks that can be and are not; empty ones in a row are taken for one. */
export function sealBlocks(sql: Sql, last: number, most: number, shape: BlockShape = BLOCKS): void {
  const end = blocksUpTo(last, shape);
  let block = sealedBlocks(sql);
  for (let steps = 0; block < end && steps < most; steps += 1) {
    const next = Math.max(block + 1, Math.min(end, blockOfNextEvent(sql, block, shape) ?? end));
    // Of empty ones the last, by which it is known how far blocks are sealed.
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

/** Counts the larger blocks that end among those from `block` to before `next`; but for their first, all of these are empty. */
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

function sealedBlocks(sql: Sql): number {
  const row = sql.first<{ sealed: number }>(
    "SELECT coalesce(max(block) + 1, 0) AS sealed FROM event_count WHERE level = 0",
  );
  return row?.sealed ?? 0;
}

/** Each action's part of the index is looked up by itself, which needs no sorting and reads none of the events. */
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
