import { bucketOf } from "../../../domain/stats/histogram.ts";
import { floorTo, STATS_SPANS, TEN_SECONDS_MS } from "../../../domain/stats/stats.ts";
import { MEASURE, type MeasureCounts } from "../../../domain/stats/tally.ts";
import type { AttemptResult } from "../../queue.ts";
import type {
  ActionSubject,
  CountedFigure,
  RefusedCount,
  StatsQuery,
  StatsSelection,
  StatsSubjects,
  StatsTime,
  SubscriptionSubject,
} from "../../history.ts";
import { matchOf } from "../catalog/matching.ts";
import type { EventBatch, WireRecordOutcome } from "../queue/wire.ts";
import { parseStored } from "../stored-record.ts";
import type { Part } from "../thread/operation.ts";
import { type Sql, timeOf, wholeOf } from "../thread/sql.ts";

// What happens is counted in the transaction that stores it, so that a crash takes either both or neither: in each span of time,
// and once more among everything. So figures are read as they are, and nothing is made of them later. Counting anew at a start
// would need an index of when deliveries ended, which each of them would pay for.

/** The figures of an action (and 0), of its deliveries to one subscription, or of everything. */
type Series = readonly [actionId: number, subscriptionId: number];

const EVERYTHING: Series = [0, 0];

/** What was counted of a series in ten seconds. */
interface SeriesCounts {
  readonly ms: number;
  readonly series: Series;
  readonly counts: Record<string, number>;
  lastError: string | null;
}

/** What a transaction counts. */
export class StatsCounts {
  readonly #counted = new Map<string, SeriesCounts>();

  /** Counts something of a series, and of everything. */
  add(atMs: number, series: Series, measure: number, count = 1, error: string | null = null): void {
    this.#add(atMs, EVERYTHING, measure, count, error);
    const [action] = series;
    if (action > 0) this.#add(atMs, series, measure, count, error);
  }

  #add(atMs: number, series: Series, measure: number, count: number, error: string | null): void {
    const ms = floorTo(atMs, TEN_SECONDS_MS);
    const key = `${ms} ${series.join(" ")}`;
    let figure = this.#counted.get(key);
    if (figure === undefined) this.#counted.set(key, (figure = { ms, series, counts: {}, lastError: null }));
    figure.counts[measure] = (figure.counts[measure] ?? 0) + count;
    figure.lastError = error ?? figure.lastError;
  }

  attempted(
    series: Series,
    { ending, durationMs, latencyMs, statusCode, errorCode }: AttemptResult,
    nowMs: number,
  ): void {
    this.add(nowMs, series, MEASURE.attempt + bucketOf(durationMs));
    if (ending === "delivered") {
      this.add(nowMs, series, MEASURE.delivered);
      if (latencyMs !== undefined) this.add(nowMs, series, MEASURE.latency + bucketOf(latencyMs));
    } else {
      this.add(nowMs, series, MEASURE.failedAttempts, 1, errorCode ?? String(statusCode));
    }
  }

  write(sql: Sql): void {
    for (const { ms, series, counts, lastError } of this.#counted.values()) {
      sql.run(ADD_COUNTS, ms, ...series, JSON.stringify(counts), lastError);
    }
  }
}

/** It takes each count from the JSON as it is, which is three times as fast as from a list of lists. */
const ADD_COUNTS = `INSERT INTO figure (span_ms, start_ms, action_id, subscription_id, measure, count, last_error)
  SELECT span.column1, ?1 / span.column1 * span.column1, ?2, ?3, key, value, iif(key = '${MEASURE.failedAttempts}', ?5, NULL)
  FROM (VALUES ${STATS_SPANS.map(({ spanMs }) => `(${spanMs})`).join(", ")}) AS span CROSS JOIN json_each(?4) WHERE TRUE
  ON CONFLICT DO UPDATE SET count = count + excluded.count, last_error = coalesce(excluded.last_error, last_error)`;

export function countPublished(
  sql: Sql,
  batches: readonly EventBatch[],
  outcomes: readonly (readonly WireRecordOutcome[])[],
): void {
  const counts = new StatsCounts();
  for (const [index, { events }] of batches.entries()) {
    for (const [place, outcome] of outcomes[index]!.entries()) {
      if (outcome.kind !== "recorded") continue;
      counts.add(outcome.timestampedMs, [events[place]!.actionId, 0], MEASURE.published);
    }
  }
  counts.write(sql);
}

/** Counts deliveries that failed for good. */
export function countFailed(sql: Sql, deliveryIds: readonly number[], nowMs: number): void {
  if (deliveryIds.length === 0) return;
  const failed = sql.rows<{ action: number; subscription: number; count: number }>(
    `SELECT e.action_id AS action, d.subscription_id AS subscription, count(*) AS count
      FROM json_each(?) AS failed CROSS JOIN delivery AS d ON d.rowid = failed.value
      CROSS JOIN event AS e ON e.rowid = d.event_id GROUP BY 1, 2`,
    JSON.stringify(deliveryIds),
  );
  const counts = new StatsCounts();
  for (const { action, subscription, count } of failed) {
    counts.add(nowMs, [action, subscription], MEASURE.failed, count);
  }
  counts.write(sql);
}

export function countRefused(sql: Sql, refused: readonly RefusedCount[]): void {
  const counts = new StatsCounts();
  for (const { atMs, action, count } of refused) {
    const id = sql.value<number | undefined>("SELECT rowid FROM action WHERE action = ?", action) ?? 0;
    counts.add(atMs, [id, 0], MEASURE.refused, count);
  }
  counts.write(sql);
}

/** Stores a count of 0 of everything in each span of the time. */
export function noteRunning(sql: Sql, { fromMs, toMs }: StatsTime): void {
  for (const { spanMs } of STATS_SPANS) {
    sql.run(
      `INSERT OR IGNORE INTO figure (span_ms, start_ms, action_id, subscription_id, measure, count)
        WITH RECURSIVE running (ms) AS (SELECT ?2 UNION ALL SELECT ms + ?1 FROM running WHERE ms + ?1 < ?3)
        SELECT ?1, ms, 0, 0, ${MEASURE.published}, 0 FROM running`,
      spanMs,
      floorTo(fromMs, spanMs),
      toMs,
    );
  }
}

/** SQL that is true of a table's rows of the applications `?2`. */
function isOfApplications(table: string): string {
  return `(?2 IS NULL OR ${table}.application IN (SELECT value FROM json_each(?2)))`;
}

/** Answers the series that a query adds up. */
function seriesOf(sql: Sql, { by, applications, action, subscription }: StatsQuery): readonly Series[] {
  const isOfAll = action === undefined && subscription === undefined && applications === undefined;
  if (by === "start" && isOfAll) return [EVERYTHING];
  const match = action === undefined ? { condition: "TRUE", values: [] } : matchOf(action, "a.action");
  const rows = sql.rows<{ action_id: number; subscription_id: number }>(
    `SELECT a.rowid AS action_id, 0 AS subscription_id FROM action AS a
        WHERE ?1 IS NULL AND ${isOfApplications("a")} AND ${match.condition}
      UNION ALL SELECT b.action_id, b.subscription_id FROM action AS a
        CROSS JOIN binding AS b ON b.action_id = a.rowid CROSS JOIN subscription AS s ON s.rowid = b.subscription_id
        WHERE (?1 IS NULL OR s.rowid = ?1) AND ${isOfApplications("s")} AND ${match.condition}`,
    subscription ?? null,
    listOrNull(applications),
    ...match.values,
    ...match.values,
  );
  const series = rows.map((row): Series => [row.action_id, row.subscription_id]);
  return by === "subscription" ? series.filter(([, id]) => id > 0) : series;
}

/** One call looks for the figures of so many series and pieces of time; each takes some ten microseconds. */
const MAX_SOUGHT = 2_000;

const KEY = {
  start: "piece.value ->> 1",
  action: "series.value ->> 0",
  subscription: "series.value ->> 1",
} as const;

/** SQL that is true of the rows of a piece and a series. */
const OF_BOTH = `f.span_ms = piece.value ->> 0 AND f.start_ms = piece.value ->> 1
  AND f.action_id = series.value ->> 0 AND f.subscription_id = series.value ->> 1`;

/**
 * The engine gathers the rows of each series and piece, and they are added up here: to sort all rows by key and measure takes it
 * twice as long.
 */
export function readFigures(sql: Sql, query: StatsQuery): Part<CountedFigure, StatsQuery> {
  const { by } = query;
  const series = seriesOf(sql, query);
  const size = Math.max(1, Math.floor(MAX_SOUGHT / Math.max(1, series.length)));
  const pieces = JSON.stringify(query.pieces.slice(0, size).map(({ spanMs, startMs }) => [spanMs, startMs]));
  const rows = sql.rows<{ key: number; counts: string; lastError: string | null }>(
    `SELECT ${KEY[by]} AS key,
        (SELECT json_group_object(f.measure, ${wholeOf("f.count")}) FROM figure AS f WHERE ${OF_BOTH}) AS counts,
        (SELECT f.last_error FROM figure AS f WHERE ${OF_BOTH} AND f.measure = ${MEASURE.failedAttempts}) AS lastError
      FROM json_each(?1) AS piece CROSS JOIN json_each(?2) AS series`,
    pieces,
    JSON.stringify(series),
  );
  const figures = new Map<number, { counts: Record<string, number>; lastError: string | null }>();
  for (const { key, counts, lastError } of rows) {
    if (counts === NO_COUNTS) continue;
    let figure = figures.get(key);
    if (figure === undefined) figures.set(key, (figure = { counts: {}, lastError }));
    for (const [measure, count] of Object.entries(parseStored(counts) as MeasureCounts)) {
      figure.counts[measure] = (figure.counts[measure] ?? 0) + count;
    }
    figure.lastError = lastError ?? figure.lastError;
  }
  // What is known of everything is known of each: nothing happened where a series has no row of its own.
  for (const key of by === "start" ? knownStarts(sql, pieces) : []) {
    if (!figures.has(key)) figures.set(key, { counts: {}, lastError: null });
  }
  const items = [...figures].map(([key, { counts, lastError }]) => ({ key, counts, lastError }));
  const rest = query.pieces.slice(size);
  return rest.length === 0 ? { items } : { items, rest: { ...query, pieces: rest } };
}

/** Answers which of the pieces have a row of everything. */
function knownStarts(sql: Sql, pieces: string): readonly number[] {
  const rows = sql.rows<{ start: number }>(
    `SELECT piece.value ->> 1 AS start FROM json_each(?) AS piece WHERE EXISTS (SELECT 1 FROM figure
      WHERE span_ms = piece.value ->> 0 AND start_ms = piece.value ->> 1 AND action_id = 0 AND subscription_id = 0)`,
    pieces,
  );
  return rows.map(({ start }) => start);
}

/** What the engine makes of no rows. */
const NO_COUNTS = "{}";

/** SQL that follows `FROM`: those of the list `?1`, in its order, then others; only those of the applications `?2`. */
function subjects(table: "action" | "subscription", isOther: string, order: string): string {
  return `${table} AS one LEFT JOIN (SELECT key AS place, value AS id FROM json_each(?1)) AS first ON first.id = one.rowid
    WHERE ${table === "subscription" ? "one.deleted_ms IS NULL" : "TRUE"} AND ${isOfApplications("one")}
      AND (first.place IS NOT NULL OR ${isOther}) ORDER BY first.place NULLS LAST, ${order} LIMIT ?`;
}

function listOrNull(list: StatsSelection["applications"]): string | null {
  return list === undefined ? null : JSON.stringify(list);
}

/** Answers the actions of `first`, then others by name that are not evreg's own. */
export function statsActions(sql: Sql, query: StatsSubjects): readonly ActionSubject[] {
  const match = matchOf(query.action ?? "*", "one.action");
  return sql.rows<ActionSubject>(
    `SELECT page.id, page.action, page.application, (SELECT ${timeOf("e.timestamped_ms")} FROM event AS e
        WHERE e.rowid = (SELECT max(l.rowid) FROM event AS l INDEXED BY event_action WHERE l.action_id = page.id)) AS lastPublishedMs
      FROM (SELECT one.rowid AS id, one.action, one.application
        FROM ${subjects("action", match.condition, "one.action")}) AS page`,
    JSON.stringify(query.first),
    listOrNull(query.applications),
    ...match.values,
    query.limit,
  );
}

/** Answers the subscriptions of `first`, then others by name, without those that are deleted. */
export function statsSubscriptions(sql: Sql, query: StatsSubjects): readonly SubscriptionSubject[] {
  const isOther = "(?3 IS NULL OR one.rowid = ?3)";
  const order = "one.application, one.subscription, one.action";
  return sql.rows<SubscriptionSubject>(
    `SELECT one.rowid AS id, one.application, one.subscription, one.action
      FROM ${subjects("subscription", isOther, order)}`,
    JSON.stringify(query.first),
    listOrNull(query.applications),
    query.subscription ?? null,
    query.limit,
  );
}

/** A step removes so many rows, each of which takes some microseconds. */
const REMOVED_AT_ONCE = 500;

export function removeStats(sql: Sql, nowMs: number): number {
  return STATS_SPANS.reduce((removed, { spanMs, keptMs }) => {
    const some = `SELECT span_ms, start_ms, action_id, subscription_id, measure FROM figure
      WHERE span_ms = ? AND start_ms < ? LIMIT ?`;
    return (
      removed +
      sql.run(
        `DELETE FROM figure WHERE (span_ms, start_ms, action_id, subscription_id, measure) IN (${some})`,
        spanMs,
        nowMs - keptMs,
        REMOVED_AT_ONCE - removed,
      )
    );
  }, 0);
}
