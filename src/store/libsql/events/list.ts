import { toIso } from "../../../runtime/clock.ts";
import type {
  EventBounds,
  EventPage,
  EventSelection,
  NextEvent,
  NextEvents,
  NextPage,
  RowidRange,
  StoredEvent,
} from "../../events.ts";
import { loadRemoved } from "../history/retention.ts";
import type { Work } from "../thread/operation.ts";
import { isRowid, type Sql, timeOf, wholeOf } from "../thread/sql.ts";
import { PAYLOAD_BYTES, type PayloadRequest, readPayloads } from "./payloads.ts";
import { SelectedEvents } from "./selected-events.ts";
import { idRangesOf, loadLastNumbers, rangesAfter } from "./timeline.ts";

interface EventRow extends PayloadRequest {
  readonly action: string;
  readonly application: string;
  readonly revision: number;
  readonly timestamped_ms: number;
}

const SELECT_EVENT = `
  SELECT e.rowid AS eventId, a.action, a.application, ${PAYLOAD_BYTES} AS payloadBytes,
    ${wholeOf("e.revision")} AS revision, ${timeOf("e.timestamped_ms")} AS timestamped_ms`;

export function findEvent(work: Work, id: number): StoredEvent | undefined {
  return isRowid(id) ? readEvents(work, [id]).events.map(storedEvent)[0] : undefined;
}

/**
 * Lists events newest or oldest first by rowid, so that an `after` walk never changes behind itself. A page begins after the
 * last event of the page before it, which is found by counts, as the total is (see `counts.ts`).
 */
export function listEvents(work: Work, query: EventSelection): EventPage {
  const { after, order, limit, idempotencyKey: key } = query;
  const selected = SelectedEvents.matching(work, query);
  const time = idRangesOf(work, "event", query.fromMs, query.toMs);
  const ranges = key === undefined ? time : rangesWithKey(work, key, time);
  const isCounted = after === undefined || query.total !== false;
  const total = isCounted ? selected.count(ranges) : 0;
  const skip = after === undefined ? (query.page - 1) * limit : 0;
  if (isCounted && skip >= total)
    return { events: [], places: [], seen: 0, last: undefined, total, isCut: false };

  const last = skip === 0 ? after : selected.rowidAt(ranges, order === "asc" ? skip - 1 : total - skip);
  const onward = last === undefined ? ranges : rangesAfter(ranges, last, order);
  const ids = selected.walk(onward, order, limit);
  const possible = query.holding === undefined ? ids : idsHolding(work, ids, query.holding);
  const { events, isCut } = readEvents(work, possible, query);
  const placeOf = new Map(ids.map((id, index) => [id, index + 1]));
  const places = events.map(({ rowid }) => placeOf.get(rowid)!);
  const seen = isCut ? places.at(-1)! : ids.length;
  return { events: events.map(storedEvent), places, seen, last: ids[seen - 1], total, isCut };
}

/**
 * Answers the parts of the ranges that have the events with this idempotency key: one event of an application, or of an action
 * that came to it.
 */
function rangesWithKey(sql: Sql, key: string, ranges: readonly RowidRange[]): readonly RowidRange[] {
  return sql
    .rows<{ id: number }>("SELECT rowid AS id FROM event WHERE idempotency_key = ? ORDER BY rowid", key)
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

/** An event with its payload, if that was asked for; the payload is `null` if it is damaged. */
type ReadEvent = NextEvent & Pick<StoredEvent, "payloadBytes">;

function storedEvent(event: ReadEvent): StoredEvent {
  return { ...event, payload: event.payload ?? undefined };
}

/** Reads the first of the events whose payloads fit, and at least one. */
function readEvents(
  work: Work,
  ids: readonly number[],
  { payloads = true, maxBytes = Infinity }: Pick<EventSelection, "payloads" | "maxBytes"> = {},
): { readonly events: readonly ReadEvent[]; readonly isCut: boolean } {
  const rows = work.rows<EventRow>(
    `${SELECT_EVENT} FROM json_each(?) AS page
      CROSS JOIN event AS e ON e.rowid = page.value CROSS JOIN action AS a ON a.rowid = e.action_id`,
    JSON.stringify(ids),
  );
  let bytes = 0;
  const end = rows.findIndex(({ payloadBytes }, index) => (bytes += payloadBytes) > maxBytes && index > 0);
  const isCut = payloads && end >= 0;
  const fitting = isCut ? rows.slice(0, end) : rows;
  const read = payloads ? readPayloads(work, fitting) : undefined;
  const events = fitting.map((row): ReadEvent => {
    const { eventId: rowid, action, application, payloadBytes, revision, timestamped_ms: ms } = row;
    const event = { rowid, action, application, payloadBytes, revision, timestamped: toIso(ms) };
    return read === undefined ? event : Object.assign(event, { payload: read.get(rowid)! });
  });
  return { events, isCut };
}

/**
 * Reads the events after a rowid. The one thread that writes gives each event the next rowid in the transaction that commits
 * it, so an event with a smaller rowid than one that was read never comes later.
 */
export function nextEvents(work: Work, query: NextEvents): NextPage {
  const { after, limit } = query;
  const { event: newest } = loadLastNumbers(work);
  const { event: removed } = loadRemoved(work);
  const ids = SelectedEvents.matching(work, query).walk([{ low: after + 1, high: newest }], "asc", limit);
  const { events: read, isCut } = readEvents(work, ids, query);
  const events = read.map(({ payloadBytes: _bytes, ...event }): NextEvent => event);
  const isFull = isCut || ids.length === limit;
  const through = (isFull ? events.at(-1)?.rowid : undefined) ?? Math.max(after, newest);
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
