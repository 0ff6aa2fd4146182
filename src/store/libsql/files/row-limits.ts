import { ATTEMPT_ERROR_CODES } from "../../../domain/delivery.ts";
import { EvregError } from "../../../domain/error.ts";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import { DELIVERY_STATE } from "../queue/delivery-state.ts";
import { FIRST_MS, LAST_MS, type Sql } from "../thread/sql.ts";

// What rows of evreg's can be, table by table: what no version of it could have written is damage, or somebody else's. Types,
// NOT NULL and the tables' own CHECKs are not here, as the engine's integrity check covers those. The limits are those of
// today's requests or wider, as a good file must never be refused.

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
const actionPattern: Condition = (column) =>
  `octet_length(${column}) BETWEEN 1 AND 128 AND ${column} NOT GLOB '*[^A-Za-z0-9_.*-]*'`;
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

const idempotencyKey: Condition = (column) =>
  `octet_length(${column}) BETWEEN 1 AND 255 AND ${column} NOT GLOB '*[^ -~]*'`;
const deliveryState: Condition = (column) => `${column} IN (${Object.values(DELIVERY_STATE).join(", ")})`;

/** What must be true of columns, by their names; as `table.column` where another table has a column of the same name. */
const CONDITIONS: ReadonlyMap<string, Condition> = new Map(
  (
    [
      [
        id,
        [
          "last_event",
          "rowid",
          "revision",
          "edition",
          "version",
          "claim_id",
          "binding.action_id",
          "attempt.attempt",
        ],
      ],
      [count, ["first_event", "first_delivery", "delivery.attempt", "failures", "tried", "queued"]],
      [count, ["block", "events", "event_count.action_id"]],
      [optional(count), ["breaks", "total"]],
      [time, ["created_ms", "timestamped_ms", "noticed_ms", "claimed_ms", "until_ms", "started_ms"]],
      [time, ["from_ms", "to_ms", "last_ms"]],
      [
        optional(time),
        [
          "deprecated_ms",
          "retired_ms",
          "deleted_ms",
          "slowed_until_ms",
          "retry_wait_until_ms",
          "last_claim_ms",
        ],
      ],
      [
        optional(time),
        ["failing_since_ms", "failed_ms", "last_failure_ms", "previous_until_ms", "finished_ms"],
      ],
      [optional(time), ["expires_ms", "last_used_ms"]],
      [span, ["failing_ms", "failing_total_ms", "duration_ms"]],
      [optional(span), ["dns_ms", "connect_ms", "first_byte_ms", "first_duration_ms"]],
      // The clock may have been set back in between.
      [optional(between(-MAX_INTEGER, MAX_INTEGER)), ["first_start_ms"]],
      // Up to version 11 of the schema also a place in an order and, below 0, a request.
      [optional(between(-MAX_INTEGER, MAX_INTEGER)), ["due_ms"]],
      [optional(id), ["sequence"]],
      [optional(count), ["delivery.key"]],
      [optional(text(KIB)), ["order_key"]],
      [actionName, ["action.action"]],
      [actionPattern, ["subscription.action", "replay.action"]],
      [optional(actionName), ["successor"]],
      [label, ["application", "subscription.subscription", "token.name"]],
      [text(1_024 * KIB), ["schemata", "scopes", "names"]],
      [id, ["payload_names.action_id"]],
      [optional(text(1_024 * KIB)), ["settings"]],
      [text(8 * KIB), ["handler"]],
      [optional(label), ["consumer", "idempotency_application"]],
      [between(0, 1_000), ["max_retries"]],
      [optional(text(4 * KIB)), ["disabled_reason", "reason"]],
      [secret, ["secret"]],
      [optional(secret), ["previous_secret", "bearer_token"]],
      [text(KIB), ["proof"]],
      [hex(32), ["data_identity.id"]],
      [hex(64), ["hash"]],
      [optional(idempotencyKey), ["idempotency_key"]],
      // Its JSON is read with its checksum.
      [blob(2, EVENT_LIMITS.payloadMaxBytes), ["payload"]],
      [optional(between(0, 2 ** 32 - 1)), ["checksum"]],
      [deliveryState, ["state"]],
      [optional(text(KIB)), ["last_error"]],
      [optional(between(100, 999)), ["status_code", "first_status_code"]],
      [optional(oneOf(ATTEMPT_ERROR_CODES)), ["error_code"]],
      [optional(blob(0, MAX_RESPONSE_BYTES)), ["response"]],
      [blob(0, 64 * 1_024 * KIB), ["filler"]],
      [text(16 * 1_024 * KIB), ["ranges"]],
    ] as const
  ).flatMap(([condition, columns]) => columns.map((column) => [column, condition] as const)),
);

interface Table {
  readonly table: string;
  /** The columns that name a row, in the order of the table. */
  readonly key: readonly string[];
  /** Columns of JSON text; their nesting is checked apart, see `storedJson`. */
  readonly json?: readonly string[];
  /** Whether a server reads its rows whole and often; it is small where the file is evreg's. */
  readonly isReadWhole?: boolean;
}

const TABLES: readonly Table[] = [
  { table: "action", key: ["rowid"], isReadWhole: true },
  { table: "action_revision", key: ["action_id", "revision"], json: ["schemata"], isReadWhole: true },
  { table: "payload_names", key: ["action_id", "revision"], json: ["names"], isReadWhole: true },
  { table: "event", key: ["rowid"] },
  { table: "clock_step", key: ["rowid"] },
  { table: "subscription", key: ["rowid"], json: ["settings"], isReadWhole: true },
  { table: "binding", key: ["action_id", "subscription_id"] },
  { table: "subscription_secret", key: ["subscription_id"], isReadWhole: true },
  { table: "encryption", key: ["one"], isReadWhole: true },
  { table: "data_identity", key: ["one"] },
  { table: "delivery", key: ["rowid"] },
  { table: "lease", key: ["delivery_id"] },
  { table: "attempt", key: ["delivery_id", "attempt"] },
  { table: "token", key: ["rowid"], json: ["scopes"], isReadWhole: true },
  { table: "probe", key: ["one"] },
  { table: "write_check", key: ["one"] },
  { table: "last_backup", key: ["one"] },
  { table: "removed_events", key: ["one"] },
  { table: "event_count", key: ["action_id", "block"] },
  { table: "replay", key: ["rowid"], json: ["ranges"], isReadWhole: true },
];

/** Tables whose rows have numbers that are given once and never again. */
const NUMBERED = ["action", "event", "subscription", "delivery", "token", "replay"];

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
  for (const { table, key, isReadWhole } of TABLES) {
    if (which === "read whole" && isReadWhole !== true) continue;
    const cases = columnsOf(sql, table).flatMap((column) => {
      const holds = CONDITIONS.get(`${table}.${column}`) ?? CONDITIONS.get(column);
      return holds === undefined ? [] : [`WHEN (${holds(column)}) IS NOT TRUE THEN '${column}'`];
    });
    if (cases.length === 0) continue;
    const rows = sql.rows<{ row: string; bad: string }>(
      `SELECT row, bad FROM (SELECT ${rowName(key)} AS row, CASE ${cases.join(" ")} END AS bad FROM ${table})
        WHERE bad IS NOT NULL LIMIT ${max - found.length}`,
    );
    found.push(...rows.map(({ row, bad }) => `${bad} of ${table} ${row}`));
    if (found.length >= max) break;
  }
  return found;
}

/** Finds rows whose foreign keys lead nowhere. */
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
  return NUMBERED.flatMap((table) => {
    if (columnsOf(sql, table).length === 0) return [];
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
  for (const { table, key, json = [] } of TABLES) {
    const keys = key.join(", ");
    for (const column of columnsOf(sql, table).filter((one) => json.includes(one))) {
      let last = key.map(() => -1);
      for (;;) {
        const rows = sql.rows<{ last: string; row: string; text: string | null }>(
          `SELECT json_array(${keys}) AS last, ${rowName(key)} AS row, ${column} AS text FROM ${table}
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

function rowName(key: readonly string[]): string {
  return `CAST(${key.join(" || '.' || ")} AS TEXT)`;
}

function columnsOf(sql: Sql, table: string): readonly string[] {
  return sql.rows<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`).map(({ name }) => name);
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
