import type { Deprecation } from "../domain/action.ts";
import { asEvregError, EvregError, invalidField } from "../domain/error.ts";
import {
  type BatchItemError,
  type BatchResult,
  type Event,
  EVENT_LIMITS,
  type NewEvent,
} from "../domain/event.ts";
import { type BatchItem, checkIdempotencyKey, EventLine } from "../domain/publish-body.ts";
import { RawJson } from "../json/raw-json.ts";
import { scanJson } from "../json/scanner.ts";
import type { JsonKind } from "../json/tokens.ts";
import { toIso } from "../runtime/clock.ts";
import { FAILURES_BYTES } from "../schema/limits.ts";
import { type Failure, shortened, shortenedText } from "../schema/validate/errors.ts";

/** How often a publish follows a schema that changes under it, before it gives up. */
export const MAX_TRIES = 20;

/** What the refusals of one batch tell in full, as bytes of JSON. Of those past it each text and value is cut to the second figure. */
const REFUSALS_BYTES = 1024 * 1024;
const BRIEF_BYTES = 256;

/** What holds for an item whatever its action is. */
export function checkItem(item: NewEvent, payloadBytes: number): void {
  if (typeof item !== "object" || item === null) {
    throw invalidField("body", "must be an object with action and payload");
  }
  const { action, payload, idempotency_key: key } = item;
  if (typeof action !== "string") throw invalidField("action", "must be a string", action);
  if (!(payload instanceof RawJson)) throw invalidField("payload", "must be an object");
  if (key !== undefined) checkIdempotencyKey("idempotency_key", key);
  if (payload.bytes.length > payloadBytes) throw tooLarge("payload", payload.bytes.length, payloadBytes);
}

export function nonConforming({ action }: NewEvent, { others = [], ...first }: Failure): EvregError {
  const { field, message } = first;
  return new EvregError(
    "invalid",
    `The payload does not conform to the schema of ${action}: ${field === "" ? "it" : field} ${message}`,
    { ...first, errors: foremost([first, ...others]) },
  );
}

/** The first, and those after it that fit with it into what one refusal tells. */
function foremost(failures: readonly Failure[]): readonly Failure[] {
  let bytes = 1;
  const over = failures.findIndex((failure) => (bytes += jsonBytes(failure) + 1) > FAILURES_BYTES);
  return over === -1 ? failures : failures.slice(0, Math.max(over, 1));
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

export function retired({ action }: NewEvent, successor: string | null): EvregError {
  const instead = successor === null ? "" : `; publish to ${successor} instead`;
  const message = `is retired and takes no events any more${instead}`;
  return new EvregError("gone", `${action} ${message}.`, {
    field: "action",
    message,
    value: action,
    successor,
  });
}

export function eventOf(
  { action, payload }: NewEvent,
  { rowid, timestampedMs }: { readonly rowid: number; readonly timestampedMs: number },
  revision: number,
): Event {
  return { rowid, action, payload, revision, timestamped: toIso(timestampedMs) };
}

/** @throws `malformed` or `invalid` unless it is an object; to be asked of a payload that no scanner has passed, too */
export function checkPayload(payload: RawJson): void {
  const isObject = payload.scanned ? payload.bytes[0] === OPENING_BRACE : kindOf(payload) === "object";
  if (!isObject) throw invalidField("payload", "must be an object");
}
const OPENING_BRACE = 0x7b;

function kindOf({ bytes }: RawJson): JsonKind {
  try {
    return scanJson(bytes).kind;
  } catch (error) {
    throw asEvregError(error);
  }
}

export function checkBatch(items: readonly BatchItem[]): void {
  const { batchItems, batchBytes } = EVENT_LIMITS;
  if (!Array.isArray(items)) throw invalidField("events", "must be a list");
  if (items.length < 1 || items.length > batchItems) {
    const most = batchItems.toLocaleString("en");
    throw invalidField("events", `must have 1 to ${most} items, not ${items.length.toLocaleString("en")}`);
  }
  let size = 0;
  for (const item of items as readonly unknown[]) {
    const payload = item instanceof EventLine ? item : (item as Partial<NewEvent> | null)?.payload;
    if (payload instanceof RawJson || payload instanceof EventLine) size += payload.bytes.length;
  }
  if (size > batchBytes) throw tooLarge("batch", size, batchBytes);
}

function tooLarge(what: string, size: number, limit: number): EvregError {
  return new EvregError(
    "too_large",
    `The ${what} has ${size.toLocaleString("en")} bytes; at most ${limit.toLocaleString("en")} are accepted.`,
    { limit, size },
  );
}

export function keyConflict({ idempotency_key: key }: NewEvent): EvregError {
  const message = "was used before with another action or payload; a new event needs a new key";
  return new EvregError("conflict", `idempotency_key: ${message}.`, {
    field: "idempotency_key",
    message,
    value: key,
  });
}

/** Its `details.field` tells it from a repeated key. */
export function otherData(dataId: string): EvregError {
  const message = "is of other data than there is here: of another data folder, or from before a restore";
  return new EvregError("conflict", `data_id: ${message}. Nothing was stored.`, {
    field: "data_id",
    message,
    value: dataId,
  });
}

export function restless(action: string): EvregError {
  return new EvregError(
    "unavailable",
    `The schema of ${action} kept changing while the event was checked against it. Nothing was stored; try again.`,
  );
}

export function batchResult(
  data: readonly (Event | null)[],
  errors: ReadonlyMap<number, EvregError>,
  { replayed, deprecated }: { readonly replayed: number; readonly deprecated: readonly Deprecation[] },
): BatchResult {
  const accepted = data.filter((event) => event !== null).length;
  const listed: BatchItemError[] = [];
  let leftBytes = REFUSALS_BYTES;
  for (const [index, failure] of [...errors].toSorted(([one], [other]) => one - other)) {
    const refusal = { index, ...failure.body() };
    // Once it is used up for one it is for all after it, so that nobody wonders why one in the middle is short.
    if (leftBytes > 0) leftBytes -= jsonBytes(refusal) + 1;
    listed.push(leftBytes > 0 ? refusal : brief(refusal));
  }
  const meta = { accepted, rejected: data.length - accepted, replayed };
  return { data, errors: listed, meta: deprecated.length === 0 ? meta : { ...meta, deprecated } };
}

/** A refusal of a few hundred bytes: the first rule that is broken, its texts cut. */
export function brief({ index, error, details, code }: BatchItemError): BatchItemError {
  const first = Object.entries(details).filter(([name]) => name !== "errors");
  return {
    index,
    error: shortenedText(error, BRIEF_BYTES),
    details: Object.fromEntries(first.map(([name, value]) => [name, shortened(value, BRIEF_BYTES)])),
    code,
  };
}
