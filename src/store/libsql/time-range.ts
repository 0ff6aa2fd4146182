import type { Sql } from "./sql.ts";

/** Rows with `low <= rowid <= high`. */
export interface RowidRange {
  readonly low: number;
  readonly high: number;
  /** Whether rows outside the range of time may lie between them, because the clock was set back in there. */
  readonly mixed: boolean;
}

const TABLES = {
  event: { time: "timestamped_ms", step: "first_event" },
  delivery: { time: "created_ms", step: "first_delivery" },
} as const;

/**
 * The rowids of what happened in `fromMs <= t < toMs`, found by halving: times rise with rowids in each stretch between
 * two steps of the clock. Costs some forty look-ups a stretch, whatever the table holds; `undefined` when there is none.
 */
export function rowidRange(
  sql: Sql,
  table: keyof typeof TABLES,
  fromMs: number | undefined,
  toMs: number | undefined,
): RowidRange | undefined {
  const { time, step } = TABLES[table];
  const ends = sql.first<{ low: number | null; high: number | null }>(
    `SELECT (SELECT min(rowid) FROM ${table}) AS low, (SELECT max(rowid) FROM ${table}) AS high`,
  );
  if (ends === undefined || ends.low === null || ends.high === null) return undefined;
  if (fromMs === undefined && toMs === undefined) return { low: ends.low, high: ends.high, mixed: false };
  const steps = sql.rows<{ first: number }>(
    `SELECT DISTINCT ${step} AS first FROM clock_step WHERE ${step} > ? AND ${step} <= ? ORDER BY 1`,
    ends.low,
    ends.high,
  );
  const starts = [ends.low, ...steps.map(({ first }) => first)];
  const ranges: { low: number; high: number }[] = [];
  for (const [index, start] of starts.entries()) {
    const end = (starts[index + 1] ?? ends.high + 1) - 1;
    const firstAt = (ms: number): number => firstSince(sql, table, time, start, end, ms);
    const low = fromMs === undefined ? start : firstAt(fromMs);
    const high = (toMs === undefined ? end + 1 : firstAt(toMs)) - 1;
    if (low <= high) ranges.push({ low, high });
  }
  const low = ranges[0]?.low;
  const high = ranges.at(-1)?.high;
  return low === undefined || high === undefined ? undefined : { low, high, mixed: ranges.length > 1 };
}

/** The first rowid from `start` to `end` whose time is `ms` or later; `end + 1` when there is none. */
function firstSince(sql: Sql, table: string, time: string, start: number, end: number, ms: number): number {
  let low = start;
  let high = end + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const row = sql.first<{ id: number; ms: number }>(
      `SELECT rowid AS id, ${time} AS ms FROM ${table} WHERE rowid >= ? AND rowid < ? ORDER BY rowid LIMIT 1`,
      middle,
      high,
    );
    if (row === undefined || row.ms >= ms) high = middle;
    else low = row.id + 1;
  }
  return low;
}
