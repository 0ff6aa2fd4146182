import type { EventRecord } from "../events.ts";
import type { QueuedWrite } from "./flight-queue.ts";
import { checkText } from "./text.ts";
import type { RecordCall } from "./messages.ts";

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
