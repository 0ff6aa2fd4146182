import { LineCount } from "../json/fault.ts";
import { bytesOf, memberOf, valueOf } from "../json/node.ts";
import type { JsonNode } from "../json/node.ts";
import { RawJson } from "../json/raw-json.ts";
import type { ScanOptions } from "../json/scan.ts";
import { scanJson, scanJsonSlowly } from "../json/scanner.ts";
import type { Breather } from "../json/scanner.ts";
import { EvregError, invalidField } from "./error.ts";
import { EVENT_LIMITS } from "./event.ts";
import type { NewEvent } from "./event.ts";
import { NAME_LENGTH, tooLong } from "./names.ts";

export interface PublishLimits {
  /** Bytes in one payload. */
  readonly payloadBytes: number;
}

/** Members an item can have: `action`, `payload` and `idempotency_key`. */
const ITEM_MEMBERS = 3;
/** More of them than that, so that one too many is always among those recorded. */
const RECORDED_MEMBERS = 8;
/** `{ "payload": … }` */
const ITEM: ScanOptions = { envelopeLevels: 1, record: [RECORDED_MEMBERS] };
/** `{ "events": [ { "payload": … } ] }`. Each item is then held to its own limits, so here only the envelope is. */
const BATCH: ScanOptions = {
  maxNesting: 10_000,
  record: [RECORDED_MEMBERS, EVENT_LIMITS.batchItems, RECORDED_MEMBERS],
  strictLevels: 2,
};

const PRINTABLE_ASCII = /^[\x20-\x7e]{1,255}$/;

/**
 * The body of `POST /v1/events`: `{ action, payload, idempotency_key? }`. The payload keeps its bytes, as a view on
 * `bytes`; the 64 levels of nesting count from the payload's own root.
 * @throws `malformed`, `invalid` (with the field), `too_large` (with `{ limit, size }`)
 */
export function parsePublishBody(bytes: Uint8Array, limits: PublishLimits): NewEvent {
  return itemOf(bytes, scanJson(bytes, ITEM), limits);
}

/** One item of a batch on its own, such as a line of NDJSON: the same as the body of a single publish. */
export function parseBatchItem(bytes: Uint8Array, limits: PublishLimits): NewEvent {
  return parsePublishBody(bytes, limits);
}

/**
 * The body of `POST /v1/events/batch`: `{ events: [item, …] }`, 1 to 1,000 items. An item that cannot be taken is its
 * error in its place: a bad member, a payload too large, and also duplicate keys, nesting or lone surrogates inside it.
 * @param pace lets other work in during the long run that a full batch takes
 * @throws `malformed` when the body is not JSON at all, `invalid` when it is no batch
 */
export async function parseBatchBody(
  bytes: Uint8Array,
  limits: PublishLimits,
  pace: Breather,
): Promise<(NewEvent | EvregError)[]> {
  const items: (NewEvent | EvregError)[] = [];
  const lines = new LineCount();
  for (const item of itemsOf(await scanJsonSlowly(bytes, BATCH, pace))) {
    try {
      const event = itemOf(bytes, item, limits);
      // With more members than there are names for, one is there twice: nothing inside need be looked at to tell.
      const strictly = item.count > ITEM_MEMBERS ? { strictLevels: 1 } : {};
      scanJson(bytes, { ...ITEM, ...strictly, span: item, lines });
      items.push(event);
    } catch (error) {
      if (!(error instanceof EvregError)) throw error;
      items.push(error);
    }
    await pace.breathe();
  }
  return items;
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

function itemsOf(root: JsonNode): readonly JsonNode[] {
  if (root.kind !== "object") throw invalidField("body", "must be an object with a list of events", null);
  for (const { name } of root.children) {
    if (name !== "events") throw unknownMember(name, "the body of a batch is { events: [ … ] }");
  }
  const events = memberOf(root, "events");
  if (events === undefined) throw invalidField("events", "is required");
  if (events.kind !== "array") throw invalidField("events", "must be a list");
  if (events.count < 1 || events.count > EVENT_LIMITS.batchItems) {
    const most = EVENT_LIMITS.batchItems.toLocaleString("en");
    throw invalidField("events", `must have 1 to ${most} items, not ${events.count.toLocaleString("en")}`);
  }
  return events.children;
}

function itemOf(bytes: Uint8Array, item: JsonNode, limits: PublishLimits): NewEvent {
  if (item.kind !== "object") throw invalidField("body", "must be an object with action and payload", null);
  for (const { name } of item.children) {
    if (name === "action" || name === "payload" || name === "idempotency_key") continue;
    const hint =
      name === "rowid" || name === "revision" || name === "timestamped"
        ? "the service assigns it"
        : "an event has action, payload and idempotency_key";
    throw unknownMember(name, hint);
  }
  const action = memberOf(item, "action");
  if (action === undefined) throw invalidField("action", "is required");
  if (action.kind !== "string") throw invalidField("action", "must be a string", shortValue(bytes, action));
  const payload = memberOf(item, "payload");
  if (payload === undefined) throw invalidField("payload", "is required");
  const name = valueOf(bytes, action) as string;
  // Whether such an action exists is for the registry to say; only what no name can be is refused here.
  if (name.length > NAME_LENGTH) throw tooLong("action", name);
  const event = { action: name, payload: payloadOf(bytes, payload, limits) };
  const key = memberOf(item, "idempotency_key");
  if (key === undefined) return event;
  const value = key.kind === "string" ? valueOf(bytes, key) : shortValue(bytes, key);
  return { ...event, idempotency_key: checkIdempotencyKey("idempotency_key", value) };
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

function unknownMember(name: string | undefined, hint: string): EvregError {
  const field = name ?? "";
  const shown = field.length > 64 ? `${field.slice(0, 64).toWellFormed()}…` : field.toWellFormed();
  return invalidField(shown, `is not a known member; ${hint}`);
}

/** The offending value for an answer; `null` stands for one too long to send back. */
function shortValue(bytes: Uint8Array, node: JsonNode): unknown {
  return node.end - node.start <= 1_024 ? valueOf(bytes, node) : null;
}
