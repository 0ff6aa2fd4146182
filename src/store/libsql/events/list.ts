import { toIso } from "../../../runtime/clock.ts";
import type {
  EventBounds,
  EventPage,
  EventSelection,
  NextEvents,
  NextPage,
  StoredEvent,
} from "../../events.ts";
import { loadRemoved } from "../history/retention.ts";
import type { ByteWriter } from "../thread/protocol.ts";
import { isRowid, type Sql, timeOf, wholeOf } from "../thread/sql.ts";
import { EventCounter } from "./counts.ts";
import { addPayloads, PAYLOAD_BYTES, type PayloadRequest, type PayloadSpan } from "./payloads.ts";
import { rangesAfter, type RowidRange, idRangesOf, loadLastNumbers } from "./timeline.ts";
import { type ActionFilter, selectActions, walkEvents } from "./walk.ts";

/** An event as it crosses the thread, with its payload if that was asked for. */
export type WireEvent = Omit<StoredEvent, "payload"> & { readonly payload?: PayloadSpan };

type WirePage = Omit<EventPage, "events"> & { readonly events: readonly WireEvent[] };

interface ListedEventRow extends PayloadRequest {
  readonly action: string;
  readonly application: string;
  readonly revision: number;
  readonly timestamped_ms: number;
}

const SELECT_EVENT = `
  SELECT e.rowid AS eventId, a.action, a.application, ${PAYLOAD_BYTES} AS payloadBytes,
    ${wholeOf("e.revision")} AS revision, ${timeOf("e.timestamped_ms")} AS timestamped_ms`;

export function findEvent(sql: Sql, id: number, out: ByteWriter): WireEvent | undefined {
  if (!isRowid(id)) return undefined;
  const row = sql.first<ListedEventRow>(
    `${SELECT_EVENT} FROM event e JOIN action a ON a.rowid = e.action_id WHERE e.rowid = ?`,
    id,
  );
  return row === undefined ? undefined : eventsOf(sql, [row], out)[0];
}

/**
 * Lists events newest or oldest first by rowid, so that an `after` walk never changes behind itself. A page begins after the
 * last event of the page before it, which is found by counts, as the total is (see `counts.ts`).
 */
export function listEvents(sql: Sql, query: EventSelection, out: ByteWriter, blockRowids?: number): WirePage {
  const { after, order, limit } = query;
  const filter = selectActions(sql, query);
  if (filter.actions?.length === 0) return emptyPage(0);
  let ranges = idRangesOf(sql, "event", query.fromMs, query.toMs);
  if (query.idempotencyKey !== undefined) ranges = onlyWithKey(sql, query.idempotencyKey, ranges, filter);
  const counter = new EventCounter(sql, filter, blockRowids);
  const isCounted = after === undefined || query.total !== false;
  const total = isCounted ? counter.count(ranges) : 0;
  const skip = after === undefined ? (query.page - 1) * limit : 0;
  if (isCounted && skip >= total) return emptyPage(total);

  const last = skip === 0 ? after : counter.rowidAt(ranges, order === "asc" ? skip - 1 : total - skip);
  const onward = last === undefined ? ranges : rangesAfter(ranges, last, order);
  const ids = walkEvents(sql, filter, onward, order, limit);
  const possible = query.holding === undefined ? ids : idsHolding(sql, ids, query.holding);
  const isBare = query.payloads === false;
  const { rows, isCut } = loadRows(sql, possible, isBare ? Infinity : query.maxBytes);
  const events = isBare ? rows.map(withoutPayload) : eventsOf(sql, rows, out);
  const placeOf = new Map(ids.map((id, index) => [id, index + 1]));
  const places = events.map(({ rowid }) => placeOf.get(rowid)!);
  const seen = isCut ? placeOf.get(rows.at(-1)!.eventId)! : ids.length;
  return { events, places, seen, last: ids[seen - 1], total, isCut };
}

function emptyPage(total: number): WirePage {
  return { events: [], places: [], seen: 0, last: undefined, total, isCut: false };
}

/**
 * Answers the parts of the ranges that have the events with this idempotency key: one event of an application, or of an action
 * that came to it.
 */
function onlyWithKey(
  sql: Sql,
  key: string,
  ranges: readonly RowidRange[],
  { actions }: ActionFilter,
): readonly RowidRange[] {
  return sql
    .rows<{ id: number }>(
      `SELECT rowid AS id FROM event WHERE idempotency_key = ?1
        AND (?2 IS NULL OR action_id IN (SELECT value FROM json_each(?2))) ORDER BY rowid`,
      key,
      actions === undefined ? null : JSON.stringify(actions),
    )
    .filter(({ id }) => ranges.some(({ low, high }) => id >= low && id <= high))
    .map(({ id }) => ({ low: id, high: id }));
}

/** JSON that has a backslash may hold any text. */
const WITH_ESCAPE = "instr(e.payload, x'5c') > 0";

/** Answers those of the events whose payloads may hold a text of each list as a value. */
function idsHolding(
  sql: Sql,
  ids: readonly number[],
  lists: readonly (readonly string[])[],
): readonly number[] {
  const values: Uint8Array[] = [];
  const conditions = lists.map((texts) => {
    const ways = texts.filter(needsNoEscape).map((text) => {
      values.push(Buffer.from(`"${text}"`));
      return `instr(e.payload, ?${values.length + 1}) > 0`;
    });
    return `(${[WITH_ESCAPE, ...ways].join(" OR ")})`;
  });
  const rows = sql.rows<{ id: number }>(
    `SELECT e.rowid AS id FROM json_each(?1) AS page CROSS JOIN event AS e ON e.rowid = page.value
      WHERE ${conditions.join(" AND ")}`,
    JSON.stringify(ids),
    ...values,
  );
  return rows.map(({ id }) => id);
}

function needsNoEscape(text: string): boolean {
  return JSON.stringify(text) === `"${text}"`;
}

/** Reads the first rows of events whose payloads fit, and at least one. */
function loadRows(
  sql: Sql,
  ids: readonly number[],
  maxBytes = Infinity,
): { readonly rows: readonly ListedEventRow[]; readonly isCut: boolean } {
  const rows = sql.rows<ListedEventRow>(
    `${SELECT_EVENT} FROM json_each(?) AS page
      CROSS JOIN event AS e ON e.rowid = page.value CROSS JOIN action AS a ON a.rowid = e.action_id`,
    JSON.stringify(ids),
  );
  let bytes = 0;
  for (const [index, { payloadBytes }] of rows.entries()) {
    bytes += payloadBytes;
    if (index > 0 && bytes > maxBytes) return { rows: rows.slice(0, index), isCut: true };
  }
  return { rows, isCut: false };
}

function eventsOf(sql: Sql, rows: readonly ListedEventRow[], out: ByteWriter): readonly WireEvent[] {
  const spans = addPayloads(sql, rows, out);
  return rows.map((row) => ({ ...withoutPayload(row), payload: spans.get(row.eventId)! }));
}

function withoutPayload({ eventId: rowid, timestamped_ms: ms, ...row }: ListedEventRow): WireEvent {
  const { action, application, payloadBytes, revision } = row;
  return { rowid, action, application, payloadBytes, revision, timestamped: toIso(ms) };
}

/** An event as it crosses the thread, with its payload if that was asked for. */
export type WireNextEvent = Omit<WireEvent, "payloadBytes">;

/**
 * Reads the events after a rowid. The one thread that writes gives each event the next rowid in the transaction that commits
 * it, so an event with a smaller rowid than one that was read never comes later.
 */
export function nextEvents(
  sql: Sql,
  query: NextEvents,
  out: ByteWriter,
): Omit<NextPage, "events"> & { readonly events: readonly WireNextEvent[] } {
  const { after, limit, maxBytes, payloads } = query;
  const { event: newest } = loadLastNumbers(sql);
  const { event: removed } = loadRemoved(sql);
  const ids = walkEvents(sql, selectActions(sql, query), [{ low: after + 1, high: newest }], "asc", limit);
  const { rows, isCut } = loadRows(sql, ids, payloads ? maxBytes : Infinity);
  const isFull = isCut || ids.length === limit;
  const through = (isFull ? rows.at(-1)?.eventId : undefined) ?? Math.max(after, newest);
  const spans = payloads ? addPayloads(sql, rows, out) : undefined;
  const events = rows.map(({ eventId: rowid, action, application, revision, timestamped_ms: ms }) => {
    const event: WireNextEvent = { rowid, action, application, revision, timestamped: toIso(ms) };
    return spans === undefined ? event : Object.assign(event, { payload: spans.get(rowid)! });
  });
  return { events, through, isFull, removed };
}

export function eventBounds(sql: Sql, fromMs?: number): EventBounds {
  const { event: last } = loadLastNumbers(sql);
  const removed = loadRemoved(sql);
  const [range] = fromMs === undefined ? [] : idRangesOf(sql, "event", fromMs, undefined);
  if (range === undefined) return { last, before: last, removed };
  // The range may begin with rowids whose events were removed.
  const first = sql.value<number | null>("SELECT min(rowid) FROM event WHERE rowid >= ?", range.low);
  return { last, before: (first ?? last + 1) - 1, removed };
}
