import { EvregError } from "../domain/error.ts";
import type { NewEvent } from "../domain/event.ts";
import { EventLine, type BatchItem } from "../domain/event-line.ts";
import { encodeJson } from "../json/encode.ts";
import { RawJson } from "../json/raw-json.ts";

const BEFORE = '{"events":[';
const AFTER = "]}";
const COMMA = 0x2c;

/**
 * The body of a batch, put together as bytes: as a string each payload would be decoded and encoded again, which took a
 * quarter of a bulk's time.
 *
 * An item that could not even be read goes as `null`, which the server refuses in its place: so the others keep their
 * numbers, and an atomic batch fails as it must.
 */
export function batchBody(items: readonly BatchItem[]): Uint8Array {
  const parts = items.map(partsOf);
  let length = BEFORE.length + AFTER.length + Math.max(0, items.length - 1);
  for (const { head, payload, cut, tail } of parts) {
    length += Buffer.byteLength(head) + payload.length - cut + Buffer.byteLength(tail);
  }
  const body = Buffer.allocUnsafeSlow(length);
  let at = body.write(BEFORE, "latin1");
  for (const [place, { head, payload, cut, tail }] of parts.entries()) {
    if (place > 0) body[at++] = COMMA;
    if (head !== "") at += body.write(head, at);
    body.set(payload, at);
    at += payload.length - cut;
    if (tail !== "") at += body.write(tail, at);
  }
  body.write(AFTER, at, "latin1");
  return body;
}

interface Parts {
  readonly head: string;
  readonly payload: Uint8Array;
  /** Bytes at its end that `tail` takes the place of. */
  readonly cut: number;
  readonly tail: string;
}

const NONE = new Uint8Array();
const NULL: Parts = { head: "null", payload: NONE, cut: 0, tail: "" };

function partsOf(item: BatchItem): Parts {
  if (item instanceof EventLine) return lineParts(item);
  if (item instanceof EvregError) return NULL;
  if (!isPlain(item)) return { head: encodeJson(item), payload: NONE, cut: 0, tail: "" };
  const { action, payload, idempotency_key: key } = item;
  return {
    head: headOf(action),
    payload: payload.bytes,
    cut: 0,
    tail: key === undefined ? "}" : keyTail(key),
  };
}

/** A key goes in before the line's closing brace. */
function lineParts({ bytes, idempotency_key: key }: EventLine): Parts {
  if (key === undefined) return { head: "", payload: bytes, cut: 0, tail: "" };
  return { head: "", payload: bytes, cut: 1, tail: keyTail(key) };
}

function keyTail(key: string): string {
  return `,"idempotency_key":${JSON.stringify(key)}}`;
}

/** What no type allows is for the server to refuse, so it must get there as it is. */
function isPlain(item: unknown): item is NewEvent {
  if (typeof item !== "object" || item === null) return false;
  const { action, payload, idempotency_key: key } = item as Partial<NewEvent>;
  const members = key === undefined ? 2 : 3;
  return typeof action === "string" && payload instanceof RawJson && Object.keys(item).length === members;
}

function headOf(action: string): string {
  if (action !== lastHead.action) {
    lastHead = { action, head: `{"action":${JSON.stringify(action)},"payload":` };
  }
  return lastHead.head;
}

/** Most events of a batch have the action of the one before. */
let lastHead = { action: "", head: '{"action":"","payload":' };
