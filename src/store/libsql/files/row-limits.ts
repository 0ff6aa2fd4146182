import { ATTEMPT_ERROR_CODES } from "../../../domain/delivery.ts";
import { EvregError } from "../../../domain/error.ts";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import { DELIVERY_STATE } from "../queue/delivery-state.ts";
import { FIRST_MS, LAST_MS, type Sql } from "../thread/sql.ts";

// What rows of evreg's can be, table by table: what no version of it could have written is damage, or somebody else's. Types,
// NOT NULL and the tables' own CHECKs are not here, as the engine's integrity check covers those. The limits are those of
// today's requests or wider, as a good file must never be refused.

interface TableLimits {
  readonly table: string;
  /** The columns that name a row, in the order of the table; `rowid` when left out. */
  readonly key?: readonly string[];
  /** The condition of each column; one that the file's form does not have is ignored. */
  readonly columns: Readonly<Record<string, Condition>>;
  /** Columns of JSON text; their nesting is checked apart, see `storedJson`. */
  readonly json?: readonly string[];
  /** Whether a server reads its rows whole and often; it is small where the file is evreg's. */
  readonly isReadWhole?: boolean;
}

const ROWID: readonly string[] = ["rowid"];

/** SQL that is true of a value in this column. */
type Condition = (column: string) => string;

const JSON_ROWS = 50;
const MAX_NAMED = 5;

const MAX_INTEGER = Number.MAX_SAFE_INTEGER;
const DAY_MS = 86_400_000;

const between =
  (low: number, high: number): Condition =>
  (column) =>
    `${column} BETWEEN ${low} AND ${high}`;
const id = between(1, MAX_INTEGER);
const count = between(0, MAX_INTEGER);
const time = between(FIRST_MS, LAST_MS);
const span = between(0, 366_000 * DAY_MS);
const optional =
  (condition: Condition): Condition =>
  (column) =>
    `(${column} IS NULL OR ${condition(column)})`;
/** The engine reads text up to the first NUL. */
const text =
  (maxBytes: number): Condition =>
  (column) =>
    `octet_length(${column}) <= ${maxBytes} AND instr(${column}, char(0)) = 0`;
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
export const MAX_RESPONSE_BYTES = 16 * KIB;
/** A secret, 2 KiB of a bearer, and what encrypting them adds. */
const secret = text(16 * KIB);
const schema = text(1_024 * KIB);

const TABLES: readonly TableLimits[] = [
  {
    table: "action",
    isReadWhole: true,
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
    isReadWhole: true,
    key: ["action_id", "revision"],
    columns: { revision: id, schemata: schema, created_ms: time, breaks: optional(count) },
    json: ["schemata"],
  },
  {
    table: "event",
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
    columns: { first_event: count, first_delivery: count, noticed_ms: time },
  },
  {
    table: "subscription",
    isReadWhole: true,
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
    isReadWhole: true,
    key: ["subscription_id"],
    columns: {
      secret,
      previous_secret: optional(secret),
      previous_until_ms: optional(time),
      bearer_token: optional(secret),
    },
  },
  { table: "encryption", isReadWhole: true, key: ["one"], columns: { proof: text(KIB) } },
  { table: "data_identity", key: ["one"], columns: { id: hex(32) } },
  {
    table: "delivery",
    columns: {
      rowid: id,
      state: (column) => `${column} IN (${Object.values(DELIVERY_STATE).join(", ")})`,
      attempt: count,
      failures: count,
      created_ms: time,
      // Up to version 11 of the schema also a place in an order and, below 0, a request.
      due_ms: optional(between(-MAX_INTEGER, MAX_INTEGER)),
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
      response: optional(blob(0, MAX_RESPONSE_BYTES)),
      dns_ms: optional(span),
      connect_ms: optional(span),
      first_byte_ms: optional(span),
    },
  },
  {
    table: "token",
    isReadWhole: true,
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
    isReadWhole: true,
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

/**
 * Finds rows that evreg could not have written, each as a part of a sentence.
 * @param max how many
 * @param which all tables, or only those that a server reads whole
 */
export function impossibleRows(
  sql: Sql,
  max: number,
  which: "read whole" | "all" = "all",
): readonly string[] {
  const found: string[] = [];
  for (const limits of TABLES) {
    const known = columnsOf(sql, limits.table);
    if (known.size === 0 || (which === "read whole" && limits.isReadWhole !== true)) continue;
    const conditions = Object.entries(limits.columns).filter(([column]) => known.has(column));
    const rows = sql.rows<{ row: string; bad: string }>(
      `SELECT row, bad FROM (SELECT ${rowOf(limits)} AS row, CASE ${conditions
        .map(([column, holds]) => `WHEN (${holds(column)}) IS NOT TRUE THEN '${column}'`)
        .join(" ")} END AS bad FROM ${limits.table}) WHERE bad IS NOT NULL LIMIT ${max - found.length}`,
    );
    found.push(...rows.map(({ row, bad }) => `${bad} of ${limits.table} ${row}`));
    if (found.length >= max) break;
  }
  return found;
}

/** Finds rows whose foreign keys lead nowhere, likewise. */
export function danglingRows(sql: Sql, max: number): readonly string[] {
  const rows = sql.rows<{ child: string; row: number | null; parent: string }>(
    `SELECT "table" AS child, rowid AS row, parent FROM pragma_foreign_key_check LIMIT ${max}`,
  );
  return rows.map(({ child, row, parent }) =>
    `${child} ${row ?? ""} without its ${parent}`.replace("  ", " "),
  );
}

/** Finds tables whose rows have numbers that were never given, or for which no number remains. */
export function impossibleNumbers(sql: Sql): readonly string[] {
  const numbered = TABLES.filter(({ columns }) => "rowid" in columns).map(({ table }) => table);
  return numbered.flatMap((table) => {
    if (columnsOf(sql, table).size === 0) return [];
    const isGood = sql.value<number>(
      `SELECT coalesce((SELECT max(rowid) FROM ${table}), 0) <= given AND given < ${MAX_INTEGER}
          AND coalesce((SELECT min(rowid) FROM ${table}), 1) >= 1
        FROM (SELECT coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = '${table}'), 0) AS given)`,
    );
    return isGood === 1 ? [] : [`numbers of ${table}`];
  });
}

/** All JSON columns row by row, with what names each. */
export function* storedJson(sql: Sql): Generator<{ readonly what: string; readonly text: string }, void> {
  for (const limits of TABLES) {
    const { table, key = ROWID, json = [] } = limits;
    const known = columnsOf(sql, table);
    const keys = key.join(", ");
    for (const column of json.filter((one) => known.has(one))) {
      let last = key.map(() => -1);
      for (;;) {
        const rows = sql.rows<{ last: string; row: string; text: string | null }>(
          `SELECT json_array(${keys}) AS last, ${rowOf(limits)} AS row, ${column} AS text FROM ${table}
            WHERE (${keys}) > (${key.map(() => "?").join(", ")}) ORDER BY ${keys} LIMIT ${JSON_ROWS}`,
          ...last,
        );
        for (const { row, text: stored } of rows) {
          if (stored !== null) yield { what: `${column} of ${table} ${row}`, text: stored };
        }
        const end = rows.at(-1);
        if (end === undefined || rows.length < JSON_ROWS) break;
        last = JSON.parse(end.last) as number[];
      }
    }
  }
}

function rowOf({ key = ROWID }: TableLimits): string {
  return `CAST(${key.join(" || '.' || ")} AS TEXT)`;
}

function columnsOf(sql: Sql, table: string): ReadonlySet<string> {
  const rows = sql.rows<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`);
  return new Set(rows.length === 0 ? [] : ["rowid", ...rows.map((row) => row.name)]);
}

/**
 * Refuses a file on which a server could not run: where no number remains, or a row that it reads often is impossibly
 * large. Costs a look at each row of the tables that are read whole.
 * @throws EvregError `invalid`
 */
export function mustBeServable(sql: Sql, file: string): void {
  const found = [...impossibleNumbers(sql), ...impossibleRows(sql, MAX_NAMED, "read whole")];
  if (found.length > 0) throw impossible(`The data file ${file}`, found);
}

export function impossible(name: string, found: readonly string[]): EvregError {
  const more = found.length > MAX_NAMED ? ", and more" : "";
  return new EvregError(
    "invalid",
    `${name} holds what evreg could not have written: ${found.slice(0, MAX_NAMED).join(", ")}${more}. It is damaged, or was changed by something else, and is left alone. Restore a backup that you trust; \`evreg doctor --deep\` tells what else is wrong.`,
    { file: name, found },
  );
}
