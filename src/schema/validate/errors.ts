import { VALUE_BYTES } from "../limits.ts";

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

/** What a keyword requires, by its value: a part of a sentence that begins with the field. */
const REQUIREMENTS: Readonly<Record<string, (limit: unknown) => string>> = {
  type: (type) => `must be ${typeWords(type)}`,
  enum: (values) => `must be one of ${listed(values as readonly unknown[])}`,
  const: (value) => `must be ${quoted(value)}`,
  minLength: (limit) => `must have at least ${counted(limit, "character")}`,
  maxLength: (limit) => `must have at most ${counted(limit, "character")}`,
  pattern: (pattern) => `must match the pattern ${String(pattern)}`,
  format: (format) => `must be ${FORMAT_WORDS[String(format)] ?? `of the format ${String(format)}`}`,
  minimum: (limit) => `must be at least ${String(limit)}`,
  maximum: (limit) => `must be at most ${String(limit)}`,
  exclusiveMinimum: (limit) => `must be greater than ${String(limit)}`,
  exclusiveMaximum: (limit) => `must be less than ${String(limit)}`,
  multipleOf: (factor) => `must be a multiple of ${String(factor)}`,
  minItems: (limit) => `must have at least ${counted(limit, "item")}`,
  maxItems: (limit) => `must have at most ${counted(limit, "item")}`,
  minProperties: (limit) => `must have at least ${counted(limit, "property", "properties")}`,
  maxProperties: (limit) => `must have at most ${counted(limit, "property", "properties")}`,
};

/** `undefined` for keywords about a member, an item or a schema inside, and where there is no value. */
export function requirementOf(keyword: string, limit: unknown): string | undefined {
  return limit === undefined ? undefined : REQUIREMENTS[keyword]?.(limit);
}

function typeWords(type: unknown): string {
  const words = [type].flat().map((name) => TYPE_WORDS[String(name)] ?? String(name));
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function counted(limit: unknown, one: string, many = `${one}s`): string {
  return `${String(limit)} ${limit === 1 ? one : many}`;
}

function listed(all: readonly unknown[]): string {
  if (all.length === 0) return "the values listed, of which there are none";
  const shown = all.slice(0, 10).map(quoted).join(", ");
  return all.length > 10 ? `${shown} and ${all.length - 10} others` : shown;
}

export function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > 64 ? `${text.slice(0, 64).toWellFormed()}…` : text;
}
