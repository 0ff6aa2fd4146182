import type { BytesOut, Span } from "./bytes-out.ts";
import type { Sql } from "./sql.ts";

/** A payload to be read: its event, and its length. */
export interface PayloadAsked {
  readonly eventId: number;
  readonly payloadBytes: number;
}

/** So much is put together inside the engine at once; a single larger payload makes a slice of its own. */
const SLICE_BYTES = 4 * 1024 * 1024;

/**
 * Adds the payloads to `out`, each event's once however often it is asked for, and answers where they lie by event.
 *
 * The engine joins them into one BLOB a slice, as each BLOB that crosses from the driver by itself costs about as much
 * as 2 KiB of payload. Joined as text, which for the engine is any bytes with a length.
 */
export function addPayloads(
  sql: Sql,
  asked: readonly PayloadAsked[],
  out: BytesOut,
): ReadonlyMap<number, Span> {
  const lengths = new Map(asked.map(({ eventId, payloadBytes }) => [eventId, payloadBytes]));
  const spans = new Map<number, Span>();
  let slice: number[] = [];
  let sliceBytes = 0;
  const read = (): void => {
    if (slice.length === 0) return;
    const row = sql.first<{ bytes: ArrayBuffer }>(
      `SELECT CAST(group_concat(CAST(e.payload AS TEXT), '') AS BLOB) AS bytes
        FROM json_each(?) AS asked CROSS JOIN event AS e ON e.rowid = asked.value`,
      JSON.stringify(slice),
    );
    let [offset] = out.add(row?.bytes ?? new ArrayBuffer(0));
    for (const eventId of slice) {
      const length = lengths.get(eventId) ?? 0;
      spans.set(eventId, [offset, length]);
      offset += length;
    }
    slice = [];
    sliceBytes = 0;
  };
  for (const [eventId, payloadBytes] of lengths) {
    if (sliceBytes + payloadBytes > SLICE_BYTES) read();
    slice.push(eventId);
    sliceBytes += payloadBytes;
  }
  read();
  return spans;
}
