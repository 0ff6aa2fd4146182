import type { Action, PayloadError } from "../domain/action.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { ISO_TIME_EXPECTED, parseIsoTime } from "../domain/formats.ts";
import { type InputSchema, type JsonSchema, malformedField, shown } from "../domain/request.ts";
import { memoize } from "../schema/memoize.ts";
import { compileSchema } from "../schema/validate/compile.ts";
import type { CatalogStore, StoredAction } from "../store/catalog.ts";
import type { Access } from "./auth.ts";
import type { BatchItemError, NewEvent } from "../domain/event.ts";
import { MAX_FAILURE_BYTES } from "../schema/limits.ts";
import { type Failure, shortened, shortenedText } from "../schema/validate/errors.ts";
import type { LoadedAction } from "./compiled-actions.ts";

/** A check with a better message than a pattern has; returns the value to continue with, such as a trimmed name. */
type MemberCheck = (field: string, value: string) => unknown;

/** Compiled when first needed: a command that only reads never pays for them. */
const validatorOf = memoize((schema: InputSchema) => compileSchema(schema));

/**
 * Checks a request's body by its schema.
 * @param checks for members that are strings, or lists of them, done before the schema is applied
 * @throws `invalid`, without the value of a `writeOnly` member or a header
 */
export function readBody<T>(
  schema: InputSchema,
  body: unknown,
  checks: Readonly<Record<string, MemberCheck>> = {},
): T {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidField("body", "must be a JSON object");
  }
  const members = omitUndefined<Record<string, unknown>>({ ...body });
  for (const [name, check] of Object.entries(checks)) {
    const value = members[name];
    if (typeof value === "string") members[name] = check(name, value);
    else if (Array.isArray(value) && schema.properties[name]?.["type"] === "array") {
      members[name] = value.map((item: unknown, index) =>
        typeof item === "string" ? check(`${name}[${index}]`, item) : item,
      );
    }
  }
  const fault = validatorOf(schema).validate(members);
  if (fault === undefined) return members as T;
  const unit =
    IN_MILLISECONDS.test(fault.field) && fault.message.startsWith("must be") ? ", in milliseconds" : "";
  throw invalidField(fault.field, fault.message + unit, isSecret(schema, fault.field) ? null : fault.value);
}

/** `timeout_ms`, `retry_schedule[0]`: who sends `"24h"`, or seconds, should learn what is meant. */
const IN_MILLISECONDS = /(?:_ms|_schedule\[\d+\])$/;

/** Whether a fault is in a member that is never shown, or that people put credentials into. */
function isSecret(schema: InputSchema, field: string): boolean {
  const [member = ""] = field.split(/[.[]/);
  return member === "headers" || schema.properties[member]?.["writeOnly"] === true;
}

/**
 * Checks the parameters of a query.
 * @throws `malformed` for one that is unknown or ill-formed
 */
export function checkQuery<T extends object>(schema: InputSchema, query: T): T {
  if (typeof query !== "object" || query === null || Array.isArray(query)) {
    throw malformedField("query", "must be an object of parameters", query);
  }
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    checkParameter(name, parameterOf(schema, name, value), value);
  }
  return query;
}

/**
 * Each property has a check of its own, so that each parameter is refused in the order of the query, whatever else is
 * wrong.
 */
const parameterCheckOf = memoize(({ format: _format, ...plain }: JsonSchema) =>
  compileSchema({ properties: { value: plain } }),
);

function checkParameter(name: string, property: JsonSchema, value: unknown): void {
  const fault = parameterCheckOf(property).validate({ value });
  if (fault !== undefined) throw malformedField(name, fault.message, value);
  // Times are taken without seconds, too.
  if (property["format"] === undefined || parseIsoTime(String(value)) !== undefined) return;
  const hint = / \d\d:\d\d$/.test(String(value)) ? " (a + in a URL is written %2B)" : "";
  throw malformedField(name, ISO_TIME_EXPECTED + hint, value);
}

/** @throws `malformed` for a parameter that is unknown */
export function parameterOf(schema: InputSchema, name: string, value: unknown): JsonSchema {
  if (Object.hasOwn(schema.properties, name)) return schema.properties[name]!;
  const known = Object.keys(schema.properties);
  const hint = known.length === 0 ? "this takes none" : `known are ${known.join(", ")}`;
  throw malformedField(String(shown(name)), `is not a known parameter; ${hint}`, value);
}

export function checkTime(field: string, value: string): string {
  if (parseIsoTime(value) === undefined) throw invalidField(field, ISO_TIME_EXPECTED, value);
  return value;
}

/** What `details.record` of a `not_found` says is not there. */
type RecordNoun = "action" | "event" | "subscription" | "delivery" | "replay" | "token";

/**
 * No such record, or none that the principal may know of.
 * @param more `field`: the member of the request that names it; `suggestion`: the one that was probably meant
 */
export function notFound(
  record: RecordNoun,
  id: number | string,
  more: { readonly field?: string | undefined; readonly suggestion?: string | undefined } = {},
): EvregError {
  const { field, suggestion } = more;
  const quoted = typeof id === "number" ? id : JSON.stringify(id.slice(0, 128).toWellFormed());
  const value = field === undefined && typeof id === "number" ? undefined : id;
  const details = omitUndefined({ record, field, value, suggestion });
  return new EvregError("not_found", `There is no ${record} ${quoted}.`, details);
}

/** Says which action was probably meant, if the caller may read it. */
export async function missingAction(
  catalog: Pick<CatalogStore, "nearestAction">,
  access: Access,
  name: string,
  field?: string,
): Promise<EvregError> {
  const mayRead = access.allowsSome("read");
  const suggestion = mayRead ? await catalog.nearestAction(name, access.readable()) : undefined;
  return notFound("action", name, { field, suggestion });
}

/** Finds records of one kind for a principal. One that it may not read is as good as not there. */
export function finder<T extends { readonly application: string }, I extends number | string>(
  access: Access,
  record: RecordNoun,
  find: (id: I) => Promise<T | undefined>,
  missing: (id: I) => EvregError | Promise<EvregError> = (id) => notFound(record, id),
): { readonly readable: (id: I) => Promise<T>; readonly writable: (id: I) => Promise<T> } {
  return {
    async readable(id) {
      access.requireSome("read");
      const stored = await find(id);
      if (stored === undefined || !access.allows("read", stored.application)) throw await missing(id);
      return stored;
    },
    async writable(id) {
      access.requireSome("write");
      const stored = existing(await find(id), record, id);
      access.require("write", stored.application);
      return stored;
    },
  };
}

/** @throws `not_found` for `undefined` */
export function existing<T>(stored: T | undefined, record: RecordNoun, id: number | string): T {
  if (stored === undefined) throw notFound(record, id);
  return stored;
}

/** The refusal for an action whose events evreg publishes about itself. */
export function ownAction(name: string, done: "changed" | "published"): EvregError {
  const message = `${name} tells of evreg itself and cannot be ${done} by anybody; it can be read and subscribed to`;
  return invalidField("action", message, name);
}

/** @throws `malformed` unless it is a whole number from 1 */
export function checkId(id: number, field = "id"): number {
  if (Number.isSafeInteger(id) && id >= 1) return id;
  throw malformedField(field, "must be a whole number from 1", id);
}

/** The public part of the record. */
export function actionOf(stored: StoredAction): Action {
  const { version: _v, deprecatedMs: _d, retiredMs: _r, isBuiltIn: _b, ...action } = stored;
  return action;
}

export const RANGE_ORDER = "must be later than from: the range begins with from and ends just before to";

/**
 * The bounds of a time range whose texts have been checked.
 * @throws `malformed` for a range that ends before it begins or holds nothing
 */
export function timeRange({ from, to }: { readonly from?: string; readonly to?: string }): {
  fromMs?: number;
  toMs?: number;
} {
  const [fromMs, toMs] = [from, to].map((text) => (text === undefined ? undefined : parseIsoTime(text)));
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    throw malformedField("to", RANGE_ORDER, to);
  return omitUndefined({ fromMs, toMs });
}

/** Copies an object without its `undefined` members. */
export function omitUndefined<T extends object>(members: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}

/**
 * A list whose records may be large, in pages that do not block the thread.
 * @param read the page of at most `size` that comes after `last`, of which there are `count` so far
 */
export async function* pagesOf<T>(
  size: number,
  read: (last: T | undefined, count: number) => Promise<readonly T[]>,
): AsyncGenerator<readonly T[], void, void> {
  let count = 0;
  let last: T | undefined;
  for (;;) {
    const page = await read(last, count);
    yield page;
    if (page.length < size) return;
    count += page.length;
    last = page.at(-1);
  }
}

export async function allOf<T>(pages: AsyncIterable<readonly T[]>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const page of pages) all.push(...page);
  return all;
}

// What refused events are answered with.

/** Each text and value of a refusal in a batch is cut to so many bytes. */
const BRIEF_BYTES = 256;

/** What publishing to an action that takes no events is refused with, whatever is in them. */
export function takesNoEvents(name: string, { isBuiltIn, successor }: LoadedAction): EvregError {
  if (isBuiltIn) return ownAction(name, "published");
  const instead =
    successor === null
      ? "; who may change it can take that back, or name a successor"
      : `; publish to ${successor} instead`;
  const message = `is retired and takes no events any more${instead}`;
  return new EvregError("gone", `${name} ${message}.`, { field: "action", message, value: name, successor });
}

export function nonConforming({ action }: NewEvent, { others = [], ...first }: Failure): EvregError {
  const { field, message } = first;
  return new EvregError(
    "invalid",
    `The payload does not conform to the schema of ${action}: ${field === "" ? "it" : field} ${message}`,
    { ...first, errors: shownFailures({ ...first, others }) },
  );
}

/** The first, and those after it that fit into one answer. */
export function shownFailures({ others = [], ...first }: Failure): readonly PayloadError[] {
  const failures = [first, ...others];
  let bytes = 1;
  const over = failures.findIndex((failure) => (bytes += jsonBytes(failure) + 1) > MAX_FAILURE_BYTES);
  return over === -1 ? failures : failures.slice(0, Math.max(over, 1));
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

export function keyConflict({ idempotency_key: key }: NewEvent): EvregError {
  const message =
    "was used before in this application, with another action or payload; a new event needs a new key";
  const details = { field: "idempotency_key", message, value: key };
  return new EvregError("conflict", `idempotency_key: ${message}.`, details);
}

export function schemaKeepsChanging(action: string): EvregError {
  return new EvregError(
    "unavailable",
    `The schema of ${action} kept changing while the event was checked against it. Nothing was stored; try again.`,
  );
}

/** The refusals of a batch by the places of its items: of each the first broken rule, in a few hundred bytes. */
export function refusalsIn(results: readonly unknown[]): readonly BatchItemError[] {
  return results.flatMap((failure, index) => (failure instanceof EvregError ? [brief(index, failure)] : []));
}

function brief(index: number, failure: EvregError): BatchItemError {
  const { error, details, code } = failure.body();
  const first = Object.entries(details).filter(([name]) => name !== "errors");
  return {
    index,
    error: shortenedText(error, BRIEF_BYTES),
    details: Object.fromEntries(first.map(([name, value]) => [name, shortened(value, BRIEF_BYTES)])),
    code,
  };
}
