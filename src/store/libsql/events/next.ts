import { toIso } from "../../../runtime/clock.ts";
import type { EventBounds, NextEvents, NextPage } from "../../events.ts";
import { loadRemoved } from "../history/retention.ts";
import type { ByteWriter } from "../thread/protocol.ts";
import type { Sql } from "../thread/sql.ts";
import { loadRows, selectActions, type WireEvent } from "./list.ts";
import { addPayloads, type PayloadSpan } from "./payloads.ts";
import { idRangesOf, loadLastNumbers } from "./timeline.ts";

/** An event as it crosses the thread, with its payload if that was asked for. */
export type WireNextEvent = Omit<WireEvent, "payload" | "payloadBytes"> & { readonly payload?: PayloadSpan };

/**
 * Events after a rowid. The one thread that writes gives each event the next rowid in the transaction that commits it, so an
 * event with a smaller rowid than one that was read never comes later.
 */
export function nextEvents(
  sql: Sql,
  query: NextEvents,
  out: ByteWriter,
): Omit<NextPage, "events"> & { readonly events: readonly WireNextEvent[] } {
  const { after, limit, maxBytes, payloads } = query;
  const { event: last } = loadLastNumbers(sql);
  if (after >= last) return { events: [], through: after, isFull: false, removed: loadRemoved(sql).event };
  const { ids, through: looked = last } = idsAfter(sql, query, last);
  const { rows, isCut } = loadRows(sql, ids, payloads ? maxBytes : Infinity);
  const isFull = isCut || ids.length === limit || looked < last;
  const lastId = isCut ? rows.at(-1)?.eventId : ids.at(-1);
  const through = isCut || ids.length === limit ? (lastId ?? looked) : looked;
  const spans = payloads ? addPayloads(sql, rows, out) : undefined;
  const events = rows.map(({ eventId: rowid, action, application, revision, timestamped_ms: ms }) => {
    const event: WireNextEvent = { rowid, action, application, revision, timestamped: toIso(ms) };
    return spans === undefined ? event : Object.assign(event, { payload: spans.get(rowid)! });
  });
  return { events, through, isFull, removed: loadRemoved(sql).event };
}

/** Where the events of some actions are looked for at once: each part is sorted by itself. */
const PART_ROWIDS = 4_096;
/** A call looks at so many parts, so that others get their turn where there are few such events. */
const MAX_PARTS = 32;

/** The next events, and up to where they were looked for if that is not the end. */
interface Ids {
  readonly ids: readonly number[];
  readonly through?: number;
}

function idsAfter(sql: Sql, { after, limit, action, applications }: NextEvents, last: number): Ids {
  if (action === undefined && applications === undefined)
    return { ids: idsOf(sql, "event WHERE TRUE", after, last, limit) };
  const { actions } = selectActions(sql, {
    ...(action && { action }),
    ...(applications && { applications }),
  });
  if (actions.length === 0) return { ids: [] };
  const [only] = actions;
  if (actions.length === 1) {
    return { ids: idsOf(sql, `event INDEXED BY event_action WHERE action_id = ${only}`, after, last, limit) };
  }
  const listed = JSON.stringify(actions);
  const ids: number[] = [];
  for (let low = after + 1, parts = 0; low <= last && ids.length < limit; parts += 1) {
    if (parts === MAX_PARTS) return { ids, through: low - 1 };
    // Past what a restore skipped, or retention removed.
    const start = sql.value<number | null>("SELECT (SELECT min(rowid) FROM event WHERE rowid >= ?)", low);
    if (start === null) break;
    const high = Math.min(last, start + PART_ROWIDS - 1);
    const rows = sql.rows<{ id: number }>(
      `SELECT e.rowid AS id FROM json_each(?1) AS a CROSS JOIN event AS e INDEXED BY event_action
        WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3 ORDER BY e.rowid LIMIT ?4`,
      listed,
      start,
      high,
      limit - ids.length,
    );
    ids.push(...rows.map(({ id }) => id));
    low = high + 1;
  }
  return { ids };
}

function idsOf(sql: Sql, source: string, after: number, last: number, limit: number): readonly number[] {
  const rows = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM ${source} AND rowid > ?1 AND rowid <= ?2 ORDER BY rowid LIMIT ?3`,
    after,
    last,
    limit,
  );
  return rows.map(({ id }) => id);
}

export function eventBounds(sql: Sql, fromMs?: number): EventBounds {
  const { event: last } = loadLastNumbers(sql);
  const removed = loadRemoved(sql);
  if (fromMs === undefined) return { last, before: last, removed };
  const [range] = idRangesOf(sql, "event", fromMs, undefined);
  if (range === undefined) return { last, before: last, removed };
  // The range may begin with rowids whose events were removed.
  const first = sql.value<number | null>("SELECT min(rowid) FROM event WHERE rowid >= ?", range.low);
  return { last, before: (first ?? last + 1) - 1, removed };
}
