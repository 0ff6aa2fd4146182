import { type BlockShape, firstCounted, firstUnsealed, rowidsOf } from "./event-counts.ts";
import type { Steps } from "./read-steps.ts";
import type { Sql } from "./sql.ts";
import type { RowidRange } from "./time-range.ts";

/** A stretch of rowids, and how many of the events asked for are in it. */
export interface Piece extends RowidRange {
  /** Of the sealed block that it is; `undefined` for a part of one, or what is not sealed yet: never longer than one. */
  readonly level: number | undefined;
  readonly events: number;
}

/** Which events are asked for, as rowids of actions. */
export interface Wanted {
  /** By these they are looked up in the index. */
  readonly actions: readonly number[];
  /** By these they are counted in blocks: the same, or what stands for all actions. */
  readonly counted: readonly number[];
}

type Uncounted = Omit<Piece, "events">;

/** Look-ups that one step makes; each takes up to half a microsecond. */
const STEP_LOOKUPS = 2_000;
/** Pieces that one step divides a range into; for each of the largest it asks where the next one is. */
const STEP_PIECES = 500;

/** Divides ranges into the largest blocks that fit, in rising order. */
export function* countPieces(
  sql: Sql,
  ranges: readonly RowidRange[],
  wanted: Wanted,
  shape: BlockShape,
): Steps<readonly Piece[]> {
  const sealed = firstUnsealed(sql, shape);
  const pieces: Uncounted[] = [];
  for (const range of ranges) {
    for (const piece of divide(sql, range, sealed, shape)) {
      pieces.push(piece);
      if (pieces.length % STEP_PIECES === 0) yield;
    }
  }
  return yield* count(sql, pieces, wanted, shape);
}

/** The blocks that a block of a higher level is made of, in rising order. */
export function countParts(
  sql: Sql,
  piece: Piece,
  wanted: Wanted,
  shape: BlockShape,
): Steps<readonly Piece[]> {
  const level = (piece.level ?? 0) - 1;
  const size = rowidsOf(level, shape);
  const parts = Array.from({ length: shape.fanOut }, (_, index): Uncounted => {
    const low = piece.low + index * size;
    return { low, high: low + size - 1, level };
  });
  return count(sql, parts, wanted, shape);
}

/**
 * Some 250 pieces for the longest range, and one more for each 16 million rowids in which events were. The others, such as
 * those that a restore passed over, are left out.
 */
function* divide(
  sql: Sql,
  { low, high }: RowidRange,
  sealed: number,
  shape: BlockShape,
): Generator<Uncounted, void> {
  const top = shape.levels - 1;
  const lastWhole = Math.min(high, sealed - 1);
  for (let at = low; at <= high;) {
    let level = top;
    while (level >= 0) {
      const size = rowidsOf(level, shape);
      if (at % size === 0 && at + size - 1 <= lastWhole) break;
      level -= 1;
    }
    const size = rowidsOf(Math.max(0, level), shape);
    if (level === top) {
      const end = Math.floor((lastWhole + 1) / size);
      const next = Math.min(end, firstCounted(sql, top, at / size) ?? end) * size;
      if (next > at) {
        at = next;
        continue;
      }
    }
    const end = level < 0 ? Math.min(high, at - (at % size) + size - 1) : at + size - 1;
    yield { low: at, high: end, level: level < 0 ? undefined : level };
    at = end + 1;
  }
}

function* count(
  sql: Sql,
  pieces: readonly Uncounted[],
  wanted: Wanted,
  shape: BlockShape,
): Steps<readonly Piece[]> {
  const events = new Map<Uncounted, number>();
  const blocks = pieces.filter(({ level }) => level !== undefined);
  const counted = JSON.stringify(wanted.counted);
  for (const some of chunks(blocks, STEP_LOOKUPS / wanted.counted.length)) {
    const asked = some.map(({ level, low }) => [level, low / rowidsOf(level ?? 0, shape)]);
    add(events, some, sql.rows(BLOCK_COUNTS, JSON.stringify(asked), counted));
    yield;
  }
  const actions = JSON.stringify(wanted.actions);
  const parts = pieces.filter(({ level }) => level === undefined);
  for (const some of chunks(parts, STEP_LOOKUPS / (wanted.actions.length + shape.rowids / 8))) {
    const asked = some.map(({ low, high }) => [low, high]);
    add(events, some, sql.rows(INDEX_COUNTS, JSON.stringify(asked), actions));
    yield;
  }
  return pieces.map((piece) => ({ ...piece, events: events.get(piece) ?? 0 }));
}

const BLOCK_COUNTS = `
  SELECT p.key AS place, (SELECT sum(c.events) FROM json_each(?2) AS a CROSS JOIN event_count AS c
      WHERE c.level = p.value ->> 0 AND c.block = p.value ->> 1 AND c.action_id = a.value) AS events
    FROM json_each(?1) AS p`;

const INDEX_COUNTS = `
  SELECT p.key AS place, (SELECT count(*) FROM json_each(?2) AS a CROSS JOIN event AS e INDEXED BY event_action
      WHERE e.action_id = a.value AND e.rowid BETWEEN p.value ->> 0 AND p.value ->> 1) AS events
    FROM json_each(?1) AS p`;

function add(
  events: Map<Uncounted, number>,
  pieces: readonly Uncounted[],
  counts: readonly { readonly place: number; readonly events: number | null }[],
): void {
  for (const { place, events: found } of counts) {
    const piece = pieces[place];
    if (piece !== undefined) events.set(piece, found ?? 0);
  }
}

function* chunks<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  const most = Math.max(1, Math.floor(size));
  for (let at = 0; at < all.length; at += most) yield all.slice(at, at + most);
}
