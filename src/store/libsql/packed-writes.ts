import type { AttemptResult, EventRecord } from "../store.ts";
import type { FinishCall, WireResult } from "./finish-attempts.ts";
import type { QueuedWrite } from "./flight-queue.ts";
import type { RecordCall } from "./record-call.ts";
import { checkText } from "./text.ts";

const encoder = new TextEncoder();

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

export function finishWrite(results: readonly AttemptResult[], nowMs: number): QueuedWrite {
  // Half a surrogate pair has no UTF-8; an attempt must not be lost for it, so it becomes U+FFFD.
  const responses = results.map(({ response }) =>
    response === undefined ? undefined : encoder.encode(response),
  );
  return {
    bytes: responses.reduce((sum, response) => sum + (response?.byteLength ?? 0), 0),
    rows: results.length,
    pack(buffer, start) {
      let offset = start;
      const wire = results.map((result, index): WireResult => {
        const response = responses[index];
        const at = offset;
        if (response !== undefined) buffer.set(response, at);
        offset += response?.byteLength ?? 0;
        return {
          deliveryId: result.deliveryId,
          claimId: result.claimId,
          startedAtMs: result.startedAtMs,
          durationMs: result.durationMs,
          statusCode: result.statusCode ?? null,
          errorCode: result.errorCode ?? null,
          response: response === undefined ? null : [at, response.byteLength],
          next: result.next,
        };
      });
      const call: FinishCall = { nowMs, results: wire };
      return { name: "finishAttempts", call };
    },
  };
}
