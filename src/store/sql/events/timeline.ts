import type { RowidRange } from "../../events.ts";
import type { LastNumbers } from "../../rules/recording.ts";
import { insertRow, type Sql } from "../sql.ts";

const TABLES = {
  event: { time: "timestamped_ms", step: "first_event" },
  delivery: { time: "created_ms", step: "first_delivery" },
} as const;

/**
 * Answers the rowids of what happened in `fromMs <= t < toMs`: rising ranges, more than one if the clock was set back. Times
 * rise with rowids between two clock steps, so a binary search finds both ends in some twenty look-ups each.
 */
export async function idRangesOf(
  sql: Sql,
  table: keyof typeof TABLES,
  fromMs: number | undefined,
  toMs: number | undefined,
): Promise<readonly RowidRange[]> {
  const { step } = TABLES[table];
  const newest = await sql.value<number>(`SELECT coalesce(max(rowid), 0) FROM ${table}`);
  if (newest === 0) return [];
  // The range begins at 0, like the first block.
  if (fromMs === undefined && toMs === undefined) return [{ low: 0, high: newest }];
  const steps = await sql.column<number>(
    `SELECT DISTINCT ${step} FROM clock_step WHERE ${step} > (SELECT min(rowid) FROM ${table}) AND ${step} <= ? ORDER BY 1`,
    newest,
  );
  const starts = [0, ...steps];
  const ranges: RowidRange[] = [];
  for (const [index, first] of starts.entries()) {
    const last = (starts[index + 1] ?? newest + 1) - 1;
    const low = fromMs === undefined ? first : await firstSince(sql, table, first, last, fromMs);
    const end = toMs === undefined ? last + 1 : await firstSince(sql, table, first, last, toMs);
    const high = end - 1;
    if (low <= high) ranges.push({ low, high });
  }
  return ranges;
}

export function rangesAfter(
  ranges: readonly RowidRange[],
  after: number,
  order: "asc" | "desc",
): readonly RowidRange[] {
  return order === "asc" ? rangesWithin(ranges, after + 1, Infinity) : rangesWithin(ranges, 0, after - 1);
}

/** Answers the parts of the ranges from a rowid to another. */
export function rangesWithin(
  ranges: readonly RowidRange[],
  first: number,
  last: number,
): readonly RowidRange[] {
  const parts = ranges.map(({ low, high }) => ({ low: Math.max(low, first), high: Math.min(high, last) }));
  return parts.filter(({ low, high }) => low <= high);
}

/** Answers the first rowid from `start` to `end` since a time; `end + 1` where there is none. */
async function firstSince(
  sql: Sql,
  table: keyof typeof TABLES,
  start: number,
  end: number,
  ms: number,
): Promise<number> {
  const { time } = TABLES[table];
  // All up to `passed` is earlier than the time. Each step looks at the row where it leads to. Only where that is missing, it looks
  // for the next one, for which PostgreSQL reads half an index page.
  return await sql.value(
    `WITH RECURSIVE search (passed, step) AS (
        SELECT ?1 - 1, ?2
        UNION ALL
        SELECT passed + iif(coalesce(
            (SELECT e.${time} FROM ${table} AS e WHERE e.rowid = passed + step AND e.rowid <= ?3),
            (SELECT e.${time} FROM ${table} AS e WHERE e.rowid BETWEEN passed + step AND ?3 ORDER BY e.rowid LIMIT 1)
          ) < ?4, step, 0), step / 2
        FROM search WHERE step > 0)
      SELECT passed + 1 FROM search WHERE step = 0`,
    start,
    2 ** Math.floor(Math.log2(end - start + 1)),
    end,
    ms,
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

/**
 * Moves what waits after the clock was set back, and has times rise anew with what is stored next. It may be repeated at once with
 * the same `nowMs`, where nobody knows whether it was committed.
 */
export async function moveWaits(sql: Sql, backMs: number, nowMs: number): Promise<number> {
  const { event, delivery } = await loadLastNumbers(sql);
  const step = { first_event: event + 1, first_delivery: delivery + 1, noticed_ms: nowMs };
  // Other steps have behind them what was recorded, and this one has nothing yet.
  const stored = await sql.first(
    "SELECT rowid FROM clock_step WHERE first_event = ? AND first_delivery = ? AND noticed_ms = ?",
    ...Object.values(step),
  );
  if (stored !== undefined) return 0;
  const deliveries = await sql.run(
    `UPDATE delivery SET due_ms = max(?1, due_ms - ?2) WHERE rowid IN (
        SELECT d.rowid FROM subscription AS s CROSS JOIN delivery AS d INDEXED BY delivery_due
        WHERE d.subscription_id = s.rowid AND d.due_ms > ?1)`,
    nowMs,
    backMs,
  );
  const leases = await sql.run(
    "UPDATE lease SET claimed_ms = claimed_ms - ?1, until_ms = until_ms - ?1",
    backMs,
  );
  const subscriptions = await sql.run(
    "UPDATE subscription SET slowed_until_ms = max(?1, slowed_until_ms - ?2) WHERE slowed_until_ms > ?1",
    nowMs,
    backMs,
  );
  // The times that the file knows of the past are no later than the clock any more: otherwise all would be moved again at the
  // next start.
  await sql.run(
    `UPDATE subscription SET last_failure_ms = min(last_failure_ms, ?1), failing_since_ms = min(failing_since_ms, ?1)
      WHERE last_failure_ms > ?1 OR failing_since_ms > ?1`,
    nowMs,
  );
  await insertRow(sql, "clock_step", step);
  return deliveries + leases + subscriptions;
}

/** Clocks are corrected by less than this all the time. */
const CLOCK_TOLERANCE_MS = 1_000;

/**
 * Moves what waits in a file that is opened: where the clock is behind the latest time that the file knows, it was set back
 * since.
 * @returns by how much at least, and how many waits were moved
 */
export async function moveWaitsAtStart(
  sql: Sql,
  nowMs: number,
): Promise<{ readonly backMs: number; readonly waits: number } | undefined> {
  const knownMs = await sql.value<number>(
    "SELECT max(coalesce((SELECT max(last_failure_ms) FROM subscription), 0), coalesce((SELECT max(claimed_ms) FROM lease), 0))",
  );
  const backMs = Math.max(knownMs, (await loadLastNumbers(sql)).lastMs) - nowMs;
  return backMs < CLOCK_TOLERANCE_MS ? undefined : { backMs, waits: await moveWaits(sql, backMs, nowMs) };
}
