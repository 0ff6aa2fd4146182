import type { Event } from "../domain/event.ts";
import { bytesOf, isNamed, memberOf, nameOf, textOf, valueOf } from "../json/node.ts";
import type { JsonNode } from "../json/node.ts";
import { ENVELOPE_LEVELS } from "../json/parse.ts";
import { RawJson } from "../json/raw-json.ts";
import { MAX_NESTING, scanJson } from "../json/scanner.ts";
import type { Received } from "./channel.ts";
import { foreignAnswer } from "./refusals.ts";

/** More than any envelope or record has. */
const MEMBERS = 64;
/** More than any listing or batch has. */
const RECORDS = 100_000;

/** An answer without payloads: `{ data, … }`, parsed. Throws `unreachable` for anything else. */
export function jsonAnswer(received: Received): { readonly data: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(textOf(received.bytes, { start: 0, end: received.bytes.length }));
  } catch {
    throw foreignAnswer(received);
  }
  if (typeof value !== "object" || value === null || !("data" in value)) throw foreignAnswer(received);
  return value;
}

/** `{ data: Event }`, the payload as the exact bytes that came. */
export function eventAnswer(received: Received): { readonly data: Event } {
  const root = scan(received, [MEMBERS, MEMBERS]);
  const data = memberOf(received.bytes, root, "data");
  if (data?.kind !== "object") throw foreignAnswer(received);
  return { data: eventAt(received, data) };
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
  if (node.kind !== "object") throw foreignAnswer(received);
  const event: Record<string, unknown> = {};
  for (const member of node.children) {
    event[nameOf(received.bytes, member)] = isNamed(received.bytes, member, "payload")
      ? new RawJson(bytesOf(received.bytes, member))
      : valueOf(received.bytes, member);
  }
  if (!(event["payload"] instanceof RawJson)) throw foreignAnswer(received);
  return event as unknown as Event;
}

function scan(received: Received, record: readonly number[]): JsonNode {
  try {
    return scanJson(received.bytes, { maxNesting: MAX_NESTING + ENVELOPE_LEVELS, record });
  } catch {
    throw foreignAnswer(received);
  }
}
