import { ALL_ACTIONS, BLOCKS, type BlockShape, rowidsOf } from "./event-counts.ts";
import type { Sql } from "./sql.ts";

/**
 * Deletes events and takes them off the counts of their blocks, in the transaction it is called in; answers how many
 * there were. Nothing may refer to them any more. There is no other way to delete an event: a count that was not told of
 * it would stay wrong.
 */
export function deleteEvents(sql: Sql, eventIds: readonly number[], shape: BlockShape = BLOCKS): number {
  const gone = JSON.stringify(eventIds);
  for (let level = 0; level < shape.levels; level += 1) {
    // A block that is not sealed has no count yet, and none is changed.
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
