import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { byteCount } from "../../../domain/formats.ts";
import { WHOLE_KEY, WHOLE_ORDER } from "../../../domain/order-key.ts";
import { sizeOf } from "../../../runtime/files.ts";
import { DELIVERY_STATE } from "../queue/delivery-state.ts";
import { fileBehindLink } from "./replace-file.ts";
import { FORM } from "./schema.ts";

/** What is different in an older form: columns and tables that are not named here keep their names and meanings. */
export interface OlderForm {
  /** Tables that are made of others: what stands in for the table, as SQL. */
  readonly tables: Readonly<Record<string, string>>;
  /** Columns that are made of others, by table and column, as SQL over the old row `o`. */
  readonly columns: Readonly<Record<string, string>>;
  /** The column of a subscription that says until when it waits in its one order for a retry. */
  readonly retryWait?: string;
}

/** In both older forms `subscription.ordered` says that there is one order, in which all deliveries are due. */
const IS_ORDERED = "o.subscription_id IN (SELECT rowid FROM main.subscription WHERE ordered = 1)";
const WAITS_IN_ORDER = `o.state = ${DELIVERY_STATE.pending} AND ${IS_ORDERED}
  AND NOT EXISTS (SELECT 1 FROM main.lease AS l WHERE l.delivery_id = o.rowid)`;

/**
 * Makes the columns of an order by one key. All that is not leased is behind; `placeFirst` in rewrite.ts makes the first due.
 */
function oneOrder(pointer: string, key: string, dueMs: string): OlderForm["columns"] {
  return {
    "subscription.order_key": `iif(o.ordered = 1, '${WHOLE_ORDER}', ${pointer})`,
    "delivery.key": `iif(o.state = ${DELIVERY_STATE.pending} AND ${IS_ORDERED}, ${WHOLE_KEY}, ${key})`,
    "delivery.state": `iif(${WAITS_IN_ORDER}, ${DELIVERY_STATE.behind}, o.state)`,
    "delivery.due_ms": `iif(${WAITS_IN_ORDER}, NULL, ${dueMs})`,
  };
}

const actionOf = (row: string): string =>
  `(SELECT a.action FROM main.action AS a WHERE a.rowid = ${row}.action_id)`;

/**
 * In form 10 `delivery.due_ms` has three meanings: below 0 a delivery that a person requested, 2^50 ms before its time; in an
 * ordered subscription the rowid of the event; else a time.
 */
const FORM_10: OlderForm = {
  tables: {
    binding: `(SELECT action_id, subscription_id, max(receives) AS receives FROM (
        SELECT action_id, subscription_id, 0 AS receives FROM main.binding
        UNION ALL SELECT action_id, rowid, 1 FROM main.subscription WHERE deleted_ms IS NULL)
      GROUP BY action_id, subscription_id)`,
    // What was removed is missing below the last rowid, and its time is that of the event behind it. So long a jump behind a
    // stored event was made by a restore, see id-reservation.ts: retention would have removed that event first.
    removed_events: `(
      WITH stored (last) AS (SELECT max(rowid) FROM main.event),
        behind_all (event, ms) AS (
          SELECT seq, unixepoch() * 1000 FROM main.sqlite_sequence, stored
          WHERE name = 'event' AND seq > coalesce(last, 0) AND coalesce(seq - last, 0) < 600000000
        ),
        before_one (event, ms) AS (
          SELECT e.rowid - 1, e.timestamped_ms FROM main.event AS e
          WHERE e.rowid > 1 AND NOT EXISTS (SELECT 1 FROM main.event AS p WHERE p.rowid = e.rowid - 1)
            AND coalesce(e.rowid - (SELECT max(p.rowid) FROM main.event AS p WHERE p.rowid < e.rowid), 0) < 600000000
          ORDER BY e.rowid DESC LIMIT 1
        )
      SELECT 1 AS one, event AS last_event, ms AS last_ms
        FROM (SELECT * FROM behind_all UNION ALL SELECT * FROM before_one) ORDER BY event DESC LIMIT 1)`,
  },
  columns: {
    "action.version": "o.edition",
    "event.idempotency_application": `iif(o.idempotency_key IS NULL, NULL,
      (SELECT a.application FROM main.action AS a WHERE a.rowid = o.action_id))`,
    "subscription.action": actionOf("o"),
    "subscription.slowed_until_ms": "iif(o.ordered = 1, NULL, o.slowed_until_ms)",
    "subscription.last_failure_ms": "o.failed_ms",
    "subscription.failing_total_ms": "o.failing_ms",
    "replay.action": actionOf("o"),
    "delivery.priority": "iif(o.due_ms < 0, 0, 1)",
    ...oneOrder(
      "NULL",
      "NULL",
      `CASE WHEN o.due_ms < 0 THEN o.due_ms + (1 << 50) WHEN o.due_ms = o.event_id THEN o.created_ms ELSE o.due_ms END`,
    ),
  },
  retryWait: "slowed_until_ms",
};

const FORM_21: OlderForm = {
  tables: {},
  columns: oneOrder("o.order_key", "o.key", "o.due_ms"),
  retryWait: "retry_wait_until_ms",
};

const AS_IT_IS: OlderForm = { tables: {}, columns: {} };

/** The form that version 0.3.0 writes, in which names of payload members are shortened, see stored-payloads.ts. */
export const SHORTENED_FORM = 21;

/** The forms that are brought to today's. Today's own is copied as it is where secrets are to be encrypted. */
const FORMS: ReadonlyMap<number, OlderForm> = new Map([
  [10, FORM_10],
  [SHORTENED_FORM, FORM_21],
  [FORM, AS_IT_IS],
]);

export function isKnownForm(form: number): boolean {
  return FORMS.has(form);
}

export function olderForm(form: number): OlderForm {
  const known = FORMS.get(form);
  if (known === undefined) throw new Error(`form ${form} was not refused`);
  return known;
}

/** Says why a file is refused whose form this evreg neither has nor brings up to date, and what to do. */
export function unknownForm(code: "usage" | "invalid", file: string, form: number): EvregError {
  const why =
    form > FORM
      ? `and this evreg knows forms up to ${FORM}. A newer evreg made it: use that one`
      : `which this evreg cannot bring to form ${FORM}. Start evreg 0.3.0 on it once, which brings it to form ${SHORTENED_FORM}; then start this one`;
  return new EvregError(code, `${file} has form ${form}, ${why}. The file was not changed.`, {
    file,
    version: form,
    latest: FORM,
  });
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
  const { bavail, bsize } = statfsSync(dirname(fileBehindLink(path)));
  const bytes = sizeOf(path) + sizeOf(`${path}-wal`);
  return { needed_bytes: Math.ceil(bytes * SHARE_OF_FILE) + EXTRA_BYTES, free_bytes: bavail * bsize };
}

/** @throws EvregError `unavailable` before anything is changed */
export function mustHaveUpgradeRoom(path: string, form: number): void {
  const room = upgradeRoom(path, form);
  if (room === undefined || room.free_bytes >= room.needed_bytes) return;
  throw new EvregError(
    "unavailable",
    `There is no room to bring the data file ${path} from form ${form} to ${FORM}: beside the file that is kept, that takes up to ${byteCount(room.needed_bytes)} on its disk, and ${byteCount(room.free_bytes)} are free. ` +
      "Nothing was changed. Make room, or move the data folder to a larger disk.",
    { file: path, ...room },
  );
}
