import { toIso } from "../../runtime/clock.ts";
import type { EventSelection, StoredEvent } from "../events.ts";
import type { BytesOut } from "./bytes-out.ts";
import { ALL_ACTIONS, BLOCKS, type BlockShape } from "./event-counts.ts";
import { gatherPage, walkPage } from "./event-page.ts";
import { countPieces, type Wanted } from "./event-pieces.ts";
import { PAYLOAD_BYTES, type PayloadAsked, type PayloadSpan, readPayloads } from "./payload-reads.ts";
import { complete, type Steps } from "./read-steps.ts";
import { type Sql, timeOf, wholeOf } from "./sql.ts";
import { isRowid } from "./text.ts";
import { beyond, rowidRanges } from "./time-range.ts";

/** An event as it crosses the thread. */
export type WireEvent = Omit<StoredEvent, "payload"> & { readonly payload: PayloadSpan };

interface EventRow extends PayloadAsked {
  readonly action: string;
  readonly application: string;
  readonly revision: number;
  readonly timestamped_ms: number;
}

const SELECT_EVENT = `
  SELECT e.rowid AS eventId, a.action, a.application, ${PAYLOAD_BYTES} AS payloadBytes,
    ${wholeOf("e.revision")} AS revision, ${timeOf("e.timestamped_ms")} AS timestamped_ms`;

export function findEvent(sql: Sql, id: number, out: BytesOut): WireEvent | undefined {
  if (!isRowid(id)) return undefined;
  const row = sql.first<EventRow>(
    `${SELECT_EVENT} FROM event e JOIN action a ON a.rowid = e.action_id WHERE e.rowid = ?`,
    id,
  );
  return row === undefined ? undefined : complete(eventsOf(sql, [row], out))[0];
}

/**
 * Newest (or oldest) first by rowid: what an `after` walk has passed never changes, even where the clock was set back.
 * The total is a sum of what is counted already (see `event-counts.ts`), and so is the way to a deep page. Counts, index and
 * events are read one after the other; an event that is deleted meanwhile may still be in the total.
 */
export function* listEvents(
  sql: Sql,
  query: EventSelection,
  out: BytesOut,
  shape: BlockShape = BLOCKS,
): Steps<{ events: readonly WireEvent[]; total: number }> {
  const wanted = selectActions(sql, query);
  if (wanted.actions.length === 0) return { events: [], total: 0 };
  const ranges = yield* rowidRanges(sql, "event", query.fromMs, query.toMs);
  const pieces = yield* countPieces(sql, ranges, wanted, shape);
  const total = pieces.reduce((sum, { events }) => sum + events, 0);

  const { after, order, limit } = query;
  const skip = after === undefined ? (query.page - 1) * limit : 0;
  if (skip >= total) return { events: [], total };
  const onward = after === undefined ? ranges : beyond(ranges, after, order);
  const page = { ranges: onward, wanted, order, limit };
  let ids: readonly number[];
  if (wanted.counted.length === 1) {
    ids = yield* walkPage(sql, page, pieces, skip, shape);
  } else {
    const counted = after === undefined ? pieces : yield* countPieces(sql, onward, wanted, shape);
    ids = yield* gatherPage(sql, page, counted, skip, shape);
  }
  const rows = sql.rows<EventRow>(
    `${SELECT_EVENT} FROM json_each(?) AS page
      CROSS JOIN event AS e ON e.rowid = page.value CROSS JOIN action AS a ON a.rowid = e.action_id`,
    JSON.stringify(ids),
  );
  return { events: yield* eventsOf(sql, rows, out), total };
}

function selectActions(sql: Sql, { action, applications }: EventSelection): Wanted {
  const rows = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM action
      WHERE ${action === undefined ? "?1 IS NULL" : "action = ?1"}
        AND (?2 IS NULL OR application IN (SELECT value FROM json_each(?2)))`,
    action ?? null,
    applications === undefined ? null : JSON.stringify(applications),
  );
  const actions = rows.map(({ id }) => id);
  const all = action === undefined && applications === undefined;
  return { actions, counted: all ? [ALL_ACTIONS] : actions };
}

/** An event that is gone by now is left out. */
function* eventsOf(sql: Sql, rows: readonly EventRow[], out: BytesOut): Steps<readonly WireEvent[]> {
  const spans = yield* readPayloads(sql, rows, out);
  return rows.flatMap((row) => {
    const payload = spans.get(row.eventId);
    if (payload === undefined) return [];
    const { eventId: rowid, action, application, revision } = row;
    return [{ rowid, action, application, payload, revision, timestamped: toIso(row.timestamped_ms) }];
  });
}
