import type { ErrorObject } from "ajv";
import { isAssertion } from "../keywords.ts";
import { VALUE_BYTES } from "../limits.ts";
import { type FieldPath, pathOf, valueAt } from "../pointers.ts";

/** Why a value does not conform. Each part is cut, as it comes from the value and the schema. */
export interface Failure {
  /** Where, from the root of the value: `address.zip`, `items[2].sku`; `""` is the root itself. See `fieldName`. */
  readonly field: string;
  /** The rest of a sentence that begins with the field: `must be a string`, `is required`; at most 1 KiB. */
  readonly message: string;
  /** The offending value, `null` when it is missing; one of more than 1 KiB is cut (see `shortened`). */
  readonly value: unknown;
  /** What else does not conform, where it was asked for; at most `MAX_FAILURES` with this one. */
  readonly others?: readonly Failure[];
}

/**
 * A value to be sent back: one of more than `maxBytes` of JSON becomes the beginning of its JSON, as a string that ends in
 * an ellipsis. A number too large for a double has become infinite, which JSON cannot hold, so `1e999` stands for it.
 */
export function shortened(value: unknown, maxBytes = VALUE_BYTES): unknown {
  if (value === undefined) return null;
  if (typeof value === "number" && !Number.isFinite(value)) return value > 0 ? "1e999" : "-1e999";
  if (typeof value !== "object" && typeof value !== "string") return value;
  if (typeof value === "string" && value.length > maxBytes) return cut(value, maxBytes);
  const text = JSON.stringify(value);
  if (Buffer.byteLength(text) <= maxBytes) return value;
  return cut(typeof value === "string" ? value : text, maxBytes);
}

/** A text of at most so many bytes, with an ellipsis in place of the rest. */
export function shortenedText(text: string, maxBytes = VALUE_BYTES): string {
  return text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes ? text : cut(text, maxBytes);
}

function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text.slice(0, maxBytes).toWellFormed());
  let end = Math.min(bytes.length, maxBytes - 3);
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return `${bytes.toString("utf8", 0, end)}…`;
}

export interface Fault {
  readonly path: FieldPath;
  readonly message: string;
  readonly value: unknown;
}

/** What Ajv found wrong with a value, when it stopped at the first failure. */
export function faultOf(errors: readonly ErrorObject[], value: unknown): Fault {
  return faultIn(primaryError(errors), value);
}

export function faultIn(error: ErrorObject, value: unknown): Fault {
  const property = propertyAtFault(error);
  const path = [...pathOf(error.instancePath, value), ...(property === undefined ? [] : [property])];
  const found = valueAt(path, value);
  return { path, message: messageOf(error, property === undefined ? found : undefined), value: found };
}

/**
 * The error to report when Ajv stopped at the first failure. The last is of the keyword that failed; those before it are of
 * the branches of an `anyOf`, `oneOf` or `if`. The intended branch is probably one whose type and kind fit, such as
 * `kind: {const: "circle"}`, and of these the one that got deepest into the value, with the fewest errors.
 */
export function primaryError(errors: readonly ErrorObject[]): ErrorObject {
  const last = errors.at(-1)!;
  if (last.keyword === "if") return errors.at(-2) ?? last;
  if (last.keyword !== "anyOf" && last.keyword !== "oneOf") return last;
  const root = depthOf(last);
  const start = `${last.schemaPath}/`;
  // Errors behind a `$ref` of Ajv's own have the path of what it refers to: each is a branch then.
  const branches = Map.groupBy<unknown, ErrorObject>(errors.slice(0, -1), (error) => {
    const { schemaPath } = error;
    return schemaPath.startsWith(start) ? Number.parseInt(schemaPath.slice(start.length), 10) : error;
  });
  const ranked = [...branches.values()].map((inside) => branchOf(primaryErrors(inside), root));
  const misfit = Math.min(...ranked.map((branch) => branch.misfit));
  const fitting = ranked.filter((branch) => branch.misfit === misfit);
  if (misfit === MISFIT.type) {
    const types = new Set(fitting.flatMap(({ error }) => (error.params as { type: string | string[] }).type));
    return { ...fitting[0]!.error, params: { type: [...types] } };
  }
  if (misfit === MISFIT.kind && fitting.length > 1) {
    const { instancePath } = fitting[0]!.error;
    if (fitting.every(({ error }) => error.instancePath === instancePath)) {
      const allowedValues = new Set(fitting.flatMap(({ error }) => valuesAllowed(error)));
      return { ...fitting[0]!.error, keyword: "enum", params: { allowedValues: [...allowedValues] } };
    }
  }
  const [best, second] = fitting.toSorted((one, other) => other.depth - one.depth || one.count - other.count);
  if (best === undefined || (best.depth === root && second !== undefined)) return last;
  return best.error;
}

/** How a branch is not the intended one: its type is another, or its `kind`. */
const MISFIT = { none: 0, kind: 1, type: 2 } as const;

interface Branch {
  readonly misfit: number;
  readonly error: ErrorObject;
  readonly depth: number;
  readonly count: number;
}

function branchOf(errors: readonly ErrorObject[], root: number): Branch {
  const misfits = errors.map((error) => misfitOf(error, root));
  const misfit = Math.max(...misfits);
  const depths = errors.map(depthOf);
  const depth = Math.max(...depths);
  const at = misfit === MISFIT.none ? depths.indexOf(depth) : misfits.indexOf(misfit);
  return { misfit, error: errors[at]!, depth, count: errors.length };
}

/** The members of a value tell of which kind it is. */
function misfitOf(error: ErrorObject, root: number): number {
  const depth = depthOf(error);
  if (error.keyword === "type" && depth === root) return MISFIT.type;
  return (error.keyword === "const" || error.keyword === "enum") && depth === root + 1
    ? MISFIT.kind
    : MISFIT.none;
}

function valuesAllowed({ keyword, params }: ErrorObject): readonly unknown[] {
  const { allowedValue, allowedValues } = params as { allowedValue?: unknown; allowedValues?: unknown[] };
  return keyword === "const" ? [allowedValue] : (allowedValues ?? []);
}

/** The errors to report when Ajv looked for all: one for each failed keyword outside of branches. */
export function primaryErrors(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const governing: ErrorObject[] = [];
  for (const error of errors) {
    const branches = BRANCHES[error.keyword];
    if (branches === undefined) {
      governing.push(error);
      continue;
    }
    // The errors of its branches come right before it.
    const inside = branches.map((step) => `${error.schemaPath.slice(0, -error.keyword.length)}${step}/`);
    let first = governing.length;
    while (first > 0 && isWithin(governing[first - 1]!, error.instancePath, inside)) first -= 1;
    const failed = governing.splice(first);
    // Of an `if`, all errors of the branch taken count.
    if (error.keyword === "if" && failed.length > 0) governing.push(...failed);
    else governing.push({ ...primaryError([...failed, error]), schemaPath: error.schemaPath });
  }
  return governing;
}

const BRANCHES: Readonly<Record<string, readonly string[]>> = {
  anyOf: ["anyOf"],
  oneOf: ["oneOf"],
  propertyNames: ["propertyNames"],
  if: ["then", "else"],
};

function isWithin(error: ErrorObject, place: string, inside: readonly string[]): boolean {
  return error.instancePath.startsWith(place) && inside.some((path) => error.schemaPath.startsWith(path));
}

function depthOf(error: ErrorObject): number {
  return error.instancePath.split("/").length + (propertyAtFault(error) === undefined ? 0 : 1);
}

/** The missing or unknown property that an error is about, if it is about one. */
function propertyAtFault(error: ErrorObject): string | undefined {
  const params = error.params as Record<string, unknown>;
  const name =
    params["missingProperty"] ?? params["additionalProperty"] ?? params["propertyName"] ?? error.propertyName;
  return typeof name === "string" ? name : undefined;
}

type Params = Readonly<Record<string, unknown>>;

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  integer: "an integer",
  boolean: "true or false",
  object: "an object",
  array: "a list",
  null: "null",
};

const FORMAT_WORDS: Readonly<Record<string, string>> = {
  email: "an email address",
  uuid: "a UUID",
  "date-time": "a date and time with a time zone, such as 2026-01-31T12:00:00Z",
  date: "a date, such as 2026-01-31",
  time: "a time with a time zone, such as 12:00:00Z",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
  hostname: "a host name",
  uri: "an absolute URI",
  "uri-reference": "a URI or a relative reference",
  "uri-template": "a URI template",
  "json-pointer": "a JSON pointer",
  "relative-json-pointer": "a relative JSON pointer",
  regex: "a regular expression",
};

const MESSAGES: Readonly<Record<string, (params: Params) => string>> = {
  type: ({ type }) => `must be ${typeWords(type)}`,
  required: () => "is required",
  dependencies: ({ property }) => `is required when ${quoted(property)} is present`,
  additionalProperties: () => "is not a known property",
  propertyNames: () => "is not a name a property may have here",
  "false schema": () => "is not allowed",
  enum: ({ allowedValues }) => `must be one of ${listed(allowedValues)}`,
  const: ({ allowedValue }) => `must be ${quoted(allowedValue)}`,
  minLength: ({ limit }) => `must have at least ${counted(limit, "character")}`,
  maxLength: ({ limit }) => `must have at most ${counted(limit, "character")}`,
  pattern: ({ pattern }) => `must match the pattern ${String(pattern)}`,
  format: ({ format }) => `must be ${FORMAT_WORDS[String(format)] ?? `of the format ${String(format)}`}`,
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  exclusiveMinimum: ({ limit }) => `must be greater than ${String(limit)}`,
  exclusiveMaximum: ({ limit }) => `must be less than ${String(limit)}`,
  multipleOf: ({ multipleOf }) => `must be a multiple of ${String(multipleOf)}`,
  minItems: ({ limit }) => `must have at least ${counted(limit, "item")}`,
  maxItems: ({ limit }) => `must have at most ${counted(limit, "item")}`,
  additionalItems: ({ limit }) => `must have at most ${counted(limit, "item")}`,
  uniqueItems: ({ i, j }) => `must not hold the same item twice (items ${String(i)} and ${String(j)})`,
  contains: () => "must hold at least one item of the kind asked for",
  minProperties: ({ limit }) => `must have at least ${counted(limit, "property", "properties")}`,
  maxProperties: ({ limit }) => `must have at most ${counted(limit, "property", "properties")}`,
  not: () => "must not be of this kind",
  anyOf: () => "must match at least one of the allowed forms",
  oneOf: ({ passingSchemas }) =>
    passingSchemas === null
      ? "must match one of the allowed forms"
      : "must match only one of the allowed forms, but matches several",
};

/** A part of a sentence that begins with the field: `must be a string`. */
function messageOf(error: ErrorObject, value: unknown): string {
  const params = error.params as Params;
  if (typeof value === "number" && !Number.isFinite(value)) return "must be a number that a double can hold";
  return MESSAGES[error.keyword]?.(params) ?? "does not conform to the schema";
}

/** What a keyword requires, in the same words; `undefined` for those about a member, an item or a schema inside. */
export function requirementOf(keyword: string, value: unknown): string | undefined {
  if (value === undefined || !isAssertion(keyword)) return undefined;
  if (keyword === "required" || keyword === "uniqueItems") return undefined;
  const limits = { limit: value, allowedValues: value, allowedValue: value };
  return MESSAGES[keyword]?.({ ...limits, [keyword]: value });
}

function typeWords(type: unknown): string {
  const types = Array.isArray(type) ? (type as unknown[]) : String(type).split(",");
  const words = types.map((name) => TYPE_WORDS[String(name)] ?? String(name));
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function counted(limit: unknown, one: string, many = `${one}s`): string {
  return `${String(limit)} ${limit === 1 ? one : many}`;
}

function listed(values: unknown): string {
  const all = Array.isArray(values) ? (values as unknown[]) : [values];
  if (all.length === 0) return "the values listed, of which there are none";
  const shown = all.slice(0, 10).map(quoted).join(", ");
  return all.length > 10 ? `${shown} and ${all.length - 10} others` : shown;
}

function quoted(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 64 ? `${text.slice(0, 64).toWellFormed()}…` : text;
}
