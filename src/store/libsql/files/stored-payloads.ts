import { LRUCache } from "lru-cache";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import { eventChecksum } from "../events/payloads.ts";
import type { Sql } from "../thread/sql.ts";
import { hasTable } from "./id-reservation.ts";

// Reads the payloads of a whole file of any form, as they were published.
//
// In form 21 a member's name that the schema has, too, is with its quotes and its colon a control character, or two bytes that
// begin with one: JSON contains none of them as it is. Names are numbered as their revision's row in `payload_names` has them.

export interface StoredPayload {
  readonly eventId: number;
  readonly payload: Uint8Array;
  /** Whether the payload is known not to be what was published. */
  readonly isDamaged: boolean;
}

interface StoredPayloadRow {
  readonly eventId: number;
  readonly bytes: number;
  readonly actionId: number;
  readonly revision: number;
  readonly checksum: number | null;
}

const EVENTS_AT_ONCE = 1_000;
const BYTES_AT_ONCE = 4 * 1_024 * 1_024;

/** @param take gets all events in the order of their rowids, some megabytes at a time */
export function forEachPayload(sql: Sql, take: (payloads: readonly StoredPayload[]) => void): void {
  const names = hasTable(sql, "payload_names") ? new Names(sql) : undefined;
  const columns = sql.rows<{ name: string }>("SELECT name FROM pragma_table_info('event')");
  const checksum = columns.some(({ name }) => name === "checksum") ? "checksum" : "NULL";
  for (let after = 0; ;) {
    const rows = sql.rows<StoredPayloadRow>(
      `SELECT rowid AS eventId, octet_length(payload) AS bytes, action_id AS actionId, revision, ${checksum} AS checksum
        FROM main.event WHERE rowid > ? ORDER BY rowid LIMIT ${EVENTS_AT_ONCE}`,
      after,
    );
    if (rows.length === 0) return;
    const portion = portionOf(rows);
    take(payloadsOf(sql, portion, names));
    after = portion.at(-1)!.eventId;
  }
}

function portionOf(rows: readonly StoredPayloadRow[]): readonly StoredPayloadRow[] {
  let bytes = 0;
  const end = rows.findIndex((row) => (bytes += row.bytes) > BYTES_AT_ONCE);
  return end < 0 ? rows : rows.slice(0, Math.max(1, end));
}

/** The engine joins them as text, which for it is any bytes with a length: each BLOB from the driver costs as much as 2 KiB. */
function payloadsOf(
  sql: Sql,
  portion: readonly StoredPayloadRow[],
  names: Names | undefined,
): readonly StoredPayload[] {
  const readable = portion.filter(({ bytes }) => bytes <= EVENT_LIMITS.payloadMaxBytes);
  const { joined } = sql.first<{ joined: ArrayBuffer | null }>(
    `SELECT CAST(group_concat(CAST(e.payload AS TEXT), '') AS BLOB) AS joined
      FROM json_each(?) AS j CROSS JOIN main.event AS e ON e.rowid = j.value`,
    JSON.stringify(readable.map(({ eventId }) => eventId)),
  )!;
  const bytes = joined ?? new ArrayBuffer(0);
  let at = 0;
  return portion.map((row) => {
    // A payload that is larger could not be published, and may not fit into memory.
    if (row.bytes > EVENT_LIMITS.payloadMaxBytes) {
      return { eventId: row.eventId, payload: new Uint8Array(0), isDamaged: true };
    }
    const stored = new Uint8Array(bytes, at, row.bytes);
    at += row.bytes;
    return publishedPayload(row, stored, names);
  });
}

function publishedPayload(
  row: StoredPayloadRow,
  stored: Uint8Array,
  names: Names | undefined,
): StoredPayload {
  const { eventId, actionId, checksum } = row;
  const payload = names?.restored(row, stored) ?? stored;
  const isDamaged = checksum !== null && eventChecksum(eventId, actionId, payload) !== checksum;
  return { eventId, payload, isDamaged };
}

const FIRST_TEXT = 0x20;
/** The bytes that stand for a name each: control characters that are no white space, and not NUL. */
const SINGLE = Array.from({ length: 0x1a }, (_, index) => index + 1).filter(
  (code) => ![0x09, 0x0a, 0x0d].includes(code),
);
/** The control characters from this one on stand for 256 names each, and the byte behind them says which. */
const FIRST_LEAD = 0x1b;
/** Longer payloads are stored as they came. */
const MAX_SHORTENED_BYTES = 4_096;
/** How many revisions' names are held in memory. */
const MAX_REVISIONS = 200;

/** The names of members, of each revision as its row in `payload_names` has them. */
class Names {
  readonly #sql: Sql;
  /** The names of each revision by their numbers; the keys are made of action and revision. */
  readonly #texts = new LRUCache<string, readonly Uint8Array[]>({ max: MAX_REVISIONS });
  readonly #restored = Buffer.alloc(MAX_SHORTENED_BYTES);

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  restored(row: StoredPayloadRow, stored: Uint8Array): Uint8Array {
    if (stored.length > MAX_SHORTENED_BYTES || !stored.some(isCode)) return stored;
    const texts = this.#textsOf(row);
    const out = this.#restored;
    let end = 0;
    for (let at = 0; at < stored.length && end < out.length; at += 1) {
      const byte = stored[at]!;
      const text = isCode(byte) ? texts[numberOf(byte, stored[at + 1] ?? 0)] : undefined;
      if (text === undefined) {
        out[end++] = byte;
        continue;
      }
      if (byte >= FIRST_LEAD) at += 1;
      // What is longer than the limit is no payload but damage.
      const room = Math.min(text.length, out.length - end);
      out.set(text.subarray(0, room), end);
      end += room;
    }
    return Uint8Array.from(out.subarray(0, end));
  }

  #textsOf({ actionId, revision }: StoredPayloadRow): readonly Uint8Array[] {
    const key = `${actionId} ${revision}`;
    let texts = this.#texts.get(key);
    if (texts === undefined) {
      const stored = this.#sql.value<string | undefined>(
        "SELECT names FROM main.payload_names WHERE action_id = ? AND revision = ?",
        actionId,
        revision,
      );
      texts = namesIn(stored ?? "[]").map((name) => Buffer.from(`"${name}":`));
      this.#texts.set(key, texts);
    }
    return texts;
  }
}

function namesIn(text: string): readonly string[] {
  try {
    const names: unknown = JSON.parse(text);
    return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  } catch {
    return [];
  }
}

function isCode(byte: number): boolean {
  return byte < FIRST_TEXT && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d;
}

function numberOf(code: number, next: number): number {
  return code < FIRST_LEAD ? SINGLE.indexOf(code) : SINGLE.length + ((code - FIRST_LEAD) << 8) + next;
}
