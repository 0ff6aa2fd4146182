import type { EventSelection } from "../events.ts";
import { ALL_ACTIONS, type BlockShape } from "./event-counts.ts";
import { countParts, type Piece, type Wanted } from "./event-pieces.ts";
import type { Steps } from "./read-steps.ts";
import type { Sql } from "./sql.ts";
import type { RowidRange } from "./time-range.ts";

type Order = EventSelection["order"];

/** Where a page begins: in this piece, this many of its events on. */
interface Place {
  readonly piece: Piece;
  readonly skip: number;
}

/** The rowids of one page of what is wanted in the ranges, in order. */
export interface PageAsked {
  readonly ranges: readonly RowidRange[];
  readonly wanted: Wanted;
  readonly order: Order;
  readonly limit: number;
}

/** The next `limit` of one action, or of all: they lie in order in an index, and are walked from where the page begins. */
export function* walkPage(
  sql: Sql,
  { ranges, wanted, order, limit }: PageAsked,
  counted: readonly Piece[],
  skip: number,
  shape: BlockShape,
): Steps<readonly number[]> {
  const start =
    skip === 0 ? undefined : yield* nextPlace(sql, inTurn(counted, order), skip, wanted, order, shape);
  if (skip > 0 && start === undefined) return [];
  const [action] = wanted.counted;
  const source =
    action === ALL_ACTIONS ? "event WHERE TRUE" : "event INDEXED BY event_action WHERE action_id = ?4";
  const found: number[] = [];
  let offset = start?.skip ?? 0;
  for (const range of order === "asc" ? ranges : ranges.toReversed()) {
    const low = order === "asc" ? Math.max(range.low, start?.piece.low ?? 0) : range.low;
    const high = order === "desc" ? Math.min(range.high, start?.piece.high ?? Infinity) : range.high;
    if (low > high) continue;
    const rows = sql.rows<{ id: number }>(
      `SELECT rowid AS id FROM ${source} AND rowid BETWEEN ?1 AND ?2 ORDER BY rowid ${order} LIMIT ?3 OFFSET ?5`,
      low,
      high,
      limit - found.length,
      action ?? ALL_ACTIONS,
      offset,
    );
    offset = 0;
    found.push(...rows.map(({ id }) => id));
    if (found.length >= limit) break;
    yield;
  }
  return found;
}

/** The same of several actions: piece by piece where there are any, each sorted by itself, which is never many. */
export function* gatherPage(
  sql: Sql,
  { wanted, order, limit }: Omit<PageAsked, "ranges">,
  counted: readonly Piece[],
  skip: number,
  shape: BlockShape,
): Steps<readonly number[]> {
  const actions = JSON.stringify(wanted.actions);
  const waiting = inTurn(counted, order);
  const found: number[] = [];
  for (let left = skip; found.length < limit; left = 0) {
    const place = yield* nextPlace(sql, waiting, left, wanted, order, shape);
    if (place === undefined) break;
    const rows = sql.rows<{ id: number }>(
      `SELECT e.rowid AS id FROM json_each(?1) AS a CROSS JOIN event AS e INDEXED BY event_action
        WHERE e.action_id = a.value AND e.rowid BETWEEN ?2 AND ?3 ORDER BY e.rowid ${order} LIMIT ?4 OFFSET ?5`,
      actions,
      place.piece.low,
      place.piece.high,
      limit - found.length,
      place.skip,
    );
    found.push(...rows.map(({ id }) => id));
    yield;
  }
  return found;
}

/** Passes over `skip` events, taking blocks apart where they must be; `waiting` has the next piece last, and is used up. */
function* nextPlace(
  sql: Sql,
  waiting: Piece[],
  skip: number,
  wanted: Wanted,
  order: Order,
  shape: BlockShape,
): Steps<Place | undefined> {
  let left = skip;
  for (let piece = waiting.pop(); piece !== undefined; piece = waiting.pop()) {
    if (piece.events <= left) left -= piece.events;
    else if ((piece.level ?? 0) === 0) return { piece, skip: left };
    else waiting.push(...inTurn(yield* countParts(sql, piece, wanted, shape), order));
  }
  return undefined;
}

/** So that the last one is the next. */
function inTurn(pieces: readonly Piece[], order: Order): Piece[] {
  return order === "asc" ? pieces.toReversed() : [...pieces];
}
