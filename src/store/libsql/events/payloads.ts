import { crc32 } from "node:zlib";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import type { Work } from "../thread/operation.ts";
import { FIRST_MS, LAST_MS, type Sql } from "../thread/sql.ts";

/** A payload to be read: its event, and its length. */
export interface PayloadRequest {
  readonly eventId: number;
  readonly payloadBytes: number;
}

/** Payloads by event; `null` for a damaged one, which is neither shown nor sent. */
type Payloads = Map<number, Uint8Array<ArrayBuffer> | null>;

/** The length of the payload of the event `e`, whatever type damage gave it. */
export const PAYLOAD_BYTES = "coalesce(octet_length(e.payload), 0)";

/** So many bytes of payloads are joined by the engine at once; a larger payload is a slice of its own. */
const SLICE_BYTES = 4 * 1024 * 1024;

/** Reads payloads that go with an answer. */
export function readPayloads(work: Work, requested: readonly PayloadRequest[]): Readonly<Payloads> {
  const payloads = loadPayloads(work, requested);
  for (const [event, payload] of payloads) {
    if (payload === null) work.damaged.push(event);
    else work.transfer.add(payload.buffer);
  }
  return payloads;
}

/**
 * The engine joins those of a slice into one BLOB, as each BLOB from the driver costs about as much as 2 KiB of payload. It
 * joins them as text, which for the engine is any bytes with a length.
 */
export function loadPayloads(sql: Sql, requested: readonly PayloadRequest[]): Readonly<Payloads> {
  const payloads: Payloads = new Map();
  /** Lengths by event. */
  let slice = new Map<number, number>();
  let sliceBytes = 0;
  for (const { eventId, payloadBytes } of requested) {
    if (payloads.has(eventId)) continue;
    payloads.set(eventId, null);
    // A payload that is larger could not be published, and may not fit into memory.
    if (payloadBytes > EVENT_LIMITS.payloadMaxBytes) continue;
    if (slice.size > 0 && sliceBytes + payloadBytes > SLICE_BYTES) {
      readSlice(sql, slice, payloads);
      slice = new Map();
      sliceBytes = 0;
    }
    slice.set(eventId, payloadBytes);
    sliceBytes += payloadBytes;
  }
  if (slice.size > 0) readSlice(sql, slice, payloads);
  return payloads;
}

/** Stands for an event without a checksum, as no checksum has this value. */
const NONE = -1;
/** SQL for the checksum of the event `e`. An event with other damaged columns gets one that no payload has. */
const CHECKSUM = `iif((e.checksum IS NULL OR typeof(e.checksum) = 'integer') AND e.revision BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER}
  AND e.timestamped_ms BETWEEN ${FIRST_MS} AND ${LAST_MS}, e.checksum, ${NONE})`;

/** @param lengths of the payloads by event */
function readSlice(sql: Sql, lengths: ReadonlyMap<number, number>, payloads: Payloads): void {
  const ids = JSON.stringify([...lengths.keys()]);
  const row = sql.first<{ bytes: ArrayBuffer | null; actions: string; checksums: string }>(
    `SELECT CAST(group_concat(CAST(e.payload AS TEXT), '') AS BLOB) AS bytes,
        json_group_array(iif(typeof(e.action_id) = 'integer', e.action_id, ${NONE})) AS actions,
        json_group_array(${CHECKSUM}) AS checksums
      FROM json_each(?) AS requested CROSS JOIN event AS e ON e.rowid = requested.value`,
    ids,
  )!;
  const actions = JSON.parse(row.actions) as number[];
  const checksums = JSON.parse(row.checksums) as (number | null)[];
  const read = new Uint8Array(row.bytes ?? new ArrayBuffer(0));
  let start = 0;
  for (const [index, [eventId, length]] of [...lengths].entries()) {
    const checksum = checksums[index] ?? null;
    const payload = read.subarray(start, start + length);
    // Events of old versions have no checksum.
    const isWhole = checksum === null || eventChecksum(eventId, actions[index]!, payload) === checksum;
    if (isWhole) payloads.set(eventId, payload);
    else payload.fill(0);
    start += length;
  }
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
