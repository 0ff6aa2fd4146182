import { floorTo, STATS_SPANS, TEN_SECONDS_MS } from "../../../domain/stats/stats.ts";
import { bucketOf, MEASURE, type MeasureCounts } from "../../../domain/stats/tally.ts";
import type { AttemptResult } from "../../queue.ts";
import type { CountedFigure, StoredStatsQuery, StatsSubject, StatsSubjects } from "../../history.ts";
import { matchOf } from "../catalog/matching.ts";
import { MAX_REMOVED_ROWS, type ReadPart } from "../operation.ts";
import type { Sql, SqlValue } from "../sql.ts";

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

export class StatsCounts {
  readonly #counted = new Map<string, SeriesCounts>();

  add(atMs: number, series: Series, measure: number, count = 1, error: string | null = null): void {
    const ms = floorTo(atMs, TEN_SECONDS_MS);
    const isOfAction = series[0] > 0;
    for (const counted of isOfAction ? [EVERYTHING, series] : [EVERYTHING]) {
      const key = `${ms} ${counted.join(" ")}`;
      const figure = this.#counted.get(key) ?? { ms, series: counted, counts: {}, lastError: null };
      this.#counted.set(key, figure);
      figure.counts[measure] = (figure.counts[measure] ?? 0) + count;
      figure.lastError = error ?? figure.lastError;
    }
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

  async write(sql: Sql): Promise<void> {
    for (const { ms, series, counts, lastError } of this.#counted.values()) {
      await sql.run(ADD_COUNTS, ms, ...series, JSON.stringify(counts), lastError);
    }
  }
}

/** It takes each count from the JSON as it is, which is three times as fast as from a list of lists. */
const ADD_COUNTS = `INSERT INTO figure (span_ms, start_ms, action_id, subscription_id, measure, count, last_error)
  SELECT span.column1, ?1 / span.column1 * span.column1, ?2, ?3, CAST(key AS bigint), CAST(value AS bigint), iif(key = '${MEASURE.failedAttempts}', ?5, NULL)
  FROM (VALUES ${STATS_SPANS.map(({ spanMs }) => `(${spanMs})`).join(", ")}) AS span CROSS JOIN json_each(?4) WHERE TRUE
  ON CONFLICT (span_ms, start_ms, action_id, subscription_id, measure)
  DO UPDATE SET count = figure.count + excluded.count, last_error = coalesce(excluded.last_error, figure.last_error)`;

/** @param groups of the events, each of one action and time */
export async function countPublished(
  sql: Sql,
  groups: Iterable<readonly { readonly actionId: number; readonly timestampedMs: number }[]>,
): Promise<void> {
  const counts = new StatsCounts();
  for (const events of groups) {
    const { actionId, timestampedMs } = events[0]!;
    counts.add(timestampedMs, [actionId, 0], MEASURE.published, events.length);
  }
  await counts.write(sql);
}

/** SQL that is true of a table's rows of the applications `?2`. */
function isOfApplications(table: string): string {
  return `(?2 IS NULL OR ${table}.application IN list(?2: name text))`;
}

/** SQL of the series that a query adds up; `?3` is the subscription, and the other values follow. */
function seriesOf({ by, applications, action, subscription }: StoredStatsQuery): {
  readonly text: string;
  readonly values: readonly SqlValue[];
} {
  const isOfAll = action === undefined && subscription === undefined && applications === undefined;
  if (by === "start" && isOfAll) return { text: "SELECT 0, 0 WHERE ?2 IS NULL AND ?3 IS NULL", values: [] };
  const match = matchOf(action, "a.action");
  const ofSubscriptions = `SELECT b.action_id, b.subscription_id FROM action AS a
    CROSS JOIN binding AS b ON b.action_id = a.rowid CROSS JOIN subscription AS s ON s.rowid = b.subscription_id
    WHERE (?3 IS NULL OR s.rowid = ?3) AND ${isOfApplications("s")} AND ${match.condition}`;
  if (by === "subscription") return { text: ofSubscriptions, values: match.values };
  const ofActions = `SELECT a.rowid, 0 FROM action AS a
    WHERE ?3 IS NULL AND ${isOfApplications("a")} AND ${match.condition}`;
  return {
    text: `${ofActions} UNION ALL ${ofSubscriptions}`,
    values: [...match.values, ...match.values],
  };
}

/** One call reads the figures of so many pieces of time, so that other reads get their turn. */
const PIECES_AT_ONCE = 16;

const KEY = { start: "f.start_ms", action: "f.action_id", subscription: "f.subscription_id" } as const;

/** The rows are added up here: to sort all by key and measure takes the engine twice as long. */
export async function readFigures(
  sql: Sql,
  query: StoredStatsQuery,
): Promise<ReadPart<CountedFigure, StoredStatsQuery>> {
  const { by, applications, subscription, pieces } = query;
  const series = seriesOf(query);
  const rows = await sql.rows<{ key: number; measure: number; count: number; lastError: string | null }>(
    `WITH series (action_id, subscription_id) AS MATERIALIZED (${series.text})
      SELECT ${KEY[by]} AS key, f.measure, f.count, f.last_error AS lastError
      FROM list(?1: span_ms bigint, start_ms bigint) AS piece CROSS JOIN series CROSS JOIN figure AS f
      WHERE f.span_ms = piece.span_ms AND f.start_ms = piece.start_ms
        AND f.action_id = series.action_id AND f.subscription_id = series.subscription_id`,
    pieces.slice(0, PIECES_AT_ONCE).map(({ spanMs, startMs }) => [spanMs, startMs]),
    applications,
    subscription,
    ...series.values,
  );
  const figures = new Map<number, { readonly counts: MeasureCounts; lastError: string | null }>();
  for (const { key, measure, count, lastError } of rows) {
    let figure = figures.get(key);
    if (figure === undefined) figures.set(key, (figure = { counts: {}, lastError: null }));
    figure.counts[measure] = (figure.counts[measure] ?? 0) + count;
    figure.lastError = lastError ?? figure.lastError;
  }
  const items = [...figures].map(([key, figure]) => Object.assign(figure, { key }));
  const rest = pieces.slice(PIECES_AT_ONCE);
  return rest.length === 0 ? { items } : { items, rest: { ...query, pieces: rest } };
}

/** SQL of when the last event of the action `one` was published. */
const LAST_PUBLISHED = `(SELECT e.timestamped_ms FROM event AS e
  WHERE e.rowid = (SELECT max(l.rowid) FROM event AS l INDEXED BY event_action WHERE l.action_id = one.id))`;

export async function statsSubjects(sql: Sql, query: StatsSubjects): Promise<readonly StatsSubject[]> {
  const isByAction = query.by === "action";
  const match = matchOf(query.action ?? "*", "action");
  return await sql.rows<StatsSubject>(
    `SELECT one.*, ${isByAction ? LAST_PUBLISHED : "NULL"} AS lastPublishedMs FROM (
        SELECT one.rowid AS id, application, ${isByAction ? "NULL" : "subscription"} AS subscription, action
        FROM ${query.by} AS one LEFT JOIN list(?1: place integer, id bigint) AS first ON first.id = one.rowid
        WHERE ${isByAction ? "TRUE" : "deleted_ms IS NULL"} AND ${isOfApplications("one")}
          AND (first.place IS NOT NULL OR (?3 IS NULL OR one.rowid = ?3) AND (${isByAction ? match.condition : "TRUE"}))
        ORDER BY first.place NULLS LAST, ${isByAction ? "action" : "application, subscription, action"} LIMIT ?) AS one`,
    query.first.map((id, place) => [place, id]),
    query.applications,
    query.subscription,
    ...(isByAction ? match.values : []),
    query.limit,
  );
}

export async function removeStats(sql: Sql, nowMs: number): Promise<number> {
  return await sql.run(
    `DELETE FROM figure WHERE (span_ms, start_ms, action_id, subscription_id, measure) IN (
        SELECT f.span_ms, f.start_ms, f.action_id, f.subscription_id, f.measure
        FROM list(?: span_ms bigint, before_ms bigint) AS old CROSS JOIN figure AS f
        WHERE f.span_ms = old.span_ms AND f.start_ms < old.before_ms LIMIT ?)`,
    STATS_SPANS.map(({ spanMs, keptMs }) => [spanMs, nowMs - keptMs]),
    MAX_REMOVED_ROWS,
  );
}
