import type { Cargo, WireOp } from "./messages.ts";

/** One message of writes. */
export interface Message extends Cargo {
  readonly id: number;
}

/** Messages that are carried out in one transaction. */
export interface Boarded {
  readonly ops: readonly WireOp[];
  /** Never empty: the driver binds an empty BLOB as NULL. */
  readonly bytes: Uint8Array;
  /** The messages, as they are to be answered. */
  readonly parties: readonly Message[];
}

/**
 * Past either, what waits is split over several flights, so that a read need not wait for all of it. A row takes 2.5 µs
 * (a delivery) to 7 µs (an event), so a flight 5 to 15 ms. One write is one transaction whatever its size.
 */
const FLIGHT_ROWS = 2_000;
const FLIGHT_BYTES = 8 * 1024 * 1024;

/** Takes the next flight off the front of `waiting`: at least one message, and no more than the limits. */
export function board(waiting: Message[]): Boarded {
  let rows = 0;
  let length = 0;
  let count = 0;
  for (const message of waiting) {
    rows += message.rows;
    length += message.bytes?.byteLength ?? 0;
    if (count > 0 && (rows > FLIGHT_ROWS || length > FLIGHT_BYTES)) break;
    count += 1;
  }
  const aboard = waiting.splice(0, count);
  const [first] = aboard;
  if (aboard.length === 1 && first !== undefined) {
    return { ops: first.ops, bytes: new Uint8Array(first.bytes ?? new ArrayBuffer(1)), parties: aboard };
  }
  return { ...joined(aboard), parties: aboard };
}

/** The messages' bytes in one buffer, and their calls told where theirs begin in it. */
function joined(aboard: readonly Message[]): { ops: readonly WireOp[]; bytes: Uint8Array } {
  const length = aboard.reduce((sum, { bytes }) => sum + (bytes?.byteLength ?? 0), 0);
  const all = new Uint8Array(Math.max(1, length));
  const ops: WireOp[] = [];
  let base = 0;
  for (const { ops: own, bytes } of aboard) {
    for (const op of own) ops.push("call" in op ? ({ ...op, call: { ...op.call, base } } as WireOp) : op);
    if (bytes === undefined) continue;
    all.set(new Uint8Array(bytes), base);
    base += bytes.byteLength;
  }
  return { ops, bytes: all };
}
