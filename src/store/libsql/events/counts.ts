import type { Sql } from "../thread/sql.ts";

// How many events of each action are in each block of rowids is counted in the transaction that stores or deletes them. In the
// table's key the blocks of an action are a run of rows, so the total of a range is the sum of a run, and a count of what the
// index has before and behind it. A block without events has no count: the millions of blocks that a restore skips (see
// `files/id-reservation.ts`) and those that retention has emptied must cost nothing.

/** How many rowids a block has; this is part of the file format. */
export const BLOCK_ROWIDS = 4_096;

/** The number that stands for all actions together. */
export const ALL_ACTIONS = 0;

function blockOf(rowid: number): number {
  return Math.floor(rowid / BLOCK_ROWIDS);
}

/** Adds stored events to the counts of their blocks. Each group has events of one action. */
export function countEvents(
  sql: Sql,
  groups: Iterable<readonly { readonly rowid: number; readonly actionId: number }[]>,
): void {
  for (const events of groups) {
    const blocks = Map.groupBy(events, ({ rowid }) => blockOf(rowid));
    for (const [block, { length }] of blocks) addCount(sql, events[0]!.actionId, block, length);
  }
}

function addCount(sql: Sql, actionId: number, block: number, events: number): void {
  sql.run(
    `INSERT INTO event_count (action_id, block, events) VALUES (?1, ?2, ?3), (${ALL_ACTIONS}, ?2, ?3)
      ON CONFLICT DO UPDATE SET events = events + excluded.events`,
    actionId,
    block,
    events,
  );
}

/**
 * Counts what is not counted from the last block on that has a count: all events of a file that was just upgraded, and those that
 * another program has stored.
 * @param last the largest rowid ever given
 * @returns whether the index leads to all of these events. Where it does not, lists and totals lack some, and nothing else shows
 * it.
 */
export function recountEvents(sql: Sql, last: number): boolean {
  let isIndexWhole = true;
  try {
    let next = sql.value<number>(
      `SELECT coalesce(max(block), 0) * ${BLOCK_ROWIDS} FROM event_count WHERE action_id = ${ALL_ACTIONS}`,
    );
    for (;;) {
      const id = sql.value<number | null>("SELECT min(rowid) FROM event WHERE rowid >= ?", next);
      if (id === null) return isIndexWhole;
      const block = blockOf(id);
      next = (block + 1) * BLOCK_ROWIDS;
      const counts = sql.rows<{ action: number; events: number; indexed: number; counted: number }>(
        `SELECT e.action_id AS action, count(*) AS events,
            (SELECT count(*) FROM event AS i INDEXED BY event_action
              WHERE i.action_id = e.action_id AND i.rowid BETWEEN ?1 AND ?2) AS indexed,
            coalesce((SELECT c.events FROM event_count AS c WHERE c.action_id = e.action_id AND c.block = ?3), 0) AS counted
          FROM event AS e NOT INDEXED WHERE e.rowid BETWEEN ?1 AND ?2 GROUP BY e.action_id`,
        id,
        Math.min(last, next - 1),
        block,
      );
      for (const { action, events, indexed, counted } of counts) {
        if (indexed !== events) isIndexWhole = false;
        if (events > counted) addCount(sql, action, block, events - counted);
      }
    }
  } catch {
    // The engine has found the damage.
    return false;
  }
}

/**
 * Deletes events to which nothing refers any more, and subtracts them from the counts of their blocks. Answers how many there
 * were. Events are deleted nowhere else, as a count that does not follow stays wrong.
 */
export function deleteEvents(sql: Sql, eventIds: readonly number[]): number {
  const gone = JSON.stringify(eventIds);
  sql.run(
    `WITH gone (block, action_id) AS (
        SELECT e.rowid / ${BLOCK_ROWIDS}, e.action_id
        FROM (SELECT DISTINCT value AS id FROM json_each(?1)) AS g CROSS JOIN event AS e ON e.rowid = g.id
      ), lost (block, action_id, events) AS (
        SELECT block, action_id, count(*) FROM gone GROUP BY 1, 2
        UNION ALL SELECT block, ${ALL_ACTIONS}, count(*) FROM gone GROUP BY 1
      )
      UPDATE event_count SET events = event_count.events - lost.events FROM lost
      WHERE event_count.action_id = lost.action_id AND event_count.block = lost.block`,
    gone,
  );
  sql.run(
    `DELETE FROM event_count WHERE events = 0
        AND action_id IN (SELECT ${ALL_ACTIONS}
          UNION SELECT e.action_id FROM json_each(?1) AS g CROSS JOIN event AS e ON e.rowid = g.value)
        AND block IN (SELECT value / ${BLOCK_ROWIDS} FROM json_each(?1))`,
    gone,
  );
  return sql.run("DELETE FROM event WHERE rowid IN (SELECT value FROM json_each(?))", gone);
}
