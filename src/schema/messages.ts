import type { ErrorObject } from "ajv";

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
export function messageOf(error: ErrorObject, value: unknown): string {
  const params = error.params as Params;
  if (typeof value === "number" && !Number.isFinite(value)) return "must be a number that a double can hold";
  return MESSAGES[error.keyword]?.(params) ?? "does not conform to the schema";
}

/** What a keyword of a schema asks for, in the same words; `undefined` for those that hold schemas. */
export function demandOf(keyword: string, value: unknown): string | undefined {
  const limits = { limit: value, allowedValues: value, allowedValue: value };
  return value === undefined || !DEMANDS.has(keyword)
    ? undefined
    : MESSAGES[keyword]?.({ ...limits, [keyword]: value });
}

const DEMANDS: ReadonlySet<string> = new Set([
  "type",
  "enum",
  "const",
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
]);

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
