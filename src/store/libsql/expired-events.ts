import type { ExpiredEvents, ExpiredSelection } from "../events.ts";
import type { Steps } from "./read-steps.ts";
import type { Sql } from "./sql.ts";
import { beyond, rowidRanges } from "./time-range.ts";
import { UNFINISHED } from "./delivery-row.ts";

/** Events of a step. */
const SOME_EVENTS = 200;
/** Deliveries of a step; each takes two microseconds. */
const SOME_DELIVERIES = 300;

/** Stands behind every subscription of an event. */
const LAST = Number.MAX_SAFE_INTEGER;

/**
 * Looks through events by rowid, and at all deliveries of each, in steps. What it answers was so when it was read; whoever
 * deletes has to look again.
 */
export function* findExpired(sql: Sql, query: ExpiredSelection): Steps<ExpiredEvents> {
  const { fromMs, beforeMs, after = 0, most } = query;
  const ranges = yield* rowidRanges(sql, "event", fromMs, beforeMs);
  const removable: number[] = [];
  let looked = 0;
  for (const { low, high } of beyond(ranges, after, "asc")) {
    for (let at = low; at <= high;) {
      const ids = sql
        .rows<{ id: number }>(
          "SELECT rowid AS id FROM event WHERE rowid BETWEEN ? AND ? ORDER BY rowid LIMIT ?",
          at,
          high,
          Math.min(SOME_EVENTS, most - looked),
        )
        .map(({ id }) => id);
      const last = ids.at(-1);
      if (last === undefined) break;
      yield;
      const kept = yield* unfinishedAmong(sql, at, last);
      removable.push(...ids.filter((id) => !kept.has(id)));
      looked += ids.length;
      if (looked >= most) return { events: removable, after: last };
      at = last + 1;
    }
  }
  return { events: removable, after: undefined };
}

/** The events with these rowids that have an unfinished delivery. */
function* unfinishedAmong(sql: Sql, low: number, high: number): Steps<ReadonlySet<number>> {
  const kept = new Set<number>();
  for (let last = { event: low, subscription: 0 }; ;) {
    const slice = sql.rows<{ event: number; subscription: number; is_unfinished: number }>(
      `SELECT d.event_id AS event, d.subscription_id AS subscription, ${UNFINISHED} AS is_unfinished
        FROM delivery AS d INDEXED BY delivery_event
        CROSS JOIN subscription AS s ON s.rowid = d.subscription_id
        WHERE (d.event_id, d.subscription_id) > (?, ?) AND d.event_id <= ?
        ORDER BY d.event_id, d.subscription_id LIMIT ?`,
      last.event,
      last.subscription,
      high,
      SOME_DELIVERIES,
    );
    for (const { event, is_unfinished: isUnfinished } of slice) if (isUnfinished === 1) kept.add(event);
    yield;
    const end = slice.at(-1);
    if (end === undefined || slice.length < SOME_DELIVERIES) return kept;
    // One is enough: the rest of that event's need no look.
    last = { event: end.event, subscription: kept.has(end.event) ? LAST : end.subscription };
  }
}
