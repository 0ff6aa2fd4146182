import type { EventRecord } from "../../events.ts";
import type { RecordCall } from "../thread/protocol.ts";
import { checkText } from "../thread/sql.ts";
import type { QueuedWrite } from "../thread/write-queue.ts";

/** One event of a flight that is to be decided on. */
export interface Candidate {
  /** Its place among all of the flight. */
  readonly place: number;
  readonly actionId: number;
  readonly revision: number;
  readonly offset: number;
  readonly length: number;
  readonly key: string | null;
  readonly nowMs: number;
}

/** The candidates of each call. */
export function candidatesOf(calls: readonly RecordCall[]): readonly (readonly Candidate[])[] {
  let place = 0;
  return calls.map(({ rows, keys, nowMs, base = 0 }) => {
    const candidates: Candidate[] = [];
    for (let at = 0; at < rows.length; at += 4) {
      candidates.push({
        place,
        actionId: rows[at] ?? 0,
        revision: rows[at + 1] ?? 0,
        offset: base + (rows[at + 2] ?? 0),
        length: rows[at + 3] ?? 0,
        key: keys?.[at / 4] ?? null,
        nowMs,
      });
      place += 1;
    }
    return candidates;
  });
}

/**
 * @param rows it will write, its deliveries included
 * @throws EvregError `invalid` for an idempotency key the engine would not keep as it is
 */
export function recordWrite(
  batch: readonly EventRecord[],
  nowMs: number,
  atomic: boolean,
  rows: number,
): QueuedWrite {
  let bytes = 0;
  let keyed = false;
  for (const { payload, idempotencyKey } of batch) {
    bytes += payload.byteLength;
    if (idempotencyKey === undefined) continue;
    checkText("idempotency_key", idempotencyKey);
    keyed = true;
  }
  return {
    bytes,
    rows,
    pack(buffer, start) {
      let offset = start;
      const packed: number[] = [];
      for (const { actionId, revision, payload } of batch) {
        buffer.set(payload, offset);
        packed.push(actionId, revision, offset, payload.byteLength);
        offset += payload.byteLength;
      }
      const call: RecordCall = keyed
        ? { nowMs, atomic, rows: packed, keys: batch.map(({ idempotencyKey }) => idempotencyKey ?? null) }
        : { nowMs, atomic, rows: packed };
      return { name: "recordEvents", call };
    },
  };
}
