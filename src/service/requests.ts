import { Ajv, type ValidateFunction } from "ajv";
import type { Action } from "../domain/action.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { ISO_TIME_EXPECTED, parseIsoTime } from "../domain/formats.ts";
import {
  type BodySchema,
  malformedField,
  type QueryProperty,
  type QuerySchema,
  shown,
} from "../domain/request.ts";
import { compileSchema, type Validator } from "../schema/validate/compile.ts";
import type { StoredAction } from "../store/catalog.ts";
import type { Access } from "./auth.ts";

/** A check with a better message than a pattern has; answers the value to go on with, such as a trimmed name. */
type MemberCheck = (field: string, value: string) => unknown;

/** Compiled when first needed: a command that only reads never pays for them. */
const validators = new Map<BodySchema, Validator>();

/**
 * Holds a request's body to its schema.
 * @param checks for members that are strings, done before the schema looks at them
 * @returns the members, checked; the caller names their type
 * @throws `invalid` with `{ field, message, value }`, the value of a `writeOnly` member and of a header left out
 */
export function readBody(
  schema: BodySchema,
  body: unknown,
  checks: Readonly<Record<string, MemberCheck>> = {},
): object {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidField("body", "must be a JSON object");
  }
  // A member that is `undefined` is one left out, as it would be once written as JSON.
  const members = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
  for (const [name, check] of Object.entries(checks)) {
    const value = members[name];
    if (typeof value === "string") members[name] = check(name, value);
  }
  const fault = validatorOf(schema).validate(members);
  if (fault === undefined) return members;
  const { field, message, value } = fault;
  throw new EvregError("invalid", `${field}: ${message}`, {
    field,
    message,
    value: isSecret(schema, field) ? null : value,
  });
}

/** Whether a fault is in, or inside, a member that is never to be shown, or that people put credentials into. */
function isSecret(schema: BodySchema, field: string): boolean {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, { readonly writeOnly?: true }>>;
  const [member = ""] = field.split(/[.[]/);
  return member === "headers" || properties[member]?.writeOnly === true;
}

/**
 * The typed values of a query string. Every parameter may be left out, none may come twice.
 * @throws `malformed` with `{ field, message, value }` for a parameter that is unknown, twice there or ill-formed
 */
export function readQuery(schema: QuerySchema, params: URLSearchParams): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  for (const [name, text] of params) {
    const property = propertyOf(schema, name, text);
    if (Object.hasOwn(query, name)) throw malformedField(name, "is given twice", text);
    query[name] = typed(name, property, text);
  }
  return query;
}

/**
 * The same rules for values that are typed already; members that are `undefined` count as left out.
 * @throws `malformed` with `{ field, message, value }`
 */
export function checkQuery<T extends object>(schema: QuerySchema, query: T): T {
  if (typeof query !== "object" || query === null || Array.isArray(query)) {
    throw malformedField("query", "must be an object of parameters", query);
  }
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    const fault = faultOf(propertyOf(schema, name, value), value);
    if (fault !== undefined) throw malformedField(name, fault, value);
  }
  return query;
}

function propertyOf(schema: QuerySchema, name: string, value: unknown): QueryProperty {
  if (Object.hasOwn(schema.properties, name)) return schema.properties[name]!;
  const known = Object.keys(schema.properties);
  const hint = known.length === 0 ? "this takes none" : `known are ${known.join(", ")}`;
  throw malformedField(String(shown(name)), `is not a known parameter; ${hint}`, value);
}

function typed(name: string, property: QueryProperty, text: string): unknown {
  const value = valueOf(property, text);
  const fault = faultOf(property, value);
  if (fault !== undefined) throw malformedField(name, fault, text);
  return value;
}

function valueOf({ type }: QueryProperty, text: string): unknown {
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  // "+1", "1.0", "1e3", "0x1" and " 1" are numbers to JavaScript, and slips here.
  return type === "integer" && /^(?:0|-?[1-9]\d{0,15})$/.test(text) ? Number(text) : text;
}

/** By property, so that each parameter is refused in the order of the query, whatever else is wrong. */
const parameterChecks = new WeakMap<QueryProperty, ValidateFunction>();
let ajv: Ajv | undefined;

/** What is wrong with a typed value, to follow its name in a message. */
function faultOf(property: QueryProperty, value: unknown): string | undefined {
  let check = parameterChecks.get(property);
  if (check === undefined) {
    ajv ??= new Ajv({ allErrors: true, validateSchema: false, formats: { "date-time": isTime } });
    parameterChecks.set(property, (check = ajv.compile(property)));
  }
  if (check(value)) return undefined;
  const keywords = new Set(check.errors!.map(({ keyword }) => keyword));
  const { type, minimum = -Infinity, maximum = Infinity, maxLength, enum: allowed = [] } = property;
  if (type === "integer") {
    const upTo = maximum === Number.MAX_SAFE_INTEGER ? "" : ` to ${maximum}`;
    return `must be a whole number from ${minimum}${upTo}`;
  }
  if (type === "boolean") return "must be true or false";
  if (keywords.has("type")) return "must be a string";
  if (keywords.has("enum")) return `must be ${oneOf(allowed)}`;
  if (keywords.has("format")) {
    return ISO_TIME_EXPECTED + (/ \d\d:\d\d$/.test(String(value)) ? " (a + in a URL is written %2B)" : "");
  }
  if (keywords.has("minLength")) return "must not be empty";
  if (keywords.has("pattern")) return "must not hold the character U+0000";
  return `must have at most ${maxLength} characters`;
}

function isTime(text: string): boolean {
  return parseIsoTime(text) !== undefined;
}

function oneOf(values: readonly string[]): string {
  return values.length === 1 ? values[0]! : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

/** For a member that is a time: the same times are taken everywhere. */
export function checkTime(field: string, value: string): string {
  if (parseIsoTime(value) === undefined) throw invalidField(field, ISO_TIME_EXPECTED, value);
  return value;
}

function validatorOf(schema: BodySchema): Validator {
  let validator = validators.get(schema);
  if (validator === undefined) validators.set(schema, (validator = compileSchema(schema)));
  return validator;
}

/** No such record, or none that the principal may know of. */
export function notFound(what: string, id: number | string, field?: string): EvregError {
  const quoted = typeof id === "number" ? id : JSON.stringify(id.slice(0, 128).toWellFormed());
  return new EvregError(
    "not_found",
    `There is no ${what} ${quoted}.`,
    field === undefined ? {} : { field, value: id },
  );
}

/** A record of one application. */
interface Owned {
  readonly application: string;
}

/** The record, unless it is not there or the principal may not read it: that makes no difference to it. */
export async function readable<T extends Owned, I extends number | string>(
  access: Access,
  what: string,
  id: I,
  find: (id: I) => Promise<T | undefined>,
): Promise<T> {
  access.requireSome("read");
  const found = await find(id);
  if (found === undefined || !access.allows("read", found.application)) throw notFound(what, id);
  return found;
}

/** @throws `not_found`, or `forbidden` for one that the principal may not change */
export async function writable<T extends Owned>(
  access: Access,
  what: string,
  id: number,
  find: (id: number) => Promise<T | undefined>,
): Promise<T> {
  access.requireSome("write");
  const found = existing(await find(id), what, id);
  access.require("write", found.application);
  return found;
}

/** @throws `not_found` for `undefined` */
export function existing<T>(found: T | undefined, what: string, id: number | string): T {
  if (found === undefined) throw notFound(what, id);
  return found;
}

/** For what nobody can do with an action whose events are published by evreg about itself. */
export function ownAction(name: string, done: "changed" | "published"): EvregError {
  return invalidField(
    "action",
    `${name} tells of evreg itself and cannot be ${done} by anybody; it can be read and subscribed to`,
    name,
  );
}

/** @throws `malformed` unless it is a whole number from 1 */
export function checkId(id: number, field = "id"): number {
  if (Number.isSafeInteger(id) && id >= 1) return id;
  throw malformedField(field, "must be a whole number from 1", id);
}

/** The record as it is answered. */
export function actionOf(stored: StoredAction): Action {
  const { actionId: _a, version: _e, deprecatedMs: _d, isBuiltIn: _b, ...action } = stored;
  return action;
}

/**
 * The bounds of a time range whose texts have been checked.
 * @throws `malformed` for a range that ends before it begins or holds nothing
 */
export function timeRange(query: { readonly from?: string; readonly to?: string }): {
  fromMs?: number;
  toMs?: number;
} {
  const fromMs = query.from === undefined ? undefined : parseIsoTime(query.from);
  const toMs = query.to === undefined ? undefined : parseIsoTime(query.to);
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs) {
    throw malformedField(
      "to",
      "must be later than from: the range begins with from and ends just before to",
      query.to,
    );
  }
  return { ...(fromMs === undefined ? {} : { fromMs }), ...(toMs === undefined ? {} : { toMs }) };
}

/** The same object without its `undefined` members. */
export function omitUndefined<T extends object>(members: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}

/**
 * All there is of records that may be large each, read some at a time: what a read comes to is taken over from the store
 * in one go.
 * @param read the page of at most `size` that comes after `last`, of which there are `count` so far
 */
export async function allPages<T>(
  size: number,
  read: (last: T | undefined, count: number) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const all: T[] = [];
  for (;;) {
    const page = await read(all.at(-1), all.length);
    all.push(...page);
    if (page.length < size) return all;
  }
}
