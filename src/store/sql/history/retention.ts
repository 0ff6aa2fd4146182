import type { EventPage, ExpiredRange, RemovedEvents } from "../../events.ts";
import { deleteEvents } from "../events/counts.ts";
import { idRangesOf, rangesAfter } from "../events/timeline.ts";
import { STORED_AT_EACH_END } from "../queue/finish.ts";
import { UNFINISHED } from "../queue/delivery-state.ts";
import { firstWithin, MAX_REMOVED_ROWS } from "../operation.ts";
import { type Sql, walkedBy } from "../sql.ts";

/** One call deletes so many bytes of payloads: the engine looks at every page of them, a quarter of a millisecond per MiB. */
const MAX_REMOVED_BYTES = 2 * 1024 * 1024;

/**
 * Looks at the next `MAX_REMOVED_ROWS` events of the range, and deletes those without an unfinished delivery, each with all its
 * deliveries and their attempts: as one transaction made them.
 */
export async function removeExpired(
  sql: Sql,
  { fromMs, beforeMs }: ExpiredRange,
  after = 0,
): Promise<RemovedEvents> {
  const [range, ...others] = rangesAfter(await idRangesOf(sql, "event", fromMs, beforeMs), after, "asc");
  if (range === undefined) return { events: 0, deliveries: 0, next: undefined };
  const searched = await sql.rows<{ id: number; bytes: number }>(
    "SELECT rowid AS id, length(payload) AS bytes FROM event WHERE rowid BETWEEN ? AND ? ORDER BY rowid LIMIT ?",
    range.low,
    range.high,
    MAX_REMOVED_ROWS,
  );
  const small = firstWithin(searched, ({ bytes }) => bytes, MAX_REMOVED_BYTES).map(({ id }) => id);
  const owned = await loadOwned(sql, small);
  const cutOff = owned[firstWithin(owned, ({ rows }) => rows, MAX_REMOVED_ROWS).length]?.event;
  const selected = cutOff === undefined ? small : small.slice(0, Math.max(1, small.indexOf(cutOff)));
  const removable = await finishedOf(sql, selected);
  const deliveries = await deleteDeliveries(sql, removable);
  await storeRemoved(sql, removable);
  const events = await deleteEvents(sql, removable);
  const isDone = selected.length === searched.length && searched.length < MAX_REMOVED_ROWS;
  const next = !isDone ? selected.at(-1) : others.length > 0 ? range.high : undefined;
  return { events, deliveries, next };
}

/** Reads how many rows the deliveries of these events have with their attempts, at most; one delivery more than a call should delete. */
async function loadOwned(
  sql: Sql,
  eventIds: readonly number[],
): Promise<readonly { event: number; rows: number }[]> {
  return await sql.rows(
    `SELECT d.event_id AS event, 1 + min(d.attempt, ?2) AS rows
      FROM list(?1: id bigint) AS g CROSS JOIN delivery AS d INDEXED BY delivery_event ON d.event_id = g.id
      ${walkedBy("g.id")} LIMIT ?3`,
    eventIds,
    2 * STORED_AT_EACH_END,
    MAX_REMOVED_ROWS + 1,
  );
}

async function finishedOf(sql: Sql, eventIds: readonly number[]): Promise<readonly number[]> {
  return await sql.column(
    `SELECT g.id FROM list(?: id bigint) AS g WHERE NOT EXISTS (
        SELECT 1 FROM delivery AS d INDEXED BY delivery_event JOIN subscription AS s ON s.rowid = d.subscription_id
        WHERE d.event_id = g.id AND ${UNFINISHED})`,
    eventIds,
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
