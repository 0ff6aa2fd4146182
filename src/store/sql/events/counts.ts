import type { Sql } from "../sql.ts";

// How many events of each action are in each block of rowids is counted in the transaction that stores or deletes them. A range
// consists of blocks, and of rowids before and behind these, which the index counts. So its total is the sum of a run of rows: one
// for some thousand events. A block without events has no count: the millions of blocks that a restore skips (see
// `files/id-reservation.ts`) and those that retention has emptied must cost nothing.

/** So many rowids are a block; this is part of the form of the data. */
export const BLOCK = 4_096;

/** The number that stands for all actions together. */
export const ALL_ACTIONS = 0;

/** SQL of the rows of `event_count` for some events; `from` is the table of them. */
const counted = (from: string): string => `
  WITH own AS MATERIALIZED (SELECT action_id, rowid / ${BLOCK} AS block, count(*) AS events FROM ${from} GROUP BY 1, 2)
  SELECT action_id, block, events FROM own UNION ALL SELECT ${ALL_ACTIONS}, block, sum(events) FROM own GROUP BY block`;

/** Adds the events that were just stored to the counts of their blocks. */
export async function countEvents(sql: Sql, first: number, last: number): Promise<void> {
  await sql.run(
    `INSERT INTO event_count (action_id, block, events) ${counted("event WHERE rowid BETWEEN ?1 AND ?2")}
      ON CONFLICT (action_id, block) DO UPDATE SET events = event_count.events + excluded.events`,
    first,
    last,
  );
}

/** Counts all events of a file that was just upgraded, which has no counts. */
export async function countStoredEvents(sql: Sql): Promise<void> {
  if ((await sql.first("SELECT 1 FROM event_count LIMIT 1")) !== undefined) return;
  await sql.run(
    `INSERT INTO event_count (action_id, block, events) ${counted("event INDEXED BY event_action")}`,
  );
}

/**
 * Deletes events to which nothing refers any more, and subtracts them from the counts of their blocks. Answers how many there
 * were. Events are deleted nowhere else, as a count that does not follow stays wrong.
 */
export async function deleteEvents(sql: Sql, gone: readonly number[]): Promise<number> {
  const changed = `(${counted("event WHERE rowid IN list(?1: id bigint)")}) AS changed`;
  await sql.run(
    `UPDATE event_count SET events = event_count.events - changed.events FROM ${changed}
      WHERE event_count.action_id = changed.action_id AND event_count.block = changed.block`,
    gone,
  );
  await sql.run(
    `DELETE FROM event_count WHERE events = 0 AND (action_id, block) IN (SELECT action_id, block FROM ${changed})`,
    gone,
  );
  return await sql.run("DELETE FROM event WHERE rowid IN list(?: id bigint)", gone);
}
