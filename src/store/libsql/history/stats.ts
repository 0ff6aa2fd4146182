import { Tally, type StoredFigures } from "../../../metrics/stats/tally.ts";
import type { Steps } from "../../../runtime/yielding.ts";
import {
  type ActionSubject,
  STATS_SPANS,
  type StatsKind,
  type StatsOf,
  type StatsRow,
  type StatsSteps,
  type StatsSubjects,
  type StatsTotals,
  type StoredStep,
  type StoredTotal,
  type SubscriptionSubject,
} from "../../stats.ts";
import { heardBy } from "../catalog/hearing.ts";
import { type Sql, type SqlValue, textOf, timeOf, wholeOf } from "../thread/sql.ts";

const MINUTE_MS = 60_000;

/** `stats.kind` */
const KIND = { all: 0, application: 1, action: 2, subscription: 3 } as const satisfies Record<
  StatsKind,
  number
>;

const COUNTS = ["published", "refused", "delivered", "failed_attempts", "failed"] as const;

interface FiguresRow extends Record<(typeof COUNTS)[number], number> {
  readonly latency: string;
  readonly attempts: string;
  readonly last_error: string | null;
}

const FIGURES = `${COUNTS.map((name) => `${wholeOf(`s.${name}`)} AS ${name}`).join(", ")},
  ${hexOf("s.latency")} AS latency, ${hexOf("s.attempts")} AS attempts, ${textOf("s.last_error")} AS last_error`;

/** Histograms one after the other are their sum. */
const SUMS = `${COUNTS.map((name) => `sum(${wholeOf(`s.${name}`)}) AS ${name}`).join(", ")},
  coalesce(group_concat(${hexOf("s.latency")}, ''), '') AS latency,
  coalesce(group_concat(${hexOf("s.attempts")}, ''), '') AS attempts, NULL AS last_error`;

function hexOf(column: string): string {
  return `coalesce(hex(${column}), '')`;
}

function figuresOf(row: FiguresRow): StoredFigures {
  const { published, refused, delivered, failed_attempts: failedAttempts, failed } = row;
  const { latency, attempts, last_error: lastError } = row;
  return { published, refused, delivered, failedAttempts, failed, latency, attempts, lastError };
}

type Key = readonly [kind: number, id: number, application: string];

/** In the transaction of the call: a minute, its hour and its day agree at all times. */
export function addStats(sql: Sql, startMs: number, rows: readonly StatsRow[]): void {
  const actionIds = idsOfActions(sql, rows);
  const keyed = rows.flatMap((row): readonly (readonly [Key, StatsRow])[] => {
    const id = row.subscription ?? (row.action === undefined ? 0 : actionIds.get(row.action));
    return id === undefined ? [] : [[[KIND[row.kind], id, row.application], row]];
  });
  for (const span of STATS_SPANS) {
    const at = startOf(startMs, span);
    const stored = loadStored(
      sql,
      span,
      at,
      keyed.map(([key]) => key),
    );
    const cells = keyed.map(([key, row]) => {
      const tally = new Tally();
      const before = stored.get(key.join());
      if (before !== undefined) tally.add(before);
      tally.add(row);
      return written(key, tally.stored());
    });
    sql.run(
      `INSERT OR REPLACE INTO stats (span, at, kind, id, application, ${COUNTS.join(", ")}, latency, attempts, last_error)
        SELECT ?1, ?2, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
          nullif(unhex(value ->> 8), x''), nullif(unhex(value ->> 9), x''), value ->> 10
        FROM json_each(?3)`,
      span,
      at,
      JSON.stringify(cells),
    );
  }
}

function written([kind, id, application]: Key, figures: StoredFigures): readonly unknown[] {
  const { published, refused, delivered, failedAttempts, failed, latency, attempts, lastError } = figures;
  const counts = [published, refused, delivered, failedAttempts, failed];
  return [kind, id, application, ...counts, latency, attempts, lastError];
}

/** Minutes since the epoch. */
function startOf(startMs: number, span: number): number {
  return Math.floor(startMs / MINUTE_MS / span) * span;
}

function idsOfActions(sql: Sql, rows: readonly StatsRow[]): ReadonlyMap<string, number> {
  const names = new Set(rows.flatMap(({ action }) => (action === undefined ? [] : [action])));
  if (names.size === 0) return new Map();
  const found = sql.rows<{ id: number; action: string }>(
    `SELECT a.rowid AS id, a.action FROM json_each(?) AS g CROSS JOIN action AS a ON a.action = g.value`,
    JSON.stringify([...names]),
  );
  return new Map(found.map(({ id, action }) => [action, id]));
}

function loadStored(
  sql: Sql,
  span: number,
  at: number,
  keys: readonly Key[],
): ReadonlyMap<string, StoredFigures> {
  const rows = sql.rows<FiguresRow & { kind: number; id: number; application: string }>(
    `SELECT s.kind, s.id, s.application, ${FIGURES} FROM json_each(?3) AS g CROSS JOIN stats AS s
      ON s.span = ?1 AND s.at = ?2 AND s.kind = g.value ->> 0 AND s.id = g.value ->> 1 AND s.application = g.value ->> 2`,
    span,
    at,
    JSON.stringify(keys),
  );
  return new Map(rows.map((row) => [[row.kind, row.id, row.application].join(), figuresOf(row)]));
}

interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** More are found sooner by looking at all there are. */
const MAX_SOUGHT = 100;

/** True of the rows of what is asked for. */
function rowsOf(sql: Sql, { applications, action, subscription }: StatsOf, kind: StatsKind): Condition {
  const values: SqlValue[] = [];
  let condition = `s.kind = ${KIND[kind]}`;
  if (subscription !== undefined) {
    condition += " AND s.id = ?";
    values.push(subscription);
  } else if (action !== undefined) {
    const heard = heardBy(action, "a.action");
    const ids = sql
      .rows<{ id: number }>(`SELECT a.rowid AS id FROM action AS a WHERE ${heard.condition}`, ...heard.values)
      .map(({ id }) => id);
    condition += ` AND ${ids.length > MAX_SOUGHT ? "+" : ""}s.id IN (SELECT value FROM json_each(?))`;
    values.push(JSON.stringify(ids));
  }
  if (applications !== undefined) {
    condition += " AND +s.application IN (SELECT value FROM json_each(?))";
    values.push(JSON.stringify(applications));
  }
  return { sql: condition, values };
}

function kindOf({ applications, action, subscription }: StatsOf): StatsKind {
  if (subscription !== undefined) return "subscription";
  if (action !== undefined) return "action";
  return applications === undefined ? "all" : "application";
}

/** Spans that a step of the read looks at. */
const SPANS_AT_ONCE = 200;

export function* readStatsSteps(sql: Sql, query: StatsSteps): Steps<readonly StoredStep[]> {
  const { span, fromMs, toMs, stepMs } = query;
  const step = stepMs / MINUTE_MS;
  const kind = kindOf(query);
  const condition = rowsOf(sql, query, kind);
  const tallies = new Map<number, Tally>();
  const endAt = Math.ceil(toMs / MINUTE_MS);
  for (let at = fromMs / MINUTE_MS; at < endAt; at += SPANS_AT_ONCE * span) {
    const lastAt = Math.min(endAt, at + SPANS_AT_ONCE * span);
    const ats: number[] = [];
    for (let one = at; one < lastAt; one += span) ats.push(one);
    const inSteps = (
      where: string,
      of: string,
      values: readonly SqlValue[],
    ): readonly ({ step: number } & FiguresRow)[] =>
      sql.rows(
        `SELECT s.at / ? AS step, ${of} FROM json_each(?) AS g CROSS JOIN stats AS s
          ON s.span = ? AND s.at = g.value WHERE ${where} GROUP BY 1`,
        step,
        JSON.stringify(ats),
        span,
        ...values,
      );
    // What is known of everything is known of each, as nothing happened where there is no row.
    for (const known of inSteps(`s.kind = ${KIND.all}`, "NULL AS none", [])) {
      if (!tallies.has(known.step)) tallies.set(known.step, new Tally());
    }
    for (const row of inSteps(condition.sql, SUMS, condition.values))
      tallies.get(row.step)?.add(figuresOf(row));
    yield;
  }
  return [...tallies].map(([number, tally]) => ({ startMs: number * stepMs, figures: tally.stored() }));
}

/** Rows that a step of the read adds up. */
const ROWS_AT_ONCE = 500;

export function* readStatsTotals(sql: Sql, query: StatsTotals): Steps<readonly StoredTotal[]> {
  const { by, pieces } = query;
  const condition = rowsOf(sql, query, by);
  const tallies = new Map<number, Tally>();
  for (const { span, startMs } of pieces) {
    for (let last: readonly [number, string] | undefined = [0, ""]; last !== undefined;) {
      const rows: readonly (FiguresRow & { id: number; application: string })[] = sql.rows(
        `SELECT s.id, s.application, ${FIGURES} FROM stats AS s
          WHERE s.span = ? AND s.at = ? AND ${condition.sql} AND (s.id, s.application) > (?, ?)
          ORDER BY s.id, s.application LIMIT ?`,
        span,
        startOf(startMs, span),
        ...condition.values,
        ...last,
        ROWS_AT_ONCE,
      );
      for (const row of rows) {
        let tally = tallies.get(row.id);
        if (tally === undefined) tallies.set(row.id, (tally = new Tally()));
        tally.add(figuresOf(row));
      }
      const end = rows.at(-1);
      last = end === undefined || rows.length < ROWS_AT_ONCE ? undefined : [end.id, end.application];
      yield;
    }
  }
  if (by === "subscription") {
    return [...tallies].map(([id, tally]) => ({ action: "", subscription: id, figures: tally.stored() }));
  }
  const names = sql.rows<{ id: number; action: string }>(
    "SELECT a.rowid AS id, a.action FROM json_each(?) AS g CROSS JOIN action AS a ON a.rowid = g.value",
    JSON.stringify([...tallies.keys()]),
  );
  return names.map(({ id, action }) => ({ action, subscription: 0, figures: tallies.get(id)!.stored() }));
}

/** `of` is what is read, `asked` a JSON object. */
const IN_APPLICATIONS =
  "(asked.q ->> 'applications' IS NULL OR of.application IN (SELECT value FROM json_each(asked.q, '$.applications')))";
const IS_FIRST = "SELECT value FROM json_each(asked.q, '$.first')";
const ASKED = "WITH asked (q) AS MATERIALIZED (SELECT ?)";

/** Those of `first`, then others by name that are not evreg's own. */
export function* statsActions(sql: Sql, query: StatsSubjects): Steps<readonly ActionSubject[]> {
  const { action = "*", limit } = query;
  const heard = heardBy(action, "of.action");
  const select = `SELECT of.action, of.application, (SELECT ${timeOf("e.timestamped_ms")} FROM event AS e
      WHERE e.rowid = (SELECT max(l.rowid) FROM event AS l INDEXED BY event_action WHERE l.action_id = of.rowid)) AS lastPublishedMs`;
  const asked = JSON.stringify(query);
  const found = sql.rows<ActionSubject>(
    `${ASKED} ${select} FROM asked CROSS JOIN json_each(asked.q, '$.first') AS g
      CROSS JOIN action AS of ON of.action = g.value WHERE ${IN_APPLICATIONS} LIMIT ?`,
    asked,
    limit,
  );
  yield;
  if (found.length >= limit) return found;
  const others = sql.rows<ActionSubject>(
    `${ASKED} ${select} FROM asked CROSS JOIN action AS of
      WHERE ${IN_APPLICATIONS} AND of.action NOT IN (${IS_FIRST}) AND ${heard.condition} ORDER BY of.action LIMIT ?`,
    asked,
    ...heard.values,
    limit - found.length,
  );
  return [...found, ...others];
}

/** The same of subscriptions that are not deleted. */
export function* statsSubscriptions(sql: Sql, query: StatsSubjects): Steps<readonly SubscriptionSubject[]> {
  const { subscription = null, limit } = query;
  const select = "SELECT of.rowid AS id, of.application, of.subscription, of.action";
  const asked = JSON.stringify(query);
  const found = sql.rows<SubscriptionSubject>(
    `${ASKED} ${select} FROM asked CROSS JOIN json_each(asked.q, '$.first') AS g
      CROSS JOIN subscription AS of ON of.rowid = g.value
      WHERE of.deleted_ms IS NULL AND ${IN_APPLICATIONS} LIMIT ?`,
    asked,
    limit,
  );
  yield;
  if (found.length >= limit) return found;
  const others = sql.rows<SubscriptionSubject>(
    `${ASKED} ${select} FROM asked CROSS JOIN subscription AS of
      WHERE of.deleted_ms IS NULL AND ${IN_APPLICATIONS} AND of.rowid NOT IN (${IS_FIRST})
        AND (? IS NULL OR of.rowid = ?)
      ORDER BY of.application, of.subscription, of.action LIMIT ?`,
    asked,
    subscription,
    subscription,
    limit - found.length,
  );
  return [...found, ...others];
}

/** Rows of a step, each of which takes some microseconds. */
const REMOVED_AT_ONCE = 500;

export function removeStats(sql: Sql, beforeMs: number): number {
  return STATS_SPANS.reduce((removed, span) => {
    return (
      removed +
      sql.run(
        `DELETE FROM stats WHERE (span, at, kind, id, application) IN (
          SELECT span, at, kind, id, application FROM stats WHERE span = ? AND at < ? LIMIT ?)`,
        span,
        startOf(beforeMs, span),
        REMOVED_AT_ONCE - removed,
      )
    );
  }, 0);
}
