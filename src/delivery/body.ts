import { toIso } from "../runtime/clock.ts";

export interface DeliveryBody {
  readonly eventId: number;
  readonly action: string;
  /** Well-formed JSON, as published. */
  readonly payload: Uint8Array;
  readonly eventTimestampedMs: number;
  readonly attempt: number;
}

/**
 * The bytes a handler gets: the specification's members in its order, `event_id` a string, and the payload exactly as it
 * was published, which is never parsed and written again.
 */
export function deliveryBody(body: DeliveryBody): Buffer {
  const { payload } = body;
  const head = `{"event_id":"${body.eventId}","action":${JSON.stringify(body.action)},"payload":`;
  const tail = `,"timestamp":"${toIso(body.eventTimestampedMs)}","delivery_attempt":${body.attempt}}`;
  const headBytes = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafe(headBytes + payload.byteLength + tail.length);
  bytes.write(head, 0);
  bytes.set(payload, headBytes);
  bytes.write(tail, headBytes + payload.byteLength, "latin1");
  return bytes;
}
