import type { DeprecatedMeta, Event } from "../domain/event.ts";
import type { StreamedEvent } from "../domain/stream.ts";
import type { Answer } from "../evreg.ts";
import { bytesOf, type JsonNode, memberOf, nameOf } from "../json/nodes.ts";
import { valueOf } from "../json/parse.ts";
import { ENVELOPE_LEVELS, RawJson } from "../json/raw-json.ts";
import { MAX_NESTING, scanJson } from "../json/scanner.ts";
import { foreignAnswer, type Received } from "./channel.ts";

/** More than any envelope or record has. */
const MEMBERS = 64;
/** More than any listing or batch has. */
const RECORDS = 100_000;

/** A record without payloads, or a list of them: `{ data, … }`, parsed. Throws `unreachable` for anything else. */
export function answerOf(received: Received): { readonly data: unknown } {
  const value = jsonOf(received);
  if (typeof value !== "object" || value === null || !("data" in value)) throw foreignAnswer(received);
  return value;
}

/** @throws EvregError `unreachable` for what is no JSON */
export function jsonOf(received: Received): unknown {
  try {
    return valueOf(received.bytes, { start: 0, end: received.bytes.length });
  } catch {
    throw foreignAnswer(received);
  }
}

/** `{ data: Event, meta? }`, the payload as the exact bytes that came. */
export function eventAnswer(received: Received): Answer<Event, DeprecatedMeta> {
  const root = scan(received, [MEMBERS, MEMBERS]);
  const data = memberOf(received.bytes, root, "data");
  if (data?.kind !== "object") throw foreignAnswer(received);
  const event = { data: eventAt(received, data) };
  const meta = memberOf(received.bytes, root, "meta");
  return meta === undefined ? event : { ...event, meta: valueOf(received.bytes, meta) as DeprecatedMeta };
}

/** `{ data: [Event | null, …], … }`; the members beside `data` are in `rest`. */
export function eventsAnswer(received: Received): {
  readonly data: readonly (Event | null)[];
  readonly rest: Readonly<Record<string, unknown>>;
} {
  const root = scan(received, [MEMBERS, RECORDS, MEMBERS]);
  const data = memberOf(received.bytes, root, "data");
  if (data?.kind !== "array") throw foreignAnswer(received);
  const rest: Record<string, unknown> = {};
  for (const member of root.children) {
    if (member !== data) rest[nameOf(received.bytes, member)] = valueOf(received.bytes, member);
  }
  return { data: data.children.map((item) => (item.kind === "null" ? null : eventAt(received, item))), rest };
}

function eventAt(received: Received, node: JsonNode): Event {
  const event = eventMembers(received, node);
  if (!(event["payload"] instanceof RawJson)) throw foreignAnswer(received);
  return event as unknown as Event;
}

/** An event of a stream: its payload, if there is one, as the exact bytes that were published. */
export function streamedEvent(received: Received): StreamedEvent {
  const { payload_base64: encoded, ...event } = eventMembers(received, scan(received, [MEMBERS]));
  // It has carriage returns, which the stream could not carry.
  if (typeof encoded === "string") event["payload"] = new RawJson(Buffer.from(encoded, "base64"));
  return event as unknown as StreamedEvent;
}

function eventMembers(received: Received, node: JsonNode): Record<string, unknown> {
  if (node.kind !== "object") throw foreignAnswer(received);
  const { bytes } = received;
  const event: Record<string, unknown> = {};
  for (const member of node.children) {
    const name = nameOf(bytes, member);
    event[name] = name === "payload" ? new RawJson(bytesOf(bytes, member)) : valueOf(bytes, member);
  }
  return event;
}

function scan(received: Received, record: readonly number[]): JsonNode {
  try {
    return scanJson(received.bytes, { maxNesting: MAX_NESTING + ENVELOPE_LEVELS, record });
  } catch {
    throw foreignAnswer(received);
  }
}
