import { toIso } from "../../runtime/clock.ts";
import type { EventSelection, StoredEvent } from "../store.ts";
import type { BytesOut, Span } from "./bytes-out.ts";
import { addPayloads, type PayloadAsked } from "./payload-reads.ts";
import type { Sql, SqlValue } from "./sql.ts";
import { isRowid } from "./text.ts";
import { rowidRange } from "./time-range.ts";

/** An event as it crosses the thread. */
export type WireEvent = Omit<StoredEvent, "payload"> & { readonly payload: Span };

interface EventRow extends PayloadAsked {
  readonly action: string;
  readonly application: string;
  readonly revision: number;
  readonly timestamped_ms: number;
}

const SELECT_EVENT = `
  SELECT e.rowid AS eventId, a.action, a.application, length(e.payload) AS payloadBytes, e.revision, e.timestamped_ms`;

/** Up to this many actions are walked side by side through the index; past it, all events are walked and sifted. */
const WALKED_ACTIONS = 100;

export function findEvent(sql: Sql, id: number, out: BytesOut): WireEvent | undefined {
  if (!isRowid(id)) return undefined;
  const row = sql.first<EventRow>(
    `${SELECT_EVENT} FROM event e JOIN action a ON a.rowid = e.action_id WHERE e.rowid = ?`,
    id,
  );
  return row === undefined ? undefined : eventsOf(sql, [row], out)[0];
}

/**
 * Newest (or oldest) first by rowid: what an `after` walk has passed never changes, even where the clock was set back.
 * The rowids are found in an index alone; payloads are read for the page only.
 */
export function listEvents(
  sql: Sql,
  query: EventSelection,
  out: BytesOut,
): { events: readonly WireEvent[]; total: number } {
  const actions = selectActions(sql, query);
  const range = rowidRange(sql, "event", query.fromMs, query.toMs);
  if (actions?.length === 0 || range === undefined) return { events: [], total: 0 };

  const time: Condition = range.mixed
    ? {
        text: "timestamped_ms >= ? AND timestamped_ms < ?",
        values: [query.fromMs ?? 0, query.toMs ?? Number.MAX_SAFE_INTEGER],
      }
    : { text: "TRUE", values: [] };
  const inRange = (low: number, high: number): Condition => ({
    text: `rowid BETWEEN ? AND ? AND ${time.text}`,
    values: [low, high, ...time.values],
  });

  const counted = walk("count(*) AS n", actions, inRange(range.low, range.high));
  const totals = sql.rows<{ n: number }>(counted.text, ...counted.values);
  const total = totals.reduce((sum, { n }) => sum + n, 0);

  const { order, after, limit } = query;
  const low = after !== undefined && order === "asc" ? Math.max(range.low, after + 1) : range.low;
  const high = after !== undefined && order === "desc" ? Math.min(range.high, after - 1) : range.high;
  const offset = after === undefined ? (query.page - 1) * limit : 0;
  if (offset >= total) return { events: [], total };
  const walked = walk("rowid AS id", actions, inRange(low, high));
  const rows = sql.rows<EventRow>(
    `WITH page (id) AS (${walked.text} ORDER BY 1 ${order} LIMIT ? OFFSET ?)
      ${SELECT_EVENT}
      FROM page CROSS JOIN event AS e ON e.rowid = page.id CROSS JOIN action AS a ON a.rowid = e.action_id`,
    ...walked.values,
    limit,
    offset,
  );
  // Sorted here, as the engine would drag the rows through its sorter.
  const inOrder = rows.toSorted(
    order === "asc" ? (a, b) => a.eventId - b.eventId : (a, b) => b.eventId - a.eventId,
  );
  return { events: eventsOf(sql, inOrder, out), total };
}

interface Condition {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** One query over the events of these actions (all without); with few of them the engine merges ordered walks. */
function walk(what: string, actions: readonly number[] | undefined, within: Condition): Condition {
  if (actions === undefined) {
    return { text: `SELECT ${what} FROM event WHERE ${within.text}`, values: within.values };
  }
  if (actions.length > WALKED_ACTIONS) {
    return {
      text: `SELECT ${what} FROM event NOT INDEXED
        WHERE ${within.text} AND action_id IN (SELECT value FROM json_each(?))`,
      values: [...within.values, JSON.stringify(actions)],
    };
  }
  const one = `SELECT ${what} FROM event INDEXED BY event_action WHERE action_id = ? AND ${within.text}`;
  return {
    text: actions.map(() => one).join(" UNION ALL "),
    values: actions.flatMap((action) => [action, ...within.values]),
  };
}

/** The rowids of the actions asked for; `undefined` for all. */
function selectActions(
  sql: Sql,
  { action, applications }: Pick<EventSelection, "action" | "applications">,
): readonly number[] | undefined {
  if (action === undefined && applications === undefined) return undefined;
  const rows = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM action
      WHERE (?1 IS NULL OR action = ?1) AND (?2 IS NULL OR application IN (SELECT value FROM json_each(?2)))`,
    action ?? null,
    applications === undefined ? null : JSON.stringify(applications),
  );
  return rows.map(({ id }) => id);
}

function eventsOf(sql: Sql, rows: readonly EventRow[], out: BytesOut): readonly WireEvent[] {
  const spans = addPayloads(sql, rows, out);
  return rows.map((row) => ({
    rowid: row.eventId,
    action: row.action,
    application: row.application,
    payload: spans.get(row.eventId)!,
    revision: row.revision,
    timestamped: toIso(row.timestamped_ms),
  }));
}
