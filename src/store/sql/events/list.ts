import { toIso } from "../../../runtime/clock.ts";
import type { EventPage, EventSelection, RowidRange, StoredEvent } from "../../events.ts";
import { matchOf } from "../catalog/matching.ts";
import { loadRemoved } from "../history/retention.ts";
import { firstWithin, type Work } from "../operation.ts";
import type { Sql } from "../sql.ts";
import { ALL_ACTIONS, BLOCK } from "./counts.ts";
import { PAYLOAD_COLUMNS, type PayloadRequest, readPayloads } from "./payloads.ts";
import { idRangesOf, loadLastNumbers, rangesAfter, rangesWithin } from "./timeline.ts";

type EventOrder = EventSelection["order"];

/** The events of several actions are sorted by themselves within so many rowids. */
const SORTED_ROWIDS = 4_096;

/** The events of some actions, or of all: counted, and walked in order. */
export class SelectedEvents {
  readonly #sql: Sql;
  /** The rowids of the actions under which they are counted, which is `?1` in all statements here. */
  readonly #actions: readonly number[];

  constructor(sql: Sql, actions: readonly number[] = [ALL_ACTIONS]) {
    this.#sql = sql;
    this.#actions = actions;
  }

  static async matching(
    sql: Sql,
    { action, applications }: Pick<EventSelection, "action" | "applications">,
  ): Promise<SelectedEvents> {
    if (action === undefined && applications === undefined) return new SelectedEvents(sql);
    const named = matchOf(action, "action");
    const actions = await sql.column<number>(
      `SELECT rowid FROM action
        WHERE (?1 IS NULL OR application IN list(?1: name text)) AND ${named.condition}`,
      applications,
      ...named.values,
    );
    return new SelectedEvents(sql, actions);
  }

  /** SQL that follows `FROM`, and goes on with a condition on `e.rowid`. */
  get #events(): string {
    if (this.#actions[0] === ALL_ACTIONS) return "event AS e NOT INDEXED WHERE";
    return this.#actions.length === 1
      ? "event AS e INDEXED BY event_action WHERE e.action_id = ?1 ->> 0 AND"
      : "list(?1: id bigint) AS a CROSS JOIN event AS e INDEXED BY event_action WHERE e.action_id = a.id AND";
  }

  async count(ranges: readonly RowidRange[]): Promise<number> {
    // Before the first whole block of a range and behind its last one, the index counts.
    return await this.#sql.value(
      `SELECT coalesce(sum(
          (SELECT coalesce(sum(c.events), 0) FROM list(?1: id bigint) AS a CROSS JOIN event_count AS c
            WHERE c.action_id = a.id AND c.block BETWEEN r.first AND r.last)
          + (SELECT count(*) FROM ${this.#events} e.rowid BETWEEN r.low AND min(r.high, r.first * ${BLOCK} - 1))
          + (SELECT count(*) FROM ${this.#events} e.rowid BETWEEN max(r.first, r.last + 1) * ${BLOCK} AND r.high)), 0)
        FROM (SELECT low, high, (low + ${BLOCK} - 1) / ${BLOCK} AS first, (high + 1) / ${BLOCK} - 1 AS last
          FROM list(?2: low bigint, high bigint) AS given) AS r`,
      this.#actions,
      ranges.map(({ low, high }) => [low, high]),
    );
  }

  /** The rowid of the event before which so many others are, oldest first. There must be one. */
  async rowidAt(ranges: readonly RowidRange[], before: number): Promise<number> {
    let [low, high] = [ranges[0]!.low, ranges.at(-1)!.high];
    let rest = before;
    while (low < high) {
      // Half of the blocks are left each time, and then half of the rowids.
      const half = low + Math.floor((high - low) / 2);
      const middle = half - low >= BLOCK ? half - (half % BLOCK) - 1 : half;
      const events = await this.count(rangesWithin(ranges, low, middle));
      if (rest < events) high = middle;
      else {
        low = middle + 1;
        rest -= events;
      }
    }
    return low;
  }

  /** Answers the rowids of the first `limit` events of the ranges, in the order that is asked for. */
  async walk(ranges: readonly RowidRange[], order: EventOrder, limit: number): Promise<readonly number[]> {
    const ids: number[] = [];
    for (let rest = ranges; rest.length > 0 && ids.length < limit;) {
      const [range] = order === "asc" ? rest : rest.toReversed();
      const part = await this.#firstPart(range!, order);
      if (part !== undefined) ids.push(...(await this.#rowids(part, order, limit - ids.length)));
      const { low, high } = part ?? range!;
      rest = rangesAfter(rest, order === "asc" ? high : low, order);
    }
    return ids;
  }

  async #rowids({ low, high }: RowidRange, order: EventOrder, limit: number): Promise<readonly number[]> {
    return await this.#sql.column(
      `SELECT e.rowid FROM ${this.#events} e.rowid BETWEEN ?2 AND ?3 ORDER BY e.rowid ${order} LIMIT ?4`,
      this.#actions,
      low,
      high,
      limit,
    );
  }

  /**
   * Answers where the first of the events are; `undefined` where the range has none. The events of several actions are in no
   * index together: a part of the range, which begins with the first of them, is sorted by itself, and that is never many.
   */
  async #firstPart({ low, high }: RowidRange, order: EventOrder): Promise<RowidRange | undefined> {
    if (this.#actions.length === 1) return { low, high };
    const nearest = order === "asc" ? "min" : "max";
    const first = await this.#sql.value<number | null>(
      `SELECT ${nearest}((SELECT ${nearest}(e.rowid) FROM event AS e INDEXED BY event_action
          WHERE e.action_id = a.id AND e.rowid BETWEEN ?2 AND ?3)) FROM list(?1: id bigint) AS a`,
      this.#actions,
      low,
      high,
    );
    if (first === null) return undefined;
    return order === "asc"
      ? { low: first, high: Math.min(high, first + SORTED_ROWIDS - 1) }
      : { low: Math.max(low, first - SORTED_ROWIDS + 1), high: first };
  }
}

interface EventRow extends PayloadRequest {
  /** The action is `null` in a damaged file. */
  readonly action: string | null;
  readonly application: string;
  readonly revision: number;
  readonly timestamped_ms: number;
}

export async function findEvent(work: Work, id: number): Promise<StoredEvent | undefined> {
  return (await readEvents(work, [id])).events[0];
}

/**
 * Lists events newest or oldest first by rowid, so that an `after` walk never changes behind itself. A page begins after the
 * last event of the page before it, which is found by counts, as the total is (see `counts.ts`).
 */
export async function listEvents(work: Work, query: EventSelection): Promise<EventPage> {
  const { after, order, limit, idempotencyKey: key } = query;
  const { event: newest } = await loadLastNumbers(work);
  const removed = await loadRemoved(work);
  const selected = await SelectedEvents.matching(work, query);
  const time = await idRangesOf(work, "event", query.fromMs, query.toMs);
  // One event of an application has a key, or of an action that came to it.
  const withKey = "SELECT rowid FROM event WHERE idempotency_key = ? ORDER BY rowid";
  const keyed = key === undefined ? undefined : await work.column<number>(withKey, key);
  const ranges = keyed?.flatMap((id) => rangesWithin(time, id, id)) ?? time;
  const isCounted = after === undefined || query.total !== false;
  const total = isCounted ? await selected.count(ranges) : 0;
  const skip = after === undefined ? (query.page - 1) * limit : 0;
  const bounds = { total, newest, removed };
  if (isCounted && skip >= total) return { events: [], ids: [], isCut: false, ...bounds };

  const last = skip === 0 ? after : await selected.rowidAt(ranges, order === "asc" ? skip - 1 : total - skip);
  const onward = last === undefined ? ranges : rangesAfter(ranges, last, order);
  const ids = await selected.walk(onward, order, limit);
  const wanted = query.holding === undefined ? ids : await idsHolding(work, ids, query.holding);
  const { events, isCut } = await readEvents(work, wanted, query);
  const end = isCut ? ids.indexOf(events.at(-1)!.rowid) + 1 : ids.length;
  return { events, ids: ids.slice(0, end), isCut, ...bounds };
}

/** Answers those of the events whose payloads may hold a text of each list as a value. */
async function idsHolding(
  sql: Sql,
  ids: readonly number[],
  lists: readonly (readonly string[])[],
): Promise<readonly number[]> {
  // JSON that has a backslash may hold any text.
  const values: Uint8Array[] = [Buffer.from("\\")];
  const conditions = lists.map((texts) => {
    const unescaped = texts.filter((text) => JSON.stringify(text) === `"${text}"`);
    const ways = unescaped.map((text) => {
      values.push(Buffer.from(`"${text}"`));
      return `instr(e.payload, ?${values.length + 1}) > 0`;
    });
    return `(${["instr(e.payload, ?2) > 0", ...ways].join(" OR ")})`;
  });
  return await sql.column(
    `SELECT e.rowid FROM list(?1: id bigint) AS page CROSS JOIN event AS e ON e.rowid = page.id
      WHERE ${conditions.join(" AND ")}`,
    ids,
    ...values,
  );
}

/** Reads the first of the events whose payloads fit, and at least one. */
async function readEvents(
  work: Work,
  ids: readonly number[],
  { payloads = true, maxBytes = Infinity }: Pick<EventSelection, "payloads" | "maxBytes"> = {},
): Promise<{ readonly events: readonly StoredEvent[]; readonly isCut: boolean }> {
  const found = await work.rows<EventRow>(
    `SELECT e.rowid AS eventId, a.action, a.application, ${PAYLOAD_COLUMNS}, e.revision, e.timestamped_ms
      FROM list(?: id bigint) AS page
      CROSS JOIN event AS e ON e.rowid = page.id LEFT JOIN action AS a ON a.rowid = e.action_id`,
    ids,
  );
  const rows = found.filter(({ action }) => action !== null);
  work.damaged.push(...found.flatMap(({ action, eventId }) => (action === null ? [eventId] : [])));
  const fitting = payloads ? firstWithin(rows, ({ payloadBytes }) => payloadBytes, maxBytes) : rows;
  const read = payloads ? await readPayloads(work, fitting) : undefined;
  const events = fitting.map((row): StoredEvent => {
    const { eventId: rowid, action, application, revision, timestamped_ms: ms } = row;
    const payload = read?.get(rowid) ?? undefined;
    return { rowid, action: action!, application, payload, revision, timestamped: toIso(ms) };
  });
  return { events, isCut: fitting.length < rows.length };
}
