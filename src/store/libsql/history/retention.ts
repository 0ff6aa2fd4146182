import type { ExpiredRange, RemovedEvents } from "../../events.ts";
import { deleteEvents } from "../events/counts.ts";
import { rangesAfter, idRangesOf } from "../events/timeline.ts";
import { STORED_AT_EACH_END } from "../queue/attempts.ts";
import { UNFINISHED } from "../queue/delivery-state.ts";
import { type Sql, timeOf } from "../thread/sql.ts";

/** Events that can be removed, and from where to look for more. */
export interface ExpiredEvents {
  /** Rowids of those found, rising. */
  readonly events: readonly number[];
  /** `undefined` when all were looked at. */
  readonly after: number | undefined;
}

/**
 * Events that one search looks at, each with its deliveries up to the first that is unfinished. What one transaction does not
 * remove of them is looked for again.
 */
const MAX_SEARCHED = 400;

/** Looks at events with larger rowids than `after`, and at the deliveries of each. Whoever deletes them has to look again. */
export function findExpired(
  sql: Sql,
  { fromMs, beforeMs }: ExpiredRange,
  after = 0,
  max = MAX_SEARCHED,
): ExpiredEvents {
  const removable: number[] = [];
  let left = max;
  for (const { low, high } of rangesAfter(idRangesOf(sql, "event", fromMs, beforeMs), after, "asc")) {
    const found = sql.rows<{ id: number; is_unfinished: number }>(
      `SELECT e.rowid AS id, EXISTS (SELECT 1 FROM delivery AS d INDEXED BY delivery_event
          CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
          WHERE d.event_id = e.rowid AND ${UNFINISHED}) AS is_unfinished
        FROM event AS e WHERE e.rowid BETWEEN ? AND ? ORDER BY e.rowid LIMIT ?`,
      low,
      high,
      left,
    );
    for (const { id, is_unfinished: isUnfinished } of found) if (isUnfinished === 0) removable.push(id);
    left -= found.length;
    if (left <= 0) return { events: removable, after: found.at(-1)?.id };
  }
  return { events: removable, after: undefined };
}

/** Deliveries and attempts that one call deletes, and as many events; each takes some five microseconds. */
export const MAX_REMOVED_ROWS = 400;
/** Payload that one call deletes: the engine looks at every page of it, a quarter of a millisecond per MiB. */
const MAX_REMOVED_BYTES = 2 * 1024 * 1024;

interface OwnedDelivery {
  readonly id: number;
  readonly event: number;
  /** It and its attempts, at most. */
  readonly rows: number;
  readonly is_unfinished: number;
}

/**
 * Deletes events in the order given, each with its deliveries and their attempts, until a transaction has enough: `handled` are
 * done. One with more deliveries than that loses some in each call. One that has an unfinished delivery by now stays.
 */
export function removeEvents(
  sql: Sql,
  eventIds: readonly number[],
  maxRows = MAX_REMOVED_ROWS,
): Omit<RemovedEvents, "next"> & { readonly handled: number } {
  const selected = withinPayloadBytes(sql, eventIds.slice(0, maxRows));
  const { owned, cutOff } = loadOwned(sql, selected, maxRows);
  const unfinished = new Set(owned.filter((row) => row.is_unfinished === 1).map(({ event }) => event));
  const whole = selected.slice(0, cutOff === undefined ? selected.length : selected.indexOf(cutOff));
  // The one whose deliveries are cut off is left for the next call, unless it is the first.
  const isPart = whole.length === 0 && selected.length > 0;
  const reached = new Set(isPart ? selected.slice(0, 1) : whole);
  const deliveries = owned
    .filter(({ event }) => reached.has(event) && !unfinished.has(event))
    .map(({ id }) => id);
  const removed = JSON.stringify(deliveries);
  sql.run("DELETE FROM attempt WHERE delivery_id IN (SELECT value FROM json_each(?))", removed);
  sql.run("DELETE FROM delivery WHERE rowid IN (SELECT value FROM json_each(?))", removed);
  const removable = whole.filter((id) => !unfinished.has(id));
  noteRemoved(sql, removable);
  const events = deleteEvents(sql, removable);
  if (events > 0) dropOldClockSteps(sql);
  const handled = isPart && unfinished.size > 0 ? 1 : whole.length;
  return { handled, events, deliveries: deliveries.length };
}

/** So that whoever reads events from a place on knows whether some are missing. */
function noteRemoved(sql: Sql, eventIds: readonly number[]): void {
  sql.run(
    `INSERT INTO removed_events (one, last_event, last_ms)
      SELECT 1, e.rowid, ${timeOf("e.timestamped_ms")}
      FROM json_each(?) AS g CROSS JOIN event AS e ON e.rowid = g.value WHERE TRUE
      ON CONFLICT (one) DO UPDATE SET last_event = max(last_event, excluded.last_event),
        last_ms = max(last_ms, excluded.last_ms)`,
    JSON.stringify(eventIds),
  );
}

/** What retention has removed; 0 where it has removed nothing. */
export function loadRemoved(sql: Sql): { readonly event: number; readonly ms: number } {
  const row = sql.first<{ event: number; ms: number }>(
    "SELECT last_event AS event, last_ms AS ms FROM removed_events",
  );
  return { event: row?.event ?? 0, ms: row?.ms ?? 0 };
}

/** The first events whose payloads fit into one call, and at least one. */
function withinPayloadBytes(sql: Sql, eventIds: readonly number[]): readonly number[] {
  const rows = sql.rows<{ id: number; bytes: number }>(
    `SELECT e.rowid AS id, length(e.payload) AS bytes
      FROM json_each(?) AS g CROSS JOIN event AS e ON e.rowid = g.value`,
    JSON.stringify(eventIds),
  );
  const bytes = new Map(rows.map((row) => [row.id, row.bytes]));
  let sum = 0;
  const end = eventIds.findIndex((id, index) => (sum += bytes.get(id) ?? 0) > MAX_REMOVED_BYTES && index > 0);
  return end < 0 ? eventIds : eventIds.slice(0, end);
}

/** Their deliveries, event by event: as many as one call may delete, and at least one. `cutOff` has more. */
function loadOwned(
  sql: Sql,
  eventIds: readonly number[],
  maxRows: number,
): { owned: readonly OwnedDelivery[]; cutOff: number | undefined } {
  const found = sql.rows<OwnedDelivery>(
    `SELECT d.rowid AS id, d.event_id AS event, 1 + min(d.attempt, ?2) AS rows,
        ${UNFINISHED} AS is_unfinished
      FROM json_each(?1) AS g CROSS JOIN delivery AS d INDEXED BY delivery_event ON d.event_id = g.value
      LEFT JOIN subscription AS s ON s.rowid = d.subscription_id
      LIMIT ?3`,
    JSON.stringify(eventIds),
    2 * STORED_AT_EACH_END,
    maxRows + 1,
  );
  let sum = 0;
  const end = found.findIndex(({ rows }, index) => (sum += rows) > maxRows && index > 0);
  return { owned: end < 0 ? found : found.slice(0, end), cutOff: found[end]?.event };
}

/** A clock step without rows before it separates nothing. */
function dropOldClockSteps(sql: Sql): void {
  sql.run(
    `DELETE FROM clock_step
      WHERE first_event <= (SELECT coalesce(min(rowid), ?1) FROM event)
        AND first_delivery <= (SELECT coalesce(min(rowid), ?1) FROM delivery)`,
    Number.MAX_SAFE_INTEGER,
  );
}
