import { crc32 } from "node:zlib";
import { EVENT_LIMITS } from "../../../domain/event.ts";
import { firstWithin, type Work } from "../operation.ts";
import { FIRST_MS, LAST_MS, type Sql } from "../sql.ts";

/** An event whose payload is to be read: its rowid, and the columns of `PAYLOAD_COLUMNS`. */
export interface PayloadRequest {
  readonly eventId: number;
  readonly payloadBytes: number;
  /** The action is `null` where there is no such event. */
  readonly actionId: number | null;
  /** The checksum is `null` for events of old versions. */
  readonly checksum: number | null;
}

/** Stands for the checksum of an event with a column that is not as evreg writes it, as one flipped bit can make it. */
const DAMAGED = -1;

/** SQL of what is to be known of the event `e` before its payload is read. */
export const PAYLOAD_COLUMNS = `coalesce(octet_length(e.payload), 0) AS payloadBytes, e.action_id AS actionId,
  iif((e.checksum IS NULL OR typeof(e.checksum) = 'integer') AND e.revision BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER}
    AND e.timestamped_ms BETWEEN ${FIRST_MS} AND ${LAST_MS}, e.checksum, ${DAMAGED}) AS checksum`;

/** Payloads by event; `null` for a damaged one, which is neither shown nor sent. */
type Payloads = Map<number, Uint8Array<ArrayBuffer> | null>;

/** So many bytes of payloads are joined by the engine at once; a larger payload is a slice of its own. */
const SLICE_BYTES = 4 * 1024 * 1024;

/** Reads payloads that go with an answer. */
export async function readPayloads(
  work: Work,
  requested: readonly PayloadRequest[],
): Promise<Readonly<Payloads>> {
  const payloads = await loadPayloads(work, requested);
  for (const [event, payload] of payloads) {
    if (payload === null) work.damaged.push(event);
    else work.transfer.add(payload.buffer);
  }
  return payloads;
}

/** Makes the payload that was published of what is stored, in an older form of the data file. */
type Restore<R> = (request: R, stored: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

/** Reads the payloads of a slice together, as each BLOB from the driver costs about as much as 2 KiB of payload. */
export async function loadPayloads<R extends PayloadRequest>(
  sql: Sql,
  requested: readonly R[],
  restore: Restore<R> = (_, stored) => stored,
): Promise<Readonly<Payloads>> {
  const payloads: Payloads = new Map(requested.map(({ eventId }) => [eventId, null]));
  const distinct = new Map(requested.map((request) => [request.eventId, request]));
  // A payload that is larger could not be published, and may not fit into memory.
  let rest: readonly R[] = [...distinct.values()].filter(
    ({ actionId, payloadBytes }) => actionId !== null && payloadBytes <= EVENT_LIMITS.payloadMaxBytes,
  );
  while (rest.length > 0) {
    const slice = firstWithin(rest, ({ payloadBytes }) => payloadBytes, SLICE_BYTES);
    const read = await sql.joined(
      "SELECT e.payload AS bytes FROM list(?: id bigint) AS requested CROSS JOIN event AS e ON e.rowid = requested.id",
      slice.map(({ eventId }) => eventId),
    );
    let start = 0;
    for (const request of slice) {
      const { eventId, payloadBytes, actionId, checksum } = request;
      const payload = restore(request, read.subarray(start, start + payloadBytes));
      const isWhole = checksum === null || eventChecksum(eventId, actionId!, payload) === checksum;
      if (isWhole) payloads.set(eventId, payload);
      else payload.fill(0);
      start += payloadBytes;
    }
    rest = rest.slice(slice.length);
  }
  return payloads;
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
