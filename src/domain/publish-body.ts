import { JsonError, LineCount } from "../json/json-error.ts";
import { bytesOf, type JsonNode, keyText, nameOf } from "../json/nodes.ts";
import { valueOf } from "../json/parse.ts";
import { ENVELOPE_LEVELS, RawJson } from "../json/raw-json.ts";
import { scanJson, type ScanOptions, scanSteps } from "../json/scanner.ts";
import type { Steps } from "../runtime/yielding.ts";
import { asEvregError, EvregError, invalidField, tooLarge } from "./error.ts";
import { EVENT_LIMITS, type NewEvent } from "./event.ts";
import { NAME_LENGTH, tooLong } from "./names.ts";

interface PublishLimits {
  readonly payloadBytes: number;
}

/** More than an item can have, so that one too many is always among those recorded. */
const RECORDED_MEMBERS = 8;
/** `{ "payload": … }` */
const ITEM: ScanOptions = { envelopeLevels: 1, record: [RECORDED_MEMBERS] };
const ITEM_NAMES: ReadonlySet<string> = new Set(["action", "payload", "idempotency_key"]);
const PRINTABLE_ASCII = /^[\x20-\x7e]{1,255}$/;

/**
 * The body of `POST /v1/events`: `{ action, payload, idempotency_key? }`. The payload is its bytes as they came, a view on
 * `bytes`; the 64 levels of nesting count from the payload's own root.
 * @throws `malformed`, `invalid` (with the field), `too_large` (with `{ limit, size }`)
 */
export function parsePublishBody(bytes: Uint8Array, limits: PublishLimits): NewEvent {
  return itemOf(bytes, scanned(bytes, ITEM), limits);
}

/** Reads the body of a publish in steps, for a large one. */
export function* publishBodySteps(bytes: Uint8Array, limits: PublishLimits): Steps<NewEvent> {
  return itemOf(bytes, yield* scannedSteps(bytes, ITEM), limits);
}

function* scannedSteps(bytes: Uint8Array, options: ScanOptions): Steps<JsonNode> {
  try {
    return yield* scanSteps(bytes, options);
  } catch (error) {
    throw asInputError(error);
  }
}

function scanned(bytes: Uint8Array, options?: ScanOptions): JsonNode {
  try {
    return scanJson(bytes, options);
  } catch (error) {
    throw asInputError(error);
  }
}

/** Why bytes are refused. @throws what is no refusal */
function asInputError(error: unknown): EvregError {
  if (error instanceof EvregError || error instanceof JsonError) return asEvregError(error);
  throw error;
}

/**
 * A payload on its own, from a file or an argument: one JSON object within the limits, its bytes as they are.
 * @throws as `parsePublishBody`
 */
export function parsePayload(bytes: Uint8Array, limits: PublishLimits): RawJson {
  return payloadOf(bytes, scanned(bytes), limits);
}

/** Reads a payload in steps, for a large one. */
export function* payloadSteps(bytes: Uint8Array, limits: PublishLimits): Steps<RawJson> {
  return payloadOf(bytes, yield* scannedSteps(bytes, {}), limits);
}

/**
 * A key that makes publishing safe to repeat, from a header or from a body.
 * @throws `invalid` unless it is 1 to 255 printable ASCII characters
 */
export function checkIdempotencyKey(field: string, value: unknown): string {
  if (typeof value !== "string") throw invalidField(field, "must be a string", value);
  if (PRINTABLE_ASCII.test(value)) return value;
  throw invalidField(
    field,
    "must be 1 to 255 printable ASCII characters",
    value.slice(0, 255).toWellFormed(),
  );
}

/** An item of which only the outermost syntax is known to be right. */
function* checkedItemSteps(
  bytes: Uint8Array,
  item: JsonNode,
  limits: PublishLimits,
  lines: LineCount,
): Steps<NewEvent> {
  const event = itemOf(bytes, item, limits);
  yield* scanSteps(bytes, { ...ITEM, span: item, lines });
  return event;
}

/** An item whose syntax was checked. @throws as `parsePublishBody`, but for `malformed` */
function itemOf(bytes: Uint8Array, item: JsonNode, limits: PublishLimits): NewEvent {
  if (item.kind !== "object") throw invalidField("body", "must be an object with action and payload", null);
  const members: Record<string, JsonNode | undefined> = {};
  for (const member of item.children) {
    const name = nameOf(bytes, member);
    if (!ITEM_NAMES.has(name)) throw unknownItemMember(name);
    members[name] ??= member;
  }
  const { action, payload, idempotency_key: key } = members;
  if (action === undefined) throw invalidField("action", "is required");
  if (action.kind !== "string") throw invalidField("action", "must be a string", shortValue(bytes, action));
  if (payload === undefined) throw invalidField("payload", "is required");
  const name = actionName(bytes, action);
  const event = { action: name, payload: payloadOf(bytes, payload, limits) };
  if (key === undefined) return event;
  const value = key.kind === "string" ? valueOf(bytes, key) : shortValue(bytes, key);
  return { ...event, idempotency_key: checkIdempotencyKey("idempotency_key", value) };
}

/** Whether there is such an action, the registry decides. */
function actionName(bytes: Uint8Array, { start, end }: JsonNode): string {
  const name = keyText(bytes, start + 1, end - 1);
  if (name.length > NAME_LENGTH) throw tooLong("action", name);
  return name;
}

function unknownItemMember(name: string): EvregError {
  const isAssigned = ["rowid", "revision", "timestamped"].includes(name);
  return unknownMember(
    name,
    isAssigned ? "the service assigns it" : "an event has action, payload and idempotency_key",
  );
}

function payloadOf(bytes: Uint8Array, payload: JsonNode, limits: PublishLimits): RawJson {
  const size = payload.end - payload.start;
  if (size > limits.payloadBytes) throw tooLarge("payload", size, limits.payloadBytes);
  if (payload.kind !== "object") {
    throw invalidField("payload", "must be an object", shortValue(bytes, payload));
  }
  return new RawJson(bytesOf(bytes, payload));
}

function unknownMember(name: string, hint: string): EvregError {
  const shown = name.length > 64 ? `${name.slice(0, 64).toWellFormed()}…` : name.toWellFormed();
  return invalidField(shown, `is not a known member; ${hint}`);
}

/** The offending value for an answer; `null` for one too long to send back. */
function shortValue(bytes: Uint8Array, node: JsonNode): unknown {
  return node.end - node.start <= 1_024 ? valueOf(bytes, node) : null;
}

const BATCH_PARTS = [RECORDED_MEMBERS, EVENT_LIMITS.batchItems, RECORDED_MEMBERS];
/** `{ "events": [ { "payload": … } ] }`, all of it held to the limits at once. */
const BATCH: ScanOptions = { envelopeLevels: ENVELOPE_LEVELS, record: BATCH_PARTS };
/** The scan reads only the envelope. */
const ENVELOPE: ScanOptions = { maxNesting: 10_000, record: BATCH_PARTS, strictLevels: 2 };

/**
 * The body of `POST /v1/events/batch`: `{ events: [item, …] }`, 1 to 1,000 items, in steps. An item that cannot be taken is
 * its error in its place, also for duplicate keys, nesting or lone surrogates inside it.
 * @throws `malformed` when the body is not JSON at all, `invalid` when it is no batch
 */
export function* batchBodySteps(bytes: Uint8Array, limits: PublishLimits): Steps<(NewEvent | EvregError)[]> {
  const lines = new LineCount();
  let root: JsonNode;
  let isWhole = true;
  try {
    root = yield* scanSteps(bytes, { ...BATCH, lines });
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    // Something is wrong with all of it or with some items, so that each is checked by itself.
    isWhole = false;
    root = yield* scannedSteps(bytes, ENVELOPE);
  }
  const items: (NewEvent | EvregError)[] = [];
  for (const item of itemsOf(bytes, root)) {
    yield;
    try {
      items.push(isWhole ? itemOf(bytes, item, limits) : yield* checkedItemSteps(bytes, item, limits, lines));
    } catch (error) {
      items.push(asInputError(error));
    }
  }
  return items;
}

function itemsOf(bytes: Uint8Array, root: JsonNode): readonly JsonNode[] {
  if (root.kind !== "object") throw invalidField("body", "must be an object with the list `events`", null);
  for (const member of root.children) {
    const name = nameOf(bytes, member);
    if (name !== "events") throw unknownMember(name, "the body of a batch is { events: [ … ] }");
  }
  const [events] = root.children;
  if (events === undefined) throw invalidField("events", "is required");
  if (events.kind !== "array") throw invalidField("events", "must be a list");
  checkItemCount(events.count);
  return events.children;
}

/** @throws `invalid` unless a batch may have so many items */
export function checkItemCount(count: number): void {
  const max = EVENT_LIMITS.batchItems;
  if (count >= 1 && count <= max) return;
  const rule = `must have 1 to ${max.toLocaleString("en")} items, not ${count.toLocaleString("en")}`;
  throw invalidField("events", rule);
}

/** What a batch is made of: an event, or why one could not be read. */
export type BatchItem = NewEvent | EvregError;

/**
 * The event on a line of a file, or why there is none.
 * @param keyOf the idempotency key of a line that names none
 */
export function readEventLine(bytes: Uint8Array, keyOf?: () => string): BatchItem {
  try {
    const event = parsePublishBody(bytes, { payloadBytes: EVENT_LIMITS.batchBytes });
    if (keyOf === undefined || event.idempotency_key !== undefined) return event;
    return { ...event, idempotency_key: keyOf() };
  } catch (error) {
    return placedInLine(asInputError(error));
  }
}

/** Leaves out "line 1", which would contradict the line's number in the file. */
function placedInLine(error: EvregError): EvregError {
  const { cause } = error;
  if (!(cause instanceof JsonError)) return error;
  const { column, byte, reason, inLine } = cause;
  return new EvregError("malformed", inLine, { column, byte, reason });
}
