import type { RowidRange } from "../../events.ts";
import type { LastNumbers, TimelineSegment } from "../../rules/recording.ts";
import type { Sql } from "../sql.ts";

const TABLES = {
  event: { time: "timestamped_ms", step: "first_event" },
  delivery: { time: "created_ms", step: "first_delivery" },
} as const;

/**
 * Answers the rowids of what happened in `fromMs <= t < toMs`: rising ranges, more than one if the clock was set back. Times
 * rise with rowids between two clock steps, so a binary search finds each end in some twenty look-ups of one statement.
 */
export async function idRangesOf(
  sql: Sql,
  table: keyof typeof TABLES,
  fromMs: number | undefined,
  toMs: number | undefined,
): Promise<readonly RowidRange[]> {
  const { step } = TABLES[table];
  const newest =
    (await sql.first<{ id: number }>(`SELECT coalesce(max(rowid), 0) AS id FROM ${table}`))?.id ?? 0;
  if (newest === 0) return [];
  // The range begins at 0, like the first block.
  if (fromMs === undefined && toMs === undefined) return [{ low: 0, high: newest }];
  const steps = await sql.rows<{ first: number }>(
    `SELECT DISTINCT ${step} AS first FROM clock_step WHERE ${step} > 0 AND ${step} <= ? ORDER BY 1`,
    newest,
  );
  const starts = [0, ...steps.map(({ first }) => first)];
  const ranges: RowidRange[] = [];
  for (const [index, first] of starts.entries()) {
    const last = (starts[index + 1] ?? newest + 1) - 1;
    const low = fromMs === undefined ? first : await firstSince(sql, table, first, last, fromMs);
    const high = toMs === undefined ? last : (await firstSince(sql, table, first, last, toMs)) - 1;
    if (low <= high) ranges.push({ low, high });
  }
  return ranges;
}

/** Answers the rest of the ranges past a rowid, in the direction of the order. */
export function rangesAfter(
  ranges: readonly RowidRange[],
  after: number,
  order: "asc" | "desc",
): readonly RowidRange[] {
  return ranges
    .map(({ low, high }) =>
      order === "asc" ? { low: Math.max(low, after + 1), high } : { low, high: Math.min(high, after - 1) },
    )
    .filter(({ low, high }) => low <= high);
}

/** Answers the first rowid from `start` to `end` whose time is `ms` or later; `end + 1` when there is none. */
async function firstSince(
  sql: Sql,
  table: keyof typeof TABLES,
  start: number,
  end: number,
  ms: number,
): Promise<number> {
  const { time } = TABLES[table];
  return await sql.value<number>(
    `WITH RECURSIVE half (low, high) AS (
        SELECT ?1, ?2 + 1
        UNION ALL
        SELECT CASE WHEN e.${time} < ?3 THEN e.rowid + 1 ELSE h.low END,
          CASE WHEN e.${time} < ?3 THEN h.high ELSE (h.low + h.high) / 2 END
        FROM half AS h LEFT JOIN ${table} AS e
          ON e.rowid = (SELECT min(rowid) FROM ${table} WHERE rowid >= (h.low + h.high) / 2 AND rowid < h.high)
        WHERE h.low < h.high)
      SELECT low FROM half WHERE low = high`,
    start,
    end,
    ms,
  );
}

export async function insertSegments(sql: Sql, segments: readonly TimelineSegment[]): Promise<void> {
  if (segments.length === 0) return;
  await sql.run(
    `INSERT INTO clock_step (first_event, first_delivery, noticed_ms)
      SELECT event, delivery, noticed_ms FROM list(?: event bigint, delivery bigint, noticed_ms bigint) AS step`,
    JSON.stringify(segments.map(({ event, delivery, noticedMs }) => [event, delivery, noticedMs])),
  );
}

export async function loadLastNumbers(sql: Sql): Promise<LastNumbers> {
  const row = await sql.first<{ event: number | null; delivery: number | null; last_ms: number }>(
    `WITH step (event, delivery) AS (
        SELECT first_event, first_delivery FROM clock_step WHERE rowid = (SELECT max(rowid) FROM clock_step)
      )
      SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'event') AS event,
        (SELECT seq FROM sqlite_sequence WHERE name = 'delivery') AS delivery,
        max(
          coalesce((SELECT timestamped_ms FROM event WHERE rowid = (SELECT max(rowid) FROM event)
            AND rowid >= coalesce((SELECT event FROM step), 0)), 0),
          coalesce((SELECT created_ms FROM delivery WHERE rowid = (SELECT max(rowid) FROM delivery)
            AND rowid >= coalesce((SELECT delivery FROM step), 0)), 0)
        ) AS last_ms`,
  );
  return { event: row?.event ?? 0, delivery: row?.delivery ?? 0, lastMs: row?.last_ms ?? 0 };
}
