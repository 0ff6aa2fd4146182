import type { EventBounds, ExpiredRange, RemovedEvents } from "../../events.ts";
import { deleteEvents } from "../events/counts.ts";
import { idRangesOf, rangesAfter } from "../events/timeline.ts";
import { STORED_AT_EACH_END } from "../queue/attempts.ts";
import { UNFINISHED } from "../queue/delivery-state.ts";
import { type Sql, timeOf } from "../thread/sql.ts";

/**
 * One call looks at so many events, and looks at or deletes so many deliveries and attempts; each takes some five microseconds.
 */
export const MAX_REMOVED_ROWS = 400;
/** One call deletes so many bytes of payloads: the engine looks at every page of them, a quarter of a millisecond per MiB. */
const MAX_REMOVED_BYTES = 2 * 1024 * 1024;

interface OwnedDelivery {
  readonly id: number;
  readonly event: number;
  /** The rows of the delivery and its attempts, at most. */
  readonly rows: number;
  readonly is_unfinished: number;
}

/**
 * Looks at the next events of the range, and deletes those without an unfinished delivery, each with its deliveries and their
 * attempts. One with more deliveries than a call may delete loses some in each.
 */
export function removeExpired(sql: Sql, { fromMs, beforeMs }: ExpiredRange, after = 0): RemovedEvents {
  const [range, ...others] = rangesAfter(idRangesOf(sql, "event", fromMs, beforeMs), after, "asc");
  if (range === undefined) return { events: 0, deliveries: 0, next: undefined };
  const searched = sql.rows<{ id: number; bytes: number }>(
    "SELECT rowid AS id, length(payload) AS bytes FROM event WHERE rowid BETWEEN ? AND ? ORDER BY rowid LIMIT ?",
    range.low,
    range.high,
    MAX_REMOVED_ROWS,
  );
  const selected = firstWithin(searched, ({ bytes }) => bytes, MAX_REMOVED_BYTES).map(({ id }) => id);
  const owned = loadOwned(sql, selected);
  const reached = firstWithin(owned, ({ rows }) => rows, MAX_REMOVED_ROWS);
  const unfinished = new Set(reached.filter((row) => row.is_unfinished === 1).map(({ event }) => event));
  const cutOff = owned[reached.length]?.event;
  const whole = cutOff === undefined ? selected : selected.slice(0, selected.indexOf(cutOff));
  // An event whose deliveries are cut off is left for the next call, unless it is the first.
  const isPart = cutOff !== undefined && whole.length === 0;
  if (isPart && hasUnfinished(sql, cutOff)) return { events: 0, deliveries: 0, next: cutOff };
  const removable = whole.filter((id) => !unfinished.has(id));
  const emptied = new Set(isPart ? [cutOff] : removable);
  const deliveries = reached.filter(({ event }) => emptied.has(event)).map(({ id }) => id);
  deleteDeliveries(sql, deliveries);
  storeRemoved(sql, removable);
  const events = deleteEvents(sql, removable);
  if (events > 0) dropOldClockSteps(sql);
  const last = isPart ? cutOff - 1 : (whole.at(-1) ?? range.high);
  const isDone = whole.length === searched.length && searched.length < MAX_REMOVED_ROWS;
  const next = !isDone ? last : others.length > 0 ? range.high : undefined;
  return { events, deliveries: deliveries.length, next };
}

/** Answers the first rows whose sum is within the limit, and at least one. */
function firstWithin<T>(rows: readonly T[], amountOf: (row: T) => number, max: number): readonly T[] {
  let sum = 0;
  const end = rows.findIndex((row, index) => (sum += amountOf(row)) > max && index > 0);
  return end < 0 ? rows : rows.slice(0, end);
}

/** Reads the deliveries of these events, event by event, with one more than one call may delete. */
function loadOwned(sql: Sql, eventIds: readonly number[]): readonly OwnedDelivery[] {
  return sql.rows(
    `SELECT d.rowid AS id, d.event_id AS event, 1 + min(d.attempt, ?2) AS rows, ${UNFINISHED} AS is_unfinished
      FROM json_each(?1) AS g CROSS JOIN delivery AS d INDEXED BY delivery_event ON d.event_id = g.value
      LEFT JOIN subscription AS s ON s.rowid = d.subscription_id
      LIMIT ?3`,
    JSON.stringify(eventIds),
    2 * STORED_AT_EACH_END,
    MAX_REMOVED_ROWS + 1,
  );
}

function hasUnfinished(sql: Sql, eventId: number): boolean {
  const unfinished = sql.first(
    `SELECT 1 FROM delivery AS d INDEXED BY delivery_event CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
      WHERE d.event_id = ? AND ${UNFINISHED} LIMIT 1`,
    eventId,
  );
  return unfinished !== undefined;
}

function deleteDeliveries(sql: Sql, ids: readonly number[]): void {
  const list = JSON.stringify(ids);
  sql.run("DELETE FROM attempt WHERE delivery_id IN (SELECT value FROM json_each(?))", list);
  sql.run("DELETE FROM delivery WHERE rowid IN (SELECT value FROM json_each(?))", list);
}

/** Stores what was removed, so that whoever reads events from a place on knows whether some are missing. */
function storeRemoved(sql: Sql, eventIds: readonly number[]): void {
  sql.run(
    `INSERT INTO removed_events (one, last_event, last_ms)
      SELECT 1, e.rowid, ${timeOf("e.timestamped_ms")}
      FROM json_each(?) AS g CROSS JOIN event AS e ON e.rowid = g.value WHERE TRUE
      ON CONFLICT (one) DO UPDATE SET last_event = max(last_event, excluded.last_event),
        last_ms = max(last_ms, excluded.last_ms)`,
    JSON.stringify(eventIds),
  );
}

/** Answers what retention has removed; 0 where it has removed nothing. */
export function loadRemoved(sql: Sql): EventBounds["removed"] {
  const row = sql.first<EventBounds["removed"]>(
    "SELECT last_event AS event, last_ms AS ms FROM removed_events",
  );
  return row ?? { event: 0, ms: 0 };
}

/** Removes clock steps that separate nothing, as no rows are left before them. */
function dropOldClockSteps(sql: Sql): void {
  sql.run(
    `DELETE FROM clock_step
      WHERE first_event <= (SELECT coalesce(min(rowid), ?1) FROM event)
        AND first_delivery <= (SELECT coalesce(min(rowid), ?1) FROM delivery)`,
    Number.MAX_SAFE_INTEGER,
  );
}
