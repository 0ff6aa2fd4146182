import type { LineCount } from "../json/fault.ts";
import { bytesOf, isNamed, memberOf, nameOf, valueOf } from "../json/node.ts";
import type { JsonNode } from "../json/node.ts";
import { RawJson } from "../json/raw-json.ts";
import type { ScanOptions } from "../json/scan-options.ts";
import { type Breather, scanJson, scanJsonSlowly } from "../json/scanner.ts";
import { holdsText } from "../json/utf8.ts";
import { EvregError, invalidField } from "./error.ts";
import type { NewEvent } from "./event.ts";
import { NAME_LENGTH, tooLong } from "./names.ts";

export interface PublishLimits {
  /** Bytes in one payload. */
  readonly payloadBytes: number;
}

/** Members an item can have. */
const ITEM_NAMES = ["action", "payload", "idempotency_key"] as const;
/** More of them than that, so that one too many is always among those recorded. */
export const RECORDED_MEMBERS = 8;
/** `{ "payload": … }` */
const ITEM: ScanOptions = { envelopeLevels: 1, record: [RECORDED_MEMBERS] };
/** Text whose bytes in JSON are its characters. */
const PLAIN = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;
const PRINTABLE_ASCII = /^[\x20-\x7e]{1,255}$/;

/**
 * The body of `POST /v1/events`: `{ action, payload, idempotency_key? }`. The payload keeps its bytes, as a view on
 * `bytes`; the 64 levels of nesting count from the payload's own root.
 * @throws `malformed`, `invalid` (with the field), `too_large` (with `{ limit, size }`)
 */
export function parsePublishBody(bytes: Uint8Array, limits: PublishLimits): NewEvent {
  return itemOf(bytes, scanJson(bytes, ITEM), limits);
}

/** The same for a large one: other work gets in between. */
export async function parsePublishBodySlowly(
  bytes: Uint8Array,
  limits: PublishLimits,
  pace: Breather,
): Promise<NewEvent> {
  return itemOf(bytes, await scanJsonSlowly(bytes, ITEM, pace), limits);
}

/** One item of a batch on its own, such as a line of NDJSON: the same as the body of a single publish. */
export function parseBatchItem(bytes: Uint8Array, limits: PublishLimits): NewEvent {
  return parsePublishBody(bytes, limits);
}

/**
 * A payload on its own, from a file or an argument: one JSON object within the limits, its bytes kept.
 * @throws as `parsePublishBody`
 */
export function parsePayload(bytes: Uint8Array, limits: PublishLimits): RawJson {
  return payloadOf(bytes, scanJson(bytes), limits);
}

/**
 * A key that makes publishing safe to repeat, from a header or from a body.
 * @throws `invalid` unless it is 1 to 255 printable ASCII characters
 */
export function checkIdempotencyKey(field: string, value: unknown): string {
  if (typeof value !== "string") throw invalidField(field, "must be a string", value);
  if (!PRINTABLE_ASCII.test(value)) {
    throw invalidField(
      field,
      "must be 1 to 255 printable ASCII characters",
      value.slice(0, 255).toWellFormed(),
    );
  }
  return value;
}

/** An item of which only the outermost syntax is known to be right. */
export async function checkedItemOf(
  bytes: Uint8Array,
  item: JsonNode,
  limits: PublishLimits,
  { lines, pace }: { readonly lines: LineCount; readonly pace: Breather },
): Promise<NewEvent> {
  const event = itemOf(bytes, item, limits);
  // With more members than names, one is there twice: nothing inside need be looked at to tell, and what comes second
  // may be of any size.
  const named = ITEM_NAMES.filter((name) => memberOf(bytes, item, name) !== undefined);
  const strictly = item.count > named.length ? { strictLevels: 1 } : {};
  await scanJsonSlowly(bytes, { ...ITEM, ...strictly, span: item, lines }, pace);
  return event;
}

/** An item that a scan has found to be right, as JSON. @throws as `parsePublishBody`, but for `malformed` */
export function itemOf(bytes: Uint8Array, item: JsonNode, limits: PublishLimits): NewEvent {
  if (item.kind !== "object") throw invalidField("body", "must be an object with action and payload", null);
  let action: JsonNode | undefined;
  let payload: JsonNode | undefined;
  let key: JsonNode | undefined;
  for (const member of item.children) {
    if (isNamed(bytes, member, "action")) action ??= member;
    else if (isNamed(bytes, member, "payload")) payload ??= member;
    else if (isNamed(bytes, member, "idempotency_key")) key ??= member;
    else throw unknownItemMember(nameOf(bytes, member));
  }
  if (action === undefined) throw invalidField("action", "is required");
  if (action.kind !== "string") throw invalidField("action", "must be a string", shortValue(bytes, action));
  if (payload === undefined) throw invalidField("payload", "is required");
  const name = actionName(bytes, action);
  const event = { action: name, payload: payloadOf(bytes, payload, limits) };
  if (key === undefined) return event;
  const value = key.kind === "string" ? valueOf(bytes, key) : shortValue(bytes, key);
  return { ...event, idempotency_key: checkIdempotencyKey("idempotency_key", value) };
}

/** The name in an action's string. Mostly it is the one that came before, which is told without decoding it. */
function actionName(bytes: Uint8Array, { start, end }: JsonNode): string {
  if (holdsText(bytes, start + 1, end - 1, lastAction)) return lastAction;
  const name = valueOf(bytes, { start, end }) as string;
  // Whether such an action exists is for the registry to say; only what no name can be is refused here.
  if (name.length > NAME_LENGTH) throw tooLong("action", name);
  if (PLAIN.test(name)) lastAction = name;
  return name;
}

let lastAction = "";

function unknownItemMember(name: string): EvregError {
  const hint =
    name === "rowid" || name === "revision" || name === "timestamped"
      ? "the service assigns it"
      : "an event has action, payload and idempotency_key";
  return unknownMember(name, hint);
}

function payloadOf(bytes: Uint8Array, payload: JsonNode, limits: PublishLimits): RawJson {
  const size = payload.end - payload.start;
  if (size > limits.payloadBytes) {
    throw new EvregError(
      "too_large",
      `The payload has ${size.toLocaleString("en")} bytes; at most ${limits.payloadBytes.toLocaleString("en")} are accepted.`,
      { limit: limits.payloadBytes, size },
    );
  }
  if (payload.kind !== "object") {
    throw invalidField("payload", "must be an object", shortValue(bytes, payload));
  }
  return new RawJson(bytesOf(bytes, payload));
}

export function unknownMember(name: string, hint: string): EvregError {
  const shown = name.length > 64 ? `${name.slice(0, 64).toWellFormed()}…` : name.toWellFormed();
  return invalidField(shown, `is not a known member; ${hint}`);
}

/** The offending value for an answer; `null` stands for one too long to send back. */
function shortValue(bytes: Uint8Array, node: JsonNode): unknown {
  return node.end - node.start <= 1_024 ? valueOf(bytes, node) : null;
}
