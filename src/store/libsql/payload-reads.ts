import type { BytesOut, Span } from "./bytes-out.ts";
import { complete, type Steps } from "./read-steps.ts";
import type { Sql } from "./sql.ts";

/** A payload to be read: its event, and its length. */
export interface PayloadAsked {
  readonly eventId: number;
  readonly payloadBytes: number;
}

/** So much is put together inside the engine at once; a single larger payload makes a slice of its own. */
const SLICE_BYTES = 4 * 1024 * 1024;

/**
 * Adds the payloads to `out`, each event's once however often it is asked for, and answers where they lie by event; one
 * that was deleted between two steps is missing.
 *
 * The engine joins them into one BLOB a slice, as each BLOB that crosses from the driver by itself costs about as much
 * as 2 KiB of payload. Joined as text, which for the engine is any bytes with a length.
 */
export function* readPayloads(
  sql: Sql,
  asked: readonly PayloadAsked[],
  out: BytesOut,
): Steps<ReadonlyMap<number, Span>> {
  const spans = new Map<number, Span>();
  for (const slice of slices(asked)) {
    if (spans.size > 0) yield;
    readSlice(sql, slice, out, spans);
  }
  return spans;
}

/** The same without a step between, as inside a transaction. */
export function addPayloads(
  sql: Sql,
  asked: readonly PayloadAsked[],
  out: BytesOut,
): ReadonlyMap<number, Span> {
  return complete(readPayloads(sql, asked, out));
}

function* slices(asked: readonly PayloadAsked[]): Generator<ReadonlyMap<number, number>> {
  let slice = new Map<number, number>();
  let sliceBytes = 0;
  const seen = new Set<number>();
  for (const { eventId, payloadBytes } of asked) {
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

/** @param lengths of the payloads, by event */
function readSlice(
  sql: Sql,
  lengths: ReadonlyMap<number, number>,
  out: BytesOut,
  spans: Map<number, Span>,
): void {
  const ids = JSON.stringify([...lengths.keys()]);
  const row = sql.first<{ bytes: ArrayBuffer | null; found: number }>(
    `SELECT count(*) AS found, CAST(group_concat(CAST(e.payload AS TEXT), '') AS BLOB) AS bytes
      FROM json_each(?) AS asked CROSS JOIN event AS e ON e.rowid = asked.value`,
    ids,
  );
  let there: Iterable<number> = lengths.keys();
  if (row?.found !== lengths.size) {
    const left = sql.rows<{ id: number }>(
      "SELECT e.rowid AS id FROM json_each(?) AS asked CROSS JOIN event AS e ON e.rowid = asked.value",
      ids,
    );
    there = left.map(({ id }) => id);
  }
  let [offset] = out.add(row?.bytes ?? new ArrayBuffer(0));
  for (const eventId of there) {
    const length = lengths.get(eventId) ?? 0;
    spans.set(eventId, [offset, length]);
    offset += length;
  }
}
