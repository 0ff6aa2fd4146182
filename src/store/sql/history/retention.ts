import type { EventPage, ExpiredRange, RemovedEvents, RowidRange } from "../../events.ts";
import { deleteEvents } from "../events/counts.ts";
import { idRangesOf, rangesAfter } from "../events/timeline.ts";
import { STORED_AT_EACH_END } from "../queue/finish.ts";
import { UNFINISHED } from "../queue/delivery-state.ts";
import { MAX_REMOVED_ROWS } from "../operation.ts";
import { type Sql, walkedBy } from "../sql.ts";

/** One call deletes so many bytes of payloads: the engine looks at every page of them, a quarter of a millisecond per MiB. */
const MAX_REMOVED_BYTES = 2 * 1024 * 1024;

/**
 * Looks at the next events of the range, and deletes those without an unfinished delivery, each with all its deliveries and their
 * attempts: as one transaction made them.
 */
export async function removeExpired(
  sql: Sql,
  { fromMs, beforeMs }: ExpiredRange,
  after = 0,
): Promise<RemovedEvents> {
  const ranges = rangesAfter(await idRangesOf(sql, "event", fromMs, beforeMs), after, "asc");
  const [range] = ranges;
  if (range === undefined) return { events: 0, deliveries: 0, next: undefined };
  const looked = await nextEvents(sql, range);
  const removable = looked.filter(({ isFinished }) => isFinished === 1).map(({ id }) => id);
  const deliveries = await deleteDeliveries(sql, removable);
  await storeRemoved(sql, removable);
  const events = await deleteEvents(sql, removable);
  const last = looked.at(-1)?.id ?? range.high;
  return { events, deliveries, next: rangesAfter(ranges, last, "asc").length > 0 ? last : undefined };
}

/**
 * Reads the first events of a range that one call may remove: no more of them, of their deliveries with all attempts, and of
 * bytes than that, but at least one event. It goes from event to event, so that it looks at one more at most.
 */
async function nextEvents(
  sql: Sql,
  { low, high }: RowidRange,
): Promise<readonly { readonly id: number; readonly isFinished: number }[]> {
  const isWithin = `deliveries <= ${MAX_REMOVED_ROWS} AND bytes <= ${MAX_REMOVED_BYTES}`;
  return await sql.rows(
    `WITH RECURSIVE step (events, id, bytes, deliveries) AS (
        SELECT 0, ?1 - 1, CAST(0 AS bigint), CAST(0 AS bigint)
        UNION ALL
        SELECT events + 1, e.rowid, bytes + length(e.payload), deliveries + coalesce(
          (SELECT sum(1 + min(d.attempt, ${2 * STORED_AT_EACH_END})) FROM delivery AS d INDEXED BY delivery_event
            WHERE d.event_id = e.rowid), 0)
        FROM step CROSS JOIN event AS e
        WHERE e.rowid = (SELECT n.rowid FROM event AS n WHERE n.rowid > step.id AND n.rowid <= ?2 ORDER BY n.rowid LIMIT 1)
          AND events < ${MAX_REMOVED_ROWS} AND ${isWithin})
      SELECT id, NOT EXISTS (
          SELECT 1 FROM delivery AS d INDEXED BY delivery_event JOIN subscription AS s ON s.rowid = d.subscription_id
          WHERE d.event_id = step.id AND ${UNFINISHED}) AS isFinished
      FROM step WHERE events = 1 OR events > 1 AND ${isWithin} ${walkedBy("events")}`,
    low,
    high,
  );
}

async function deleteDeliveries(sql: Sql, events: readonly number[]): Promise<number> {
  await sql.run(
    `DELETE FROM attempt WHERE delivery_id IN (
        SELECT d.rowid FROM list(?: id bigint) AS g CROSS JOIN delivery AS d INDEXED BY delivery_event ON d.event_id = g.id)`,
    events,
  );
  return await sql.run("DELETE FROM delivery WHERE event_id IN list(?: id bigint)", events);
}

/** Stores what was removed, so that whoever reads events from a place on knows whether some are missing. */
async function storeRemoved(sql: Sql, events: readonly number[]): Promise<void> {
  await sql.run(
    `INSERT INTO removed_events (one, last_event, last_ms)
      SELECT 1, max(e.rowid), max(e.timestamped_ms)
      FROM list(?: id bigint) AS g CROSS JOIN event AS e ON e.rowid = g.id HAVING count(*) > 0
      ON CONFLICT (one) DO UPDATE SET last_event = max(removed_events.last_event, excluded.last_event),
        last_ms = max(removed_events.last_ms, excluded.last_ms)`,
    events,
  );
}

/** Answers what retention has removed; 0 where it has removed nothing. */
export async function loadRemoved(sql: Sql): Promise<EventPage["removed"]> {
  const row = await sql.first<EventPage["removed"]>(
    "SELECT last_event AS event, last_ms AS ms FROM removed_events",
  );
  return row ?? { event: 0, ms: 0 };
}
