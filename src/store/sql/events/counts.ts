import type { Sql } from "../sql.ts";

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
export async function countEvents(
  sql: Sql,
  groups: Iterable<readonly { readonly rowid: number; readonly actionId: number }[]>,
): Promise<void> {
  for (const events of groups) {
    const blocks = Map.groupBy(events, ({ rowid }) => blockOf(rowid));
    for (const [block, { length }] of blocks) await addCount(sql, events[0]!.actionId, block, length);
  }
}

async function addCount(sql: Sql, actionId: number, block: number, events: number): Promise<void> {
  await sql.run(
    `INSERT INTO event_count (action_id, block, events) VALUES (?1, ?2, ?3), (${ALL_ACTIONS}, ?2, ?3)
      ON CONFLICT (action_id, block) DO UPDATE SET events = event_count.events + excluded.events`,
    actionId,
    block,
    events,
  );
}

/** Counts all events of a file that was just upgraded, which has no counts. */
export async function countStoredEvents(sql: Sql): Promise<void> {
  if ((await sql.first("SELECT 1 FROM event_count LIMIT 1")) !== undefined) return;
  await sql.run(
    `INSERT INTO event_count (action_id, block, events)
      SELECT action_id, rowid / ${BLOCK_ROWIDS}, count(*) FROM event INDEXED BY event_action GROUP BY 1, 2`,
  );
  await sql.run(
    `INSERT INTO event_count (action_id, block, events)
      SELECT ${ALL_ACTIONS}, block, sum(events) FROM event_count GROUP BY block`,
  );
}

/**
 * Whether the index leads to all events from the last block on. Where it does not, lists and totals lack some, and nothing else
 * shows it.
 */
export async function isIndexWhole(sql: Sql, lastEvent: number): Promise<boolean> {
  try {
    return (
      (await sql.value<number>(
        `SELECT (SELECT count(*) FROM event NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2) = (
          SELECT count(*) FROM action AS a CROSS JOIN event AS e INDEXED BY event_action
          WHERE e.action_id = a.rowid AND e.rowid BETWEEN ?1 AND ?2)`,
        blockOf(lastEvent) * BLOCK_ROWIDS,
        lastEvent,
      )) === 1
    );
  } catch {
    // The engine has found the damage.
    return false;
  }
}

/**
 * Deletes events to which nothing refers any more, and subtracts them from the counts of their blocks. Answers how many there
 * were. Events are deleted nowhere else, as a count that does not follow stays wrong.
 * @param gone their rowids, as JSON
 */
export async function deleteEvents(sql: Sql, gone: string): Promise<number> {
  await sql.run(
    `WITH gone (block, action_id) AS (
        SELECT e.rowid / ${BLOCK_ROWIDS}, e.action_id
        FROM (SELECT DISTINCT id FROM list(?1: id bigint) AS ids) AS g CROSS JOIN event AS e ON e.rowid = g.id
      ), lost (block, action_id, events) AS (
        SELECT block, action_id, count(*) FROM gone GROUP BY 1, 2
        UNION ALL SELECT block, ${ALL_ACTIONS}, count(*) FROM gone GROUP BY 1
      )
      UPDATE event_count SET events = event_count.events - lost.events FROM lost
      WHERE event_count.action_id = lost.action_id AND event_count.block = lost.block`,
    gone,
  );
  await sql.run(
    `DELETE FROM event_count WHERE events = 0
        AND action_id IN (SELECT ${ALL_ACTIONS}
          UNION SELECT e.action_id FROM list(?1: id bigint) AS g CROSS JOIN event AS e ON e.rowid = g.id)
        AND block IN (SELECT id / ${BLOCK_ROWIDS} FROM list(?1: id bigint) AS ids)`,
    gone,
  );
  return await sql.run("DELETE FROM event WHERE rowid IN list(?: id bigint)", gone);
}
