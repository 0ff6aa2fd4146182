import { EvregError } from "../../../domain/error.ts";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import { byteCount } from "../../../domain/formats.ts";
import { WHOLE_KEY, WHOLE_ORDER } from "../../../domain/order-key.ts";
import { freeBytesAt, sizeOf } from "../../../runtime/files.ts";
import { loadPayloads, PAYLOAD_COLUMNS, type PayloadRequest } from "../../sql/events/payloads.ts";
import { firstWithin } from "../../sql/operation.ts";
import { DELIVERY_STATE } from "../../sql/queue/delivery-state.ts";
import type { SyncSql } from "../statements.ts";
import { FORM } from "./schema.ts";

/** What is different in an older form: columns and tables that are not named here keep their names and meanings. */
export interface OlderForm {
  /** Tables that are made of others, of some of their rows, or with more columns: what stands in for the table, as SQL. */
  readonly tables: Readonly<Record<string, string>>;
  /** Columns that are made of others, by table and column, as SQL over the old row `o`. */
  readonly columns: Readonly<Record<string, string>>;
}

/** The form that version 0.2.0 writes, in which events have no checksums. */
export const UNCHECKED_FORM = 10;
/** The form that version 0.3.0 writes, in which names of payload members are shortened. */
export const SHORTENED_FORM = 21;

/**
 * Makes an order by one key of `subscription.ordered`, which says in both older forms that there is one order, in which all
 * deliveries are due. Of these the one that is leased stays due, or else the first, when its retry is; the others are behind it.
 * @param retryWait the column of a subscription that says until when it waits for a retry
 */
function oneOrder(retryWait: string, pointer: string, key: string, dueMs: string): OlderForm {
  const { pending, behind } = DELIVERY_STATE;
  return {
    tables: {
      delivery: `(SELECT d.*, f.first, f.wait_ms FROM main.delivery AS d LEFT JOIN (
          SELECT s.rowid AS id, s.${retryWait} AS wait_ms, w.event_id AS first, min(iif(l.delivery_id IS NULL, w.event_id, 0))
          FROM main.subscription AS s JOIN main.delivery AS w ON w.subscription_id = s.rowid
            LEFT JOIN main.lease AS l ON l.delivery_id = w.rowid
          WHERE s.ordered = 1 AND w.state = ${pending} GROUP BY s.rowid
        ) AS f ON f.id = d.subscription_id AND d.state = ${pending})`,
    },
    columns: {
      "subscription.order_key": `iif(o.ordered = 1, '${WHOLE_ORDER}', ${pointer})`,
      "delivery.key": `iif(o.first IS NULL, ${key}, ${WHOLE_KEY})`,
      "delivery.state": `iif(o.first <> o.event_id, ${behind}, o.state)`,
      "delivery.due_ms": `CASE WHEN o.first IS NULL THEN ${dueMs}
        WHEN o.first = o.event_id THEN max(min(o.created_ms, unixepoch() * 1000), coalesce(o.wait_ms, 0)) END`,
    },
  };
}

const actionOf = (row: string): string =>
  `(SELECT a.action FROM main.action AS a WHERE a.rowid = ${row}.action_id)`;

/**
 * In form 10 `delivery.due_ms` has three meanings: below 0 a delivery that a person requested, 2^50 ms before its time; in an
 * ordered subscription the rowid of the event; else a time.
 */
const ORDER_10 = oneOrder(
  "slowed_until_ms",
  "NULL",
  "NULL",
  `CASE WHEN o.due_ms < 0 THEN o.due_ms + (1 << 50) WHEN o.due_ms = o.event_id THEN o.created_ms ELSE o.due_ms END`,
);
const FORM_10: OlderForm = {
  tables: {
    ...ORDER_10.tables,
    binding: `(SELECT action_id, subscription_id, max(receives) AS receives FROM (
        SELECT action_id, subscription_id, 0 AS receives FROM main.binding
        UNION ALL SELECT action_id, rowid, 1 FROM main.subscription WHERE deleted_ms IS NULL)
      GROUP BY action_id, subscription_id)`,
    // Retention removes the oldest events first, so they are missing below the first one that is left.
    removed_events: `(SELECT 1 AS one, min(rowid) - 1 AS last_event, min(timestamped_ms) AS last_ms
      FROM main.event HAVING min(rowid) > 1)`,
  },
  columns: {
    "action.version": "o.edition",
    "binding.receives": "o.receives",
    "event.idempotency_application": `iif(o.idempotency_key IS NULL, NULL,
      (SELECT a.application FROM main.action AS a WHERE a.rowid = o.action_id))`,
    "subscription.action": actionOf("o"),
    "subscription.slowed_until_ms": "iif(o.ordered = 1, NULL, o.slowed_until_ms)",
    "subscription.last_failure_ms": "o.failed_ms",
    "subscription.inactive_since_ms": "iif(o.disabled_reason IS NULL, NULL, o.failed_ms)",
    "subscription.failing_total_ms": "o.failing_ms",
    "replay.action": actionOf("o"),
    ...ORDER_10.columns,
  },
};

const ORDER_21 = oneOrder("retry_wait_until_ms", "o.order_key", "o.key", "o.due_ms");
const FORM_21: OlderForm = {
  // Tokens that version 0.3.0 gave browsers for a code have no other to end with any more, so they end.
  tables: { ...ORDER_21.tables, token: "(SELECT * FROM main.token WHERE parent_id IS NULL)" },
  columns: {
    ...ORDER_21.columns,
    // See `forEachPayload`, which gives the payload as it was published; a damaged one is copied as it is.
    "event.payload": `coalesce(?2, substr(CAST(o.payload AS BLOB), 1, ${EVENT_LIMITS.payloadMaxBytes}))`,
    // The audit has when a person paused it.
    "subscription.inactive_since_ms": `CASE WHEN o.active = 1 THEN NULL WHEN o.disabled_reason IS NOT NULL THEN o.last_failure_ms ELSE
      (SELECT max(a.changed_ms) FROM main.audit AS a WHERE a.record_id = o.rowid AND (a.change = 'subscription.created'
        OR a.change = 'subscription.updated' AND instr(a.members, '"member":"active"') > 0)) END`,
  },
};

/** The forms that are brought to today's. */
export const OLDER_FORMS: ReadonlyMap<number, OlderForm> = new Map([
  [UNCHECKED_FORM, FORM_10],
  [SHORTENED_FORM, FORM_21],
]);

/**
 * Refuses a form that this evreg neither has nor brings up to date.
 * @throws EvregError `code`, with what to do
 */
export function mustBeKnown(code: "usage" | "invalid", what: string, form: number): void {
  if (form === FORM || OLDER_FORMS.has(form)) return;
  const why =
    form > FORM
      ? `and this evreg knows forms up to ${FORM}. A newer evreg made it: use that one`
      : `which this evreg cannot bring to form ${FORM}. Start evreg 0.3.0 on it once, which brings it to form ${SHORTENED_FORM}; then start this one`;
  const message = `${what} has form ${form}, ${why}. The file was not changed.`;
  throw new EvregError(code, message, { file: what, version: form, latest: FORM });
}

/** How the name of an older file goes on which an upgrade has replaced. */
export const KEPT_AS = `before-v${FORM}`;

/** Room on the disk of a data file, in bytes. */
export interface UpgradeRoom {
  readonly needed_bytes: number;
  readonly free_bytes: number;
}

/**
 * The new file takes so many times the room of the old one, which stays. Payloads of form 21 get longer in it, by how much
 * depends on the names of their members.
 */
const SHARE_OF_FILE = 2;
/** So many bytes more are for what does not grow with the file. */
const EXTRA_BYTES = 8 * 1024 * 1024;

/** Answers the room that an upgrade needs; `undefined` for a file that needs none. */
export function upgradeRoom(path: string, form: number): UpgradeRoom | undefined {
  if (form === 0 || form >= FORM) return undefined;
  const bytes = sizeOf(path) + sizeOf(`${path}-wal`);
  return { needed_bytes: bytes * SHARE_OF_FILE + EXTRA_BYTES, free_bytes: freeBytesAt(path) };
}

/** @throws EvregError `unavailable` before anything is changed */
export function mustHaveUpgradeRoom(path: string, form: number, room: UpgradeRoom): void {
  if (room.free_bytes >= room.needed_bytes) return;
  throw new EvregError(
    "unavailable",
    `There is no room to bring the data file ${path} from form ${form} to ${FORM}: beside the file that is kept, that takes up to ${byteCount(room.needed_bytes)} on its disk, and ${byteCount(room.free_bytes)} are free. ` +
      "Nothing was changed. Make room, or move the data folder to a larger disk.",
    { file: path, ...room },
  );
}

// In form 21 a member's name that the schema has, too, is with its quotes and its colon a control character, or two characters
// that begin with one. JSON contains none of them as it is, so what was stored as it came stays as it is. Names are numbered as
// their revision's row in `payload_names` has them.

interface StoredPayload extends PayloadRequest {
  readonly actionId: number;
  readonly revision: number;
}

const EVENTS_AT_ONCE = 1_000;
const BYTES_AT_ONCE = 4 * 1_024 * 1_024;

/**
 * Reads the payloads of a whole file, whose form has checksums.
 * @param take gets those of all events in the order of their rowids, some megabytes at a time; `null` for a damaged one
 */
export async function forEachPayload(
  sql: SyncSql,
  form: number,
  take: (payloads: Awaited<ReturnType<typeof loadPayloads>>) => void,
): Promise<void> {
  for (let after = 0; ;) {
    const rows = sql.rows<StoredPayload>(
      `SELECT e.rowid AS eventId, e.revision, ${PAYLOAD_COLUMNS}
        FROM main.event AS e WHERE e.rowid > ? ORDER BY e.rowid LIMIT ${EVENTS_AT_ONCE}`,
      after,
    );
    if (rows.length === 0) return;
    const portion = firstWithin(rows, ({ payloadBytes }) => payloadBytes, BYTES_AT_ONCE);
    take(await loadPayloads(sql, portion, form === SHORTENED_FORM ? restoring(sql) : undefined));
    after = portion.at(-1)!.eventId;
  }
}

/** The characters that stand for a name each: control characters that are no white space, and not NUL. */
const SINGLE = Array.from({ length: 0x1a }, (_, index) => String.fromCharCode(index + 1))
  .filter((character) => !"\t\n\r".includes(character))
  .join("");
/** The control characters from this one on stand for 256 names each, and the next character says which. */
const FIRST_LEAD = 0x1b;
const CODES = new RegExp(`[${SINGLE}]|[\\x1b-\\x1f][^]`, "g");

/**
 * Restores some events' payloads by the names of members that their revisions' rows in `payload_names` have. Bytes are characters
 * here, in the names as in the payloads that they are put into.
 */
function restoring(
  sql: SyncSql,
): (row: StoredPayload, stored: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer> {
  const known = new Map<string, readonly string[]>();
  const namesOf = ({ actionId, revision }: StoredPayload): readonly string[] => {
    const key = `${actionId} ${revision}`;
    let names = known.get(key);
    if (names === undefined) {
      const rows = sql.column<string>(
        `SELECT CAST(j.value AS TEXT) AS name
          FROM main.payload_names AS n CROSS JOIN json_each(iif(json_valid(n.names), n.names, '[]')) AS j
          WHERE n.action_id = ? AND n.revision = ?`,
        actionId,
        revision,
      );
      names = rows.map((name) => Buffer.from(`"${name}":`).toString("latin1"));
      known.set(key, names);
    }
    return names;
  };
  return (row, stored) => {
    const text = Buffer.from(stored).toString("latin1");
    return Buffer.from(
      text.replaceAll(CODES, (code) => namesOf(row)[numberOf(code)] ?? code),
      "latin1",
    );
  };
}

function numberOf(code: string): number {
  const first = code.charCodeAt(0);
  return first < FIRST_LEAD
    ? SINGLE.indexOf(code)
    : SINGLE.length + ((first - FIRST_LEAD) << 8) + code.charCodeAt(1);
}
