import { MINUTE_MS, STATS_LIMITS } from "../../../domain/stats/stats.ts";
import { type StoredFigures, Tally } from "../../../domain/stats/tally.ts";
import {
  type ActionSubject,
  type OpenFigures,
  type OpenStats,
  STATS_SPANS,
  type StatsOf,
  type StatsSpan,
  type StatsSteps,
  type StatsSubject,
  type StatsSubjects,
  type StatsTime,
  type StatsTotals,
  type StoredStep,
  type StoredTotal,
  type SubscriptionSubject,
} from "../../history.ts";
import { matchOf } from "../catalog/matching.ts";
import type { Part } from "../thread/operation.ts";
import { type Sql, type SqlValue, textOf, timeOf, wholeOf } from "../thread/sql.ts";
import { tenSecondsOf } from "./stats-counts.ts";

/** The values of `stats.span`. */
const SPAN = { tenSeconds: 0, minute: 1, hour: 60, day: 1_440 } as const satisfies Record<StatsSpan, number>;
const SPANS = Object.keys(SPAN) as readonly StatsSpan[];

/** Answers what `stats.at` counts for a span since the epoch, in milliseconds. */
function unitOf(span: StatsSpan): number {
  return span === "tenSeconds" ? STATS_SPANS.tenSeconds : MINUTE_MS;
}

/** Answers `stats.at` of the span in which the time is. */
function startOf(ms: number, span: StatsSpan): number {
  const spanMs = STATS_SPANS[span];
  return (Math.floor(ms / spanMs) * spanMs) / unitOf(span);
}

/** The values of `stats.kind`: figures of everything, or of one application, action or subscription. */
const KIND = { all: 0, application: 1, action: 2, subscription: 3 } as const;

const COUNT_NAMES = ["published", "refused", "delivered", "failedAttempts", "failed"] as const;
const COLUMNS = "published, refused, delivered, failed_attempts, failed";

/** SQL of `StoredFigures`: those of a row, or with `sum` of many. Histograms one after the other are their sum. */
function figures(sum: boolean): string {
  const counts = COLUMNS.split(", ").map(
    (column, place) => `${sum ? "sum" : ""}(${wholeOf(column)}) AS ${COUNT_NAMES[place]}`,
  );
  const times = ["latency", "attempts"].map((column) => {
    const hex = sum ? `group_concat(hex(${column}), '')` : `hex(${column})`;
    return `coalesce(${hex}, '') AS ${column}`;
  });
  const lastError = sum ? "NULL" : textOf("last_error");
  return [...counts, ...times, `${lastError} AS lastError`].join(", ");
}
const FIGURES = figures(false);
const SUMS = figures(true);

/** Answers what a map has for a key, and gives it new tallies where it has none. */
function tallyOf<K>(tallies: Map<K, Tally>, key: K): Tally {
  let tally = tallies.get(key);
  if (tally === undefined) tallies.set(key, (tally = new Tally()));
  return tally;
}

/** Answers the key of a row within its span, as JSON. */
function keyOf(kind: number, id: number, application: string): string {
  return JSON.stringify([kind, id, application]);
}

interface OpenRow {
  readonly action_id: number;
  readonly subscription_id: number;
  readonly measure: number;
  readonly count: number;
  readonly last_error: string | null;
  readonly application: string;
}

/** Open counts with the application that they are of. */
const OPEN = `stats_open LEFT JOIN action ON action.rowid = stats_open.action_id
  LEFT JOIN subscription ON subscription.rowid = stats_open.subscription_id`;
const APPLICATION = "coalesce(subscription.application, action.application, '')";

/** One write adds so many counts, which takes some milliseconds of the store's thread. */
const FOLDED_AT_ONCE = 1_000;

/**
 * Adds open counts to the figures, in the transaction of the call: ten seconds, their minute, hour and day agree at all times.
 */
export function foldStats(sql: Sql, beforeMs: number, known?: StatsTime): boolean {
  if (known !== undefined) noteKnown(sql, known);
  const before = tenSecondsOf(beforeMs);
  const at = sql.value<number | null>("SELECT min(at) FROM stats_open WHERE at < ?", before);
  if (at === null) return false;
  const rows = sql.rows<OpenRow>(
    `SELECT action_id, subscription_id, measure, count, last_error, ${APPLICATION} AS application FROM ${OPEN}
      WHERE at = ? ORDER BY action_id, subscription_id, measure LIMIT ?`,
    at,
    FOLDED_AT_ONCE,
  );
  const tallies = new Map<string, Tally>();
  for (const { action_id, subscription_id, measure, count, last_error, application } of rows) {
    const keys = [keyOf(KIND.all, 0, ""), keyOf(KIND.application, 0, application)];
    if (action_id > 0) keys.push(keyOf(KIND.action, action_id, application));
    if (subscription_id > 0) keys.push(keyOf(KIND.subscription, subscription_id, application));
    for (const key of keys) {
      const tally = tallyOf(tallies, key);
      tally.count(measure, count);
      tally.lastError = last_error ?? tally.lastError;
    }
  }
  for (const span of SPANS) addFigures(sql, span, startOf(at * STATS_SPANS.tenSeconds, span), tallies);
  const { action_id, subscription_id, measure } = rows.at(-1)!;
  sql.run(
    "DELETE FROM stats_open WHERE at = ? AND (action_id, subscription_id, measure) <= (?, ?, ?)",
    at,
    action_id,
    subscription_id,
    measure,
  );
  return true;
}

function noteKnown(sql: Sql, { fromMs, toMs }: StatsTime): void {
  for (const span of SPANS) {
    sql.run(
      `INSERT OR IGNORE INTO stats (span, at, kind, id, application, ${COLUMNS})
        WITH RECURSIVE known (at) AS (SELECT ?2 UNION ALL SELECT at + ?4 FROM known WHERE at + ?4 < ?3)
        SELECT ?1, at, ${KIND.all}, 0, '', 0, 0, 0, 0, 0 FROM known`,
      SPAN[span],
      startOf(fromMs, span),
      toMs / unitOf(span),
      STATS_SPANS[span] / unitOf(span),
    );
  }
}

/** Adds figures to what is stored of a span. */
function addFigures(sql: Sql, span: StatsSpan, at: number, added: ReadonlyMap<string, Tally>): void {
  const stored = sql.rows<StoredFigures & { key: string }>(
    `SELECT sought.value AS key, ${FIGURES} FROM json_each(?3) AS sought CROSS JOIN stats
      ON span = ?1 AND at = ?2 AND kind = sought.value ->> 0 AND stats.id = sought.value ->> 1
        AND application = sought.value ->> 2`,
    SPAN[span],
    at,
    JSON.stringify([...added.keys()]),
  );
  const sums = new Map<string, Tally>();
  for (const row of stored) tallyOf(sums, row.key).add(row);
  const cells = [...added].map(([key, tally]) => {
    const sum = tallyOf(sums, key);
    sum.add(tally.stored());
    const { latency, attempts, lastError, ...counts } = sum.stored();
    const values = COUNT_NAMES.map((name) => counts[name]);
    return [JSON.parse(key) as unknown[], values, [latency, attempts, lastError]].flat();
  });
  sql.run(
    `INSERT OR REPLACE INTO stats (span, at, kind, id, application, ${COLUMNS}, latency, attempts, last_error)
      SELECT ?1, ?2, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
        nullif(unhex(value ->> 8), x''), nullif(unhex(value ->> 9), x''), value ->> 10
      FROM json_each(?3)`,
    SPAN[span],
    at,
    JSON.stringify(cells),
  );
}

interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** For more subjects than this it is quicker to look at all there are. */
const MAX_SOUGHT = 100;

/**
 * Answers a condition that is true of the rows whose figures are asked for, where `subject` is the column of an action or of a
 * subscription.
 */
function isAsked(
  sql: Sql,
  { applications, action, subscription }: StatsOf,
  columns: Readonly<Record<StatsSubject | "application", string>>,
): Condition {
  const values: SqlValue[] = [];
  const conditions = ["true"];
  if (subscription !== undefined) {
    conditions.push(`${columns.subscription} = ?`);
    values.push(subscription);
  } else if (action !== undefined) {
    const match = matchOf(action, "action.action");
    const ids = sql
      .rows<{ id: number }>(`SELECT rowid AS id FROM action WHERE ${match.condition}`, ...match.values)
      .map(({ id }) => id);
    const column = `${ids.length > MAX_SOUGHT ? "+" : ""}${columns.action}`;
    conditions.push(`${column} IN (SELECT value FROM json_each(?))`);
    values.push(JSON.stringify(ids));
  }
  if (applications !== undefined) {
    conditions.push(`+${columns.application} IN (SELECT value FROM json_each(?))`);
    values.push(JSON.stringify(applications));
  }
  return { sql: conditions.join(" AND "), values };
}

function isStored(sql: Sql, query: StatsOf, kind: keyof typeof KIND): Condition {
  const condition = isAsked(sql, query, {
    action: "stats.id",
    subscription: "stats.id",
    application: "stats.application",
  });
  return { ...condition, sql: `kind = ${KIND[kind]} AND ${condition.sql}` };
}

function kindOf({ applications, action, subscription }: StatsOf): keyof typeof KIND {
  if (subscription !== undefined) return "subscription";
  if (action !== undefined) return "action";
  return applications === undefined ? "all" : "application";
}

/** One call adds up so many spans of figures. */
const ADDED_SPANS = 50;

export function readStatsSteps(sql: Sql, query: StatsSteps): Part<StoredStep, StatsSteps> {
  const { span, fromMs, toMs, stepMs } = query;
  // Each part ends with a step, so that none is in two.
  const steps = Math.ceil((ADDED_SPANS * STATS_SPANS[span]) / stepMs);
  const endMs = Math.min(toMs, (Math.floor(fromMs / stepMs) + steps) * stepMs);
  const starts: number[] = [];
  for (let ms = fromMs; ms < endMs; ms += STATS_SPANS[span]) starts.push(startOf(ms, span));
  const values = [stepMs / unitOf(span), JSON.stringify(starts), SPAN[span]];
  const inSteps = "FROM json_each(?) AS sought CROSS JOIN stats ON span = ? AND at = sought.value WHERE";
  // What is known of everything is known of each: nothing happened where there is no row of its own.
  const known = sql.rows<{ step: number }>(
    `SELECT DISTINCT at / ? AS step ${inSteps} kind = ${KIND.all} ORDER BY 1`,
    ...values,
  );
  const tallies = new Map(known.map(({ step }) => [step, new Tally()]));
  const condition = isStored(sql, query, kindOf(query));
  const rows = sql.rows<StoredFigures & { step: number }>(
    `SELECT at / ? AS step, ${SUMS} ${inSteps} ${condition.sql} GROUP BY 1`,
    ...values,
    ...condition.values,
  );
  for (const row of rows) tallies.get(row.step)?.add(row);
  const items = [...tallies].map(([step, tally]) => ({ startMs: step * stepMs, figures: tally.stored() }));
  return endMs < toMs ? { items, rest: { ...query, fromMs: endMs } } : { items };
}

/** One call adds up the figures of so many actions or subscriptions. */
const TOTALS_AT_ONCE = 64;

interface TotalsQuery extends StatsTotals {
  /** Only actions or subscriptions with a larger rowid count. */
  readonly after?: number;
}

export function readStatsTotals(sql: Sql, query: TotalsQuery): Part<StoredTotal, TotalsQuery> {
  const { by, pieces, after = 0 } = query;
  const ids = sql.rows<{ id: number }>(
    `SELECT rowid AS id FROM ${by} WHERE rowid > ? ORDER BY rowid LIMIT ${TOTALS_AT_ONCE}`,
    after,
  );
  const last = ids.at(-1)?.id ?? after;
  const condition = isStored(sql, query, by);
  const rows = sql.rows<StoredFigures & { id: number }>(
    `SELECT stats.id, ${FIGURES} FROM json_each(?) AS piece CROSS JOIN stats
        ON span = piece.value ->> 0 AND at = piece.value ->> 1
      WHERE ${condition.sql} AND stats.id > ? AND stats.id <= ?`,
    JSON.stringify(pieces.map(({ span, startMs }) => [SPAN[span], startOf(startMs, span)])),
    ...condition.values,
    after,
    last,
  );
  const tallies = new Map<number, Tally>();
  for (const row of rows) tallyOf(tallies, row.id).add(row);
  const items = named(sql, by, tallies);
  return ids.length < TOTALS_AT_ONCE ? { items } : { items, rest: { ...query, after: last } };
}

function named(sql: Sql, by: StatsSubject, tallies: ReadonlyMap<number, Tally>): readonly StoredTotal[] {
  if (by === "subscription") {
    return [...tallies].map(([subject, tally]) => ({ subject, figures: tally.stored() }));
  }
  const names = sql.rows<{ id: number; action: string }>(
    `SELECT action.rowid AS id, action.action FROM json_each(?) AS sought
      CROSS JOIN action ON action.rowid = sought.value`,
    JSON.stringify([...tallies.keys()]),
  );
  return names.map(({ id, action }) => ({ subject: action, figures: tallies.get(id)!.stored() }));
}

export function readOpenStats(sql: Sql, query: OpenStats): OpenFigures {
  const { fromMs, toMs, by } = query;
  const condition = isAsked(sql, query, {
    action: "stats_open.action_id",
    subscription: "stats_open.subscription_id",
    application: APPLICATION,
  });
  const rows = sql.rows<Pick<OpenRow, "measure" | "count" | "last_error"> & { at: number; id: number }>(
    `SELECT at, ${by === undefined ? "0" : `${by}_id`} AS id, measure, sum(${wholeOf("count")}) AS count,
        max(${textOf("last_error")}) AS last_error
      FROM ${OPEN} WHERE at >= ? AND at < ? AND ${condition.sql} GROUP BY 1, 2, 3`,
    tenSecondsOf(fromMs),
    tenSecondsOf(toMs),
    ...condition.values,
  );
  const steps = new Map<number, Tally>();
  const tallies = new Map<number, Tally>();
  for (const { at, id, measure, count, last_error: lastError } of rows) {
    tallyOf(steps, at).count(measure, count);
    if (id === 0) continue;
    const tally = tallyOf(tallies, id);
    tally.count(measure, count);
    tally.lastError = lastError ?? tally.lastError;
  }
  return {
    steps: [...steps].map(([at, step]) => ({ startMs: at * STATS_SPANS.tenSeconds, figures: step.stored() })),
    totals: by === undefined ? [] : named(sql, by, tallies),
  };
}

/** SQL that follows `FROM`: those named in the list `?1`, in its order, then others; only those of the applications `?2`. */
function subjects(table: StatsSubject, name: string, isOther: string, order: string): string {
  return `${table} AS one LEFT JOIN (SELECT key AS place, value AS name FROM json_each(?1)) AS first ON first.name = ${name}
    WHERE ${table === "subscription" ? "one.deleted_ms IS NULL" : "TRUE"} AND (?2 IS NULL OR one.application IN (SELECT value FROM json_each(?2)))
      AND (first.place IS NOT NULL OR ${isOther}) ORDER BY first.place NULLS LAST, ${order} LIMIT ?`;
}

function listOrNull(list: readonly string[] | undefined): string | null {
  return list === undefined ? null : JSON.stringify(list);
}

/** Answers the actions of `first`, then others by name that are not evreg's own. */
export function statsActions(sql: Sql, query: StatsSubjects): readonly ActionSubject[] {
  const match = matchOf(query.action ?? "*", "one.action");
  return sql.rows<ActionSubject>(
    `SELECT page.action, page.application, (SELECT ${timeOf("e.timestamped_ms")} FROM event AS e
        WHERE e.rowid = (SELECT max(l.rowid) FROM event AS l INDEXED BY event_action WHERE l.action_id = page.id)) AS lastPublishedMs
      FROM (SELECT one.rowid AS id, one.action, one.application
        FROM ${subjects("action", "one.action", match.condition, "one.action")}) AS page`,
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
      FROM ${subjects("subscription", "one.rowid", isOther, order)}`,
    JSON.stringify(query.first),
    listOrNull(query.applications),
    query.subscription ?? null,
    query.limit,
  );
}

/** A step removes so many rows, each of which takes some microseconds. */
const REMOVED_AT_ONCE = 500;

export function removeStats(sql: Sql, nowMs: number): number {
  return SPANS.reduce((removed, span) => {
    const keptMs = span === "tenSeconds" ? STATS_LIMITS.tenSecondsKeptMs : STATS_LIMITS.keptMs;
    return (
      removed +
      sql.run(
        `DELETE FROM stats WHERE (span, at, kind, id, application) IN (
          SELECT span, at, kind, id, application FROM stats WHERE span = ? AND at < ? LIMIT ?)`,
        SPAN[span],
        startOf(nowMs - keptMs, span),
        REMOVED_AT_ONCE - removed,
      )
    );
  }, 0);
}
