import { ATTEMPT_ERROR_CODES } from "../../../domain/delivery.ts";
import { EvregError } from "../../../domain/error.ts";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import { DELIVERY_STATE } from "../queue/delivery-state.ts";
import { FIRST_MS, LAST_MS, type Sql } from "../thread/sql.ts";

// What rows of evreg's can be, table by table: what no version of it could have written is damage, or was put there by
// somebody. Types, NOT NULL and the tables' own CHECKs are not here, as the engine's integrity check looks at those. The
// limits are those of today's requests or wider, as a file that is good must never be refused.

interface TableLimits {
  readonly table: string;
  /** The columns that name a row, in the order of the table. */
  readonly key: readonly string[];
  /** The condition that each column holds; one that the file's form does not have yet is left out. */
  readonly columns: Readonly<Record<string, Condition>>;
  /** Columns of JSON text; their nesting is looked at apart, see `KEPT_NESTING`. */
  readonly json?: readonly string[];
}

/** SQL that is true of a value in this column. */
type Condition = (column: string) => string;

const JSON_ROWS = 50;
const MOST_NAMED = 5;

const MOST = Number.MAX_SAFE_INTEGER;
const DAY_MS = 86_400_000;

const between =
  (low: number, high: number): Condition =>
  (column) =>
    `${column} BETWEEN ${low} AND ${high}`;
const id = between(1, MOST);
const count = between(0, MOST);
const time = between(FIRST_MS, LAST_MS);
const span = between(0, 366_000 * DAY_MS);
const optional =
  (condition: Condition): Condition =>
  (column) =>
    `(${column} IS NULL OR ${condition(column)})`;
/** The engine reads text up to the first NUL. */
const text =
  (mostBytes: number): Condition =>
  (column) =>
    `octet_length(${column}) <= ${mostBytes} AND instr(${column}, char(0)) = 0`;
const blob =
  (low: number, high: number): Condition =>
  (column) =>
    `octet_length(${column}) BETWEEN ${low} AND ${high}`;
const actionName: Condition = (column) =>
  `octet_length(${column}) BETWEEN 1 AND 128 AND ${column} NOT GLOB '*[^A-Za-z0-9_.-]*'`;
/** 128 characters, as they are counted in strings: each comes to 3 bytes at most. */
const label: Condition = (column) => `octet_length(${column}) >= 1 AND ${text(3 * 128)(column)}`;
const oneOf =
  (values: readonly string[]): Condition =>
  (column) =>
    `${column} IN (${values.map((value) => `'${value}'`).join(", ")})`;
const hex =
  (digits: number): Condition =>
  (column) =>
    `octet_length(${column}) = ${digits} AND ${column} NOT GLOB '*[^0-9a-f]*'`;

const KIB = 1_024;
/** The beginning of an answer, or why an address was refused; both come to far less. */
export const MOST_RESPONSE_BYTES = 16 * KIB;
/** A secret, 2 KiB of a bearer, and what encrypting them adds. */
const secret = text(16 * KIB);
const schema = text(1_024 * KIB);

const TABLES: readonly TableLimits[] = [
  {
    table: "action",
    key: ["rowid"],
    columns: {
      rowid: id,
      action: actionName,
      application: label,
      revision: id,
      created_ms: time,
      edition: id,
      version: id,
      deprecated_ms: optional(time),
      retired_ms: optional(time),
      successor: optional(actionName),
    },
  },
  {
    table: "action_revision",
    key: ["action_id", "revision"],
    columns: { revision: id, schemata: schema, created_ms: time, breaks: optional(count) },
    json: ["schemata"],
  },
  {
    table: "event",
    key: ["rowid"],
    columns: {
      rowid: id,
      revision: id,
      timestamped_ms: time,
      idempotency_key: optional(
        (column) => `octet_length(${column}) BETWEEN 1 AND 255 AND ${column} NOT GLOB '*[^ -~]*'`,
      ),
      // Its JSON is read with its checksum.
      payload: blob(2, EVENT_LIMITS.payloadMaxBytes),
      checksum: optional(between(0, 2 ** 32 - 1)),
    },
  },
  {
    table: "clock_step",
    key: ["rowid"],
    columns: { first_event: count, first_delivery: count, noticed_ms: time },
  },
  {
    table: "subscription",
    key: ["rowid"],
    columns: {
      rowid: id,
      application: label,
      subscription: label,
      handler: text(8 * KIB),
      max_retries: between(0, 1_000),
      disabled_reason: optional(text(4 * KIB)),
      secret,
      created_ms: time,
      deleted_ms: optional(time),
      slowed_until_ms: optional(time),
      retry_wait_until_ms: optional(time),
      failing_since_ms: optional(time),
      failed_ms: optional(time),
      failing_ms: span,
      last_failure_ms: optional(time),
      failing_total_ms: span,
      settings: optional(schema),
    },
    json: ["settings"],
  },
  { table: "binding", key: ["action_id", "subscription_id"], columns: { action_id: id } },
  {
    table: "subscription_secret",
    key: ["subscription_id"],
    columns: {
      secret,
      previous_secret: optional(secret),
      previous_until_ms: optional(time),
      bearer_token: optional(secret),
    },
  },
  { table: "encryption", key: ["one"], columns: { proof: text(KIB) } },
  { table: "data_identity", key: ["one"], columns: { id: hex(32) } },
  {
    table: "delivery",
    key: ["rowid"],
    columns: {
      rowid: id,
      state: (column) => `${column} IN (${Object.values(DELIVERY_STATE).join(", ")})`,
      attempt: count,
      failures: count,
      created_ms: time,
      // Up to version 11 of the schema also a place in an order and, below 0, a request.
      due_ms: optional(between(-MOST, MOST)),
      sequence: optional(id),
      finished_ms: optional(time),
      last_error: optional(text(KIB)),
    },
  },
  {
    table: "lease",
    key: ["delivery_id"],
    columns: { claim_id: id, claimed_ms: time, until_ms: time },
  },
  {
    table: "attempt",
    key: ["delivery_id", "attempt"],
    columns: {
      attempt: id,
      started_ms: time,
      duration_ms: span,
      status_code: optional(between(100, 999)),
      error_code: optional(oneOf(ATTEMPT_ERROR_CODES)),
      response: optional(blob(0, MOST_RESPONSE_BYTES)),
      dns_ms: optional(span),
      connect_ms: optional(span),
      first_byte_ms: optional(span),
    },
  },
  {
    table: "token",
    key: ["rowid"],
    columns: {
      rowid: id,
      name: label,
      scopes: text(1_024 * KIB),
      hash: hex(64),
      expires_ms: optional(time),
      last_used_ms: optional(time),
      created_ms: time,
    },
    json: ["scopes"],
  },
  { table: "probe", key: ["one"], columns: { tried: count, filler: blob(0, 64 * 1_024 * KIB) } },
  { table: "write_check", key: ["one"], columns: { filler: blob(0, 64 * 1_024 * KIB) } },
  { table: "last_backup", key: ["one"], columns: { started_ms: time } },
  {
    table: "event_count",
    key: ["level", "block", "action_id"],
    columns: { level: between(0, 2), block: count, action_id: count, events: count },
  },
  {
    table: "replay",
    key: ["rowid"],
    columns: {
      rowid: id,
      from_ms: time,
      to_ms: time,
      ranges: text(16 * 1_024 * KIB),
      reason: optional(text(4 * KIB)),
      total: optional(count),
      queued: count,
      created_ms: time,
      finished_ms: optional(time),
    },
    json: ["ranges"],
  },
];

/** Tables of which rows are read whole and often; they are small where the file is evreg's. */
const READ_WHOLE: ReadonlySet<string> = new Set([
  "action",
  "action_revision",
  "subscription",
  "subscription_secret",
  "encryption",
  "token",
  "replay",
]);

/**
 * Rows that evreg could not have written, each as a part of a sentence; `most` of them.
 * @param which only of the tables that a server reads whole, or of all
 */
export function impossibleRows(
  sql: Sql,
  most: number,
  which: "read whole" | "all" = "all",
): readonly string[] {
  const found: string[] = [];
  for (const limits of TABLES) {
    if (which === "read whole" && !READ_WHOLE.has(limits.table)) continue;
    const known = columnsOf(sql, limits.table);
    if (known.size === 0) continue;
    const conditions = Object.entries(limits.columns).filter(([column]) => known.has(column));
    const rows = sql.rows<{ row: string; bad: string }>(
      `SELECT row, bad FROM (SELECT ${rowOf(limits)} AS row, CASE ${conditions
        .map(([column, holds]) => `WHEN (${holds(column)}) IS NOT TRUE THEN '${column}'`)
        .join(" ")} END AS bad FROM ${limits.table}) WHERE bad IS NOT NULL LIMIT ${most - found.length}`,
    );
    found.push(...rows.map(({ row, bad }) => `${bad} of ${limits.table} ${row}`));
    if (found.length >= most) break;
  }
  return found;
}

/** Rows whose foreign keys lead nowhere; likewise. */
export function danglingRows(sql: Sql, most: number): readonly string[] {
  const rows = sql.rows<{ child: string; row: number | null; parent: string }>(
    `SELECT "table" AS child, rowid AS row, parent FROM pragma_foreign_key_check LIMIT ${most}`,
  );
  return rows.map(({ child, row, parent }) =>
    `${child} ${row ?? ""} without its ${parent}`.replace("  ", " "),
  );
}

/** Tables whose rows have numbers that were not given, or where none is left to be given. */
export function impossibleNumbers(sql: Sql): readonly string[] {
  const numbered = TABLES.filter(({ columns }) => "rowid" in columns).map(({ table }) => table);
  return numbered.flatMap((table) => {
    if (columnsOf(sql, table).size === 0) return [];
    const { good } = sql.first<{ good: number }>(
      `SELECT coalesce((SELECT max(rowid) FROM ${table}), 0) <= given AND given < ${MOST}
          AND coalesce((SELECT min(rowid) FROM ${table}), 1) >= 1 AS good
        FROM (SELECT coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = '${table}'), 0) AS given)`,
    )!;
    return good === 1 ? [] : [`numbers of ${table}`];
  });
}

/** The columns of JSON, with what names their rows; some rows are read at a time. */
export function* keptJson(sql: Sql): Generator<{ readonly what: string; readonly text: string }, void> {
  for (const limits of TABLES) {
    const { table, key, json = [] } = limits;
    const known = columnsOf(sql, table);
    for (const column of json.filter((one) => known.has(one))) {
      let last = key.map(() => -1);
      for (;;) {
        const rows = sql.rows<{ last: string; row: string; text: string | null }>(
          `SELECT json_array(${key.join(", ")}) AS last, ${rowOf(limits)} AS row, ${column} AS text FROM ${table}
            WHERE (${key.join(", ")}) > (${key.map(() => "?").join(", ")}) ORDER BY ${key.join(", ")}
            LIMIT ${JSON_ROWS}`,
          ...last,
        );
        for (const { row, text: kept } of rows) {
          if (kept !== null) yield { what: `${column} of ${table} ${row}`, text: kept };
        }
        const end = rows.at(-1);
        if (end === undefined || rows.length < JSON_ROWS) break;
        last = JSON.parse(end.last) as number[];
      }
    }
  }
}

function rowOf({ key }: TableLimits): string {
  return `CAST(${key.join(" || '.' || ")} AS TEXT)`;
}

function columnsOf(sql: Sql, table: string): ReadonlySet<string> {
  const rows = sql.rows<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`);
  return new Set(rows.length === 0 ? [] : ["rowid", ...rows.map((row) => row.name)]);
}

/**
 * Refuses a file on which a server could not go on: where no number is left, or something it reads again and again is of
 * a size that nobody could have given it. Costs a look at each row of the tables that are read whole.
 * @throws EvregError `invalid`
 */
export function mustBeServable(sql: Sql, file: string): void {
  const found = [...impossibleNumbers(sql), ...impossibleRows(sql, MOST_NAMED, "read whole")];
  if (found.length > 0) throw impossible(`The data file ${file}`, found);
}

export function impossible(name: string, found: readonly string[]): EvregError {
  const more = found.length > MOST_NAMED ? ", and more" : "";
  return new EvregError(
    "invalid",
    `${name} holds what evreg could not have written: ${found.slice(0, MOST_NAMED).join(", ")}${more}. It is damaged, or was changed by something else, and is left alone. Restore a backup that you trust; \`evreg doctor --deep\` tells what else is wrong.`,
    { file: name, found },
  );
}
