import { crc32 } from "node:zlib";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import type { ByteWriter, ByteRange } from "../thread/protocol.ts";
import { runSync, type Steps } from "../../../runtime/yielding.ts";
import { FIRST_MS, LAST_MS, type Sql } from "../thread/sql.ts";
import { LATEST_VERSION } from "../files/migrations.ts";
import { loadNames, MAX_SHORTENED_BYTES } from "./payload-names.ts";

/** A payload to be read: its event, and its length. */
export interface PayloadRequest {
  readonly eventId: number;
  readonly payloadBytes: number;
}

/** Where a payload lies; `null` for a damaged one, which is neither shown nor sent. */
export type PayloadSpan = ByteRange | null;

/** The length of the payload of the event `e`, whatever type damage gave it. */
export const PAYLOAD_BYTES = "coalesce(octet_length(e.payload), 0)";

/** What the engine joins at once; a larger payload is a slice of its own. */
const SLICE_BYTES = 4 * 1024 * 1024;

/**
 * Adds the payloads to `out`, each event's once, and answers where they lie by event. An event that was deleted between two steps
 * is missing. Of a damaged one nothing is added.
 *
 * The engine joins those of a slice into one BLOB, as each BLOB from the driver costs about as much as 2 KiB of payload. It
 * joins them as text, which for the engine is any bytes with a length.
 * @param form of the file; one of an older form is only examined
 */
export function* readPayloads(
  sql: Sql,
  requested: readonly PayloadRequest[],
  out: ByteWriter,
  form = LATEST_VERSION,
): Steps<ReadonlyMap<number, PayloadSpan>> {
  const spans = new Map<number, PayloadSpan>();
  // A larger one could not be published, and may not fit into memory.
  const [readable, tooLarge] = [requested.filter(isPossible), requested.filter((one) => !isPossible(one))];
  for (const { eventId } of tooLarge) spans.set(eventId, null);
  let isFirst = true;
  for (const slice of slices(readable)) {
    if (!isFirst) yield;
    isFirst = false;
    readSlice(sql, slice, out, spans, form);
  }
  return spans;
}

function isPossible({ payloadBytes }: PayloadRequest): boolean {
  return payloadBytes <= EVENT_LIMITS.payloadMaxBytes;
}

/** The same in one step, as inside a transaction. */
export function addPayloads(
  sql: Sql,
  requested: readonly PayloadRequest[],
  out: ByteWriter,
  form = LATEST_VERSION,
): ReadonlyMap<number, PayloadSpan> {
  return runSync(readPayloads(sql, requested, out, form));
}

/** Requests of some megabytes each, as lengths by event. */
export function* slices(requested: readonly PayloadRequest[]): Generator<ReadonlyMap<number, number>> {
  let slice = new Map<number, number>();
  let sliceBytes = 0;
  const seen = new Set<number>();
  for (const { eventId, payloadBytes } of requested) {
    if (seen.has(eventId)) continue;
    seen.add(eventId);
    if (slice.size > 0 && sliceBytes + payloadBytes > SLICE_BYTES) {
      yield slice;
      slice = new Map();
      sliceBytes = 0;
    }
    slice.set(eventId, payloadBytes);
    sliceBytes += payloadBytes;
  }
  if (slice.size > 0) yield slice;
}

/** The form that brought checksums. */
const CHECKSUMS_SINCE = 11;
/** The form that brought the names of each revision. */
const NAMES_SINCE = 14;
/** No checksum has this value. */
const NONE = -1;
/** An event with other damaged columns gets one that no payload has. */
const CHECKSUM = `iif((e.checksum IS NULL OR typeof(e.checksum) = 'integer') AND e.revision BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER}
  AND e.timestamped_ms BETWEEN ${FIRST_MS} AND ${LAST_MS}, e.checksum, ${NONE})`;

/** @param lengths of the payloads as they are stored, by event */
function readSlice(
  sql: Sql,
  lengths: ReadonlyMap<number, number>,
  out: ByteWriter,
  spans: Map<number, PayloadSpan>,
  form: number,
): void {
  const ids = JSON.stringify([...lengths.keys()]);
  const row = sql.first<{ bytes: ArrayBuffer | null; actions: string; revisions: string; checksums: string }>(
    `SELECT CAST(group_concat(CAST(e.payload AS TEXT), '') AS BLOB) AS bytes,
        json_group_array(iif(typeof(e.action_id) = 'integer', e.action_id, ${NONE})) AS actions,
        json_group_array(iif(typeof(e.revision) = 'integer', e.revision, ${NONE})) AS revisions,
        json_group_array(${form < CHECKSUMS_SINCE ? "NULL" : CHECKSUM}) AS checksums
      FROM json_each(?) AS requested CROSS JOIN event AS e ON e.rowid = requested.value`,
    ids,
  )!;
  const actions = JSON.parse(row.actions) as number[];
  const revisions = JSON.parse(row.revisions) as number[];
  const checksums = JSON.parse(row.checksums) as (number | null)[];
  const existing = actions.length === lengths.size ? [...lengths.keys()] : existingIds(sql, ids);
  const bytes = row.bytes ?? new ArrayBuffer(0);
  const names = form < NAMES_SINCE ? [] : loadNames(sql, actions, revisions);
  const isAsStored = names.every(({ isEmpty }) => isEmpty);
  let read = isAsStored ? new Uint8Array(bytes) : new Uint8Array(2 * bytes.byteLength);
  const base = out.length;
  let start = 0;
  let end = 0;
  for (const [index, eventId] of existing.entries()) {
    const length = lengths.get(eventId) ?? 0;
    const stored = new Uint8Array(bytes, start, length);
    start += length;
    const checksum = checksums[index] ?? null;
    const isWhole = (stop: number): boolean =>
      // Old events have none.
      checksum === null || eventChecksum(eventId, actions[index]!, read.subarray(end, stop)) === checksum;
    let stop = end + length;
    if (isAsStored) {
      // Only behind a damaged one is it not in its place.
      if (end < start - length) read.copyWithin(end, start - length, start);
    } else {
      read = withRoom(read, end + Math.max(length, MAX_SHORTENED_BYTES));
      stop = names[index]!.restore(stored, read, end);
      // What their names were made of shows them, too, where they are damaged.
      if (!isWhole(stop))
        stop = loadNames(sql, [actions[index]!], [revisions[index]!], "schema")[0]!.restore(
          stored,
          read,
          end,
        );
    }
    // Nothing of a damaged one is passed on: the next one takes its place.
    const isGood = isWhole(stop);
    spans.set(eventId, isGood ? [base + end, stop - end] : null);
    if (isGood) end = stop;
  }
  out.add(isAsStored && end === bytes.byteLength ? bytes : read.slice(0, end).buffer);
}

function withRoom(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  if (bytes.length >= length) return bytes;
  const larger = new Uint8Array(2 * length);
  larger.set(bytes);
  return larger;
}

/** Those that were not deleted meanwhile, in the order requested. */
function existingIds(sql: Sql, ids: string): readonly number[] {
  const found = sql.rows<{ id: number }>(
    "SELECT e.rowid AS id FROM json_each(?) AS requested CROSS JOIN event AS e ON e.rowid = requested.value",
    ids,
  );
  return found.map(({ id }) => id);
}

/**
 * Shows whether an event's payload is still the one that was accepted: the CRC-32 (as in zip and PNG) of its bytes, started with
 * the numbers of the event and its action instead of 0. So it also finds a payload under another event or action.
 *
 * It finds every run of up to 32 changed bits, and all but one in four billion other damages. It is no signature: who can write
 * to the file can write a checksum that fits. It takes 0.2 µs, and 0.1 µs for each KiB.
 */
export function eventChecksum(rowid: number, actionId: number, payload: Uint8Array): number {
  // The lower 32 bits; the factor spreads small numbers of actions over all of them.
  return crc32(payload, (rowid ^ Math.imul(actionId, 0x9e3779b1)) >>> 0);
}
