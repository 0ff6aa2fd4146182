import type { EventPage, EventSelection, StoredEvent } from "../../events.ts";
import { toIso } from "../../../runtime/clock.ts";
import type { ByteWriter } from "../thread/protocol.ts";
import { isRowid, type Sql, timeOf, wholeOf } from "../thread/sql.ts";
import { type ActionFilter, ALL_ACTIONS, type CountedRange, EventCounter } from "./counts.ts";
import { addPayloads, PAYLOAD_BYTES, type PayloadRequest, type PayloadSpan } from "./payloads.ts";
import { idsHolding } from "./holding.ts";
import { matchOf } from "../catalog/matching.ts";
import { rangesAfter, type RowidRange, idRangesOf } from "./timeline.ts";

/** An event as it crosses the thread, with its payload if that was asked for. */
export type WireEvent = Omit<StoredEvent, "payload"> & { readonly payload?: PayloadSpan };

type WirePage = Omit<EventPage, "events"> & { readonly events: readonly WireEvent[] };

export interface EventRow extends PayloadRequest {
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
  const row = sql.first<EventRow>(
    `${SELECT_EVENT} FROM event e JOIN action a ON a.rowid = e.action_id WHERE e.rowid = ?`,
    id,
  );
  return row === undefined ? undefined : eventsOf(sql, [row], out)[0];
}

/**
 * Newest or oldest first by rowid, so that an `after` walk never changes behind itself. The total and the start of a deep page
 * come from counts (see `counts.ts`).
 */
export function listEvents(sql: Sql, query: EventSelection, out: ByteWriter, blockRowids?: number): WirePage {
  const filter = selectActions(sql, query);
  if (filter.actions.length === 0) return emptyPage(0);
  let ranges = idRangesOf(sql, "event", query.fromMs, query.toMs);
  if (query.idempotencyKey !== undefined) ranges = onlyWithKey(sql, query.idempotencyKey, ranges, filter);
  const counter = new EventCounter(sql, filter, blockRowids);
  const { after, order, limit } = query;
  const isCounted = after === undefined || query.total !== false;
  const counted = isCounted ? counter.count(ranges) : [];
  const total = counted.reduce((sum, { events }) => sum + events, 0);

  const skip = after === undefined ? (query.page - 1) * limit : 0;
  if (isCounted && skip >= total) return emptyPage(total);
  const onward = after === undefined ? ranges : rangesAfter(ranges, after, order);
  const page = { filter, order, limit, skip };
  let ids: readonly number[];
  if (filter.counted.length === 1) {
    ids = pageOfAction(sql, counter, page, onward, counted);
  } else {
    ids = pageOfActions(sql, counter, page, after === undefined ? counted : counter.count(onward));
  }
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

/** The parts of the ranges that have the events with this idempotency key: one of an application, or of an action that came to it. */
function onlyWithKey(
  sql: Sql,
  key: string,
  ranges: readonly RowidRange[],
  { actions }: ActionFilter,
): readonly RowidRange[] {
  return sql
    .rows<{ id: number }>(
      `SELECT rowid AS id FROM event
        WHERE idempotency_key = ? AND action_id IN (SELECT value FROM json_each(?)) ORDER BY rowid`,
      key,
      JSON.stringify(actions),
    )
    .filter(({ id }) => ranges.some(({ low, high }) => id >= low && id <= high))
    .map(({ id }) => ({ low: id, high: id }));
}

/** The rows of events: the first ones whose payloads fit, and at least one. */
export function loadRows(
  sql: Sql,
  ids: readonly number[],
  maxBytes = Infinity,
): { readonly rows: readonly EventRow[]; readonly isCut: boolean } {
  const rows = sql.rows<EventRow>(
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

export function selectActions(
  sql: Sql,
  { action, applications }: Pick<EventSelection, "action" | "applications">,
): ActionFilter {
  const named = action === undefined ? { condition: "TRUE", values: [] } : matchOf(action, "action");
  const rows = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM action
      WHERE ${applications === undefined ? "? IS NULL" : "application IN (SELECT value FROM json_each(?))"}
        AND ${named.condition}`,
    applications === undefined ? null : JSON.stringify(applications),
    ...named.values,
  );
  const actions = rows.map(({ id }) => id);
  const all = action === undefined && applications === undefined;
  return { actions, counted: all ? [ALL_ACTIONS] : actions };
}

function eventsOf(sql: Sql, rows: readonly EventRow[], out: ByteWriter): readonly WireEvent[] {
  const spans = addPayloads(sql, rows, out);
  return rows.map((row) => ({ ...withoutPayload(row), payload: spans.get(row.eventId)! }));
}

function withoutPayload({ eventId: rowid, timestamped_ms: ms, ...row }: EventRow): WireEvent {
  const { action, application, payloadBytes, revision } = row;
  return { rowid, action, application, payloadBytes, revision, timestamped: toIso(ms) };
}

type Order = EventSelection["order"];

/** One page of what matches the filter. */
interface PageRequest {
  readonly filter: ActionFilter;
  readonly order: Order;
  readonly limit: number;
  /** Events before it. */
  readonly skip: number;
}

/** Walks the index of one action, or the events of all, from where the page begins. */
function pageOfAction(
  sql: Sql,
  counter: EventCounter,
  { filter, order, limit, skip }: PageRequest,
  ranges: readonly RowidRange[],
  counted: readonly CountedRange[],
): readonly number[] {
  const start = skip === 0 ? undefined : findPageStart(counter, stackOf(counted, order), skip, order);
  if (skip > 0 && start === undefined) return [];
  const [action] = filter.counted;
  const source =
    action === ALL_ACTIONS ? "event WHERE TRUE" : "event INDEXED BY event_action WHERE action_id = ?4";
  const ids: number[] = [];
  let offset = start?.skip ?? 0;
  for (const range of order === "asc" ? ranges : ranges.toReversed()) {
    const low = order === "asc" ? Math.max(range.low, start?.part.low ?? 0) : range.low;
    const high = order === "desc" ? Math.min(range.high, start?.part.high ?? Infinity) : range.high;
    if (low > high) continue;
    const rows = sql.rows<{ id: number }>(
      `SELECT rowid AS id FROM ${source} AND rowid BETWEEN ?1 AND ?2 ORDER BY rowid ${order} LIMIT ?3 OFFSET ?5`,
      low,
      high,
      limit - ids.length,
      action ?? ALL_ACTIONS,
      offset,
    );
    offset = 0;
    ids.push(...rows.map(({ id }) => id));
    if (ids.length >= limit) break;
  }
  return ids;
}

/** Goes through the events of several actions part by part: each is sorted by itself, which is never many. */
function pageOfActions(
  sql: Sql,
  counter: EventCounter,
  { filter, order, limit, skip }: PageRequest,
  counted: readonly CountedRange[],
): readonly number[] {
  const actions = JSON.stringify(filter.actions);
  const stack = stackOf(counted, order);
  const ids: number[] = [];
  for (let remaining = skip; ids.length < limit; remaining = 0) {
    const start = findPageStart(counter, stack, remaining, order);
    if (start === undefined) break;
    const rows = sql.rows<{ id: number }>(
      `SELECT e.rowid AS id FROM json_each(?1) AS a CROSS JOIN event AS e INDEXED BY event_action
        WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3 ORDER BY e.rowid ${order} LIMIT ?4 OFFSET ?5`,
      actions,
      start.part.low,
      start.part.high,
      limit - ids.length,
      start.skip,
    );
    ids.push(...rows.map(({ id }) => id));
  }
  return ids;
}

/** A page begins in this part, after `skip` of its events. */
interface PageStart {
  readonly part: CountedRange;
  readonly skip: number;
}

/** Skips `skip` events. Takes parts from the end of `stack`, and halves runs of blocks where needed. */
function findPageStart(
  counter: EventCounter,
  stack: CountedRange[],
  skip: number,
  order: Order,
): PageStart | undefined {
  let remaining = skip;
  for (let part = stack.pop(); part !== undefined; part = stack.pop()) {
    if (part.events <= remaining) remaining -= part.events;
    else if (!part.isRun) return { part, skip: remaining };
    else stack.push(...stackOf(counter.halve(part), order));
  }
  return undefined;
}

/** The next one last. */
function stackOf(counted: readonly CountedRange[], order: Order): CountedRange[] {
  return order === "asc" ? counted.toReversed() : [...counted];
}
