import { EvregError } from "./error.ts";
import { ISO_TIME_EXPECTED, parseIsoTime } from "./formats.ts";
import { LABEL_PATTERN, NAME_LENGTH } from "./names.ts";

/** Of any text: the store could not keep what comes behind a NUL. */
export const NO_NUL = "^[^\\u0000]*$";

/** One query parameter, as a JSON Schema that OpenAPI 3.1 takes as it is. */
interface QueryProperty {
  readonly type: "string" | "integer" | "boolean";
  readonly format?: "date-time";
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** Told only: what is held to it is the character U+0000, which no text has. */
  readonly pattern?: typeof NO_NUL;
  readonly default?: unknown;
  readonly description?: string;
  readonly examples?: readonly unknown[];
}

/** The parameters of one route: a flat object schema. */
export interface QuerySchema {
  readonly type: "object";
  readonly title?: string;
  readonly properties: Readonly<Record<string, QueryProperty>>;
  readonly additionalProperties: false;
}

/** As much of a refused value as is sent back. */
const SHOWN_CHARACTERS = 100;

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

/** A refused query parameter. */
export function malformedField(field: string, message: string, value: unknown): EvregError {
  return new EvregError("malformed", `${field}: ${message}`, { field, message, value: shown(value) });
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

/** What is wrong with a typed value, to follow its name in a message. */
function faultOf(property: QueryProperty, value: unknown): string | undefined {
  switch (property.type) {
    case "boolean":
      return typeof value === "boolean" ? undefined : "must be true or false";
    case "integer":
      return integerFault(property, value);
    case "string":
      return stringFault(property, value);
    default:
      return property.type satisfies never;
  }
}

function integerFault(property: QueryProperty, value: unknown): string | undefined {
  const { minimum = -Infinity, maximum = Infinity } = property;
  if (Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum) {
    return undefined;
  }
  const upTo = maximum === Number.MAX_SAFE_INTEGER ? "" : ` to ${maximum}`;
  return `must be a whole number from ${minimum}${upTo}`;
}

function stringFault(property: QueryProperty, value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a string";
  const { enum: allowed, format, minLength = 0, maxLength = Infinity } = property;
  if (allowed !== undefined && !allowed.includes(value)) return `must be ${oneOf(allowed)}`;
  if (format === "date-time") {
    if (parseIsoTime(value) !== undefined) return undefined;
    return ISO_TIME_EXPECTED + (/ \d\d:\d\d$/.test(value) ? " (a + in a URL is written %2B)" : "");
  }
  if (value.length < minLength) return "must not be empty";
  if (value.includes("\0")) return "must not hold the character U+0000";
  // A character outside the basic plane has two UTF-16 units; counting starts only where that can matter.
  if (value.length <= maxLength) return undefined;
  const fits = value.length <= 2 * maxLength && Array.from(value).length <= maxLength;
  return fits ? undefined : `must have at most ${maxLength} characters`;
}

function oneOf(values: readonly string[]): string {
  return values.length === 1 ? values[0]! : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

function shown(value: unknown): unknown {
  if (typeof value === "string" && value.length > SHOWN_CHARACTERS) {
    return `${value.slice(0, SHOWN_CHARACTERS).toWellFormed()}…`;
  }
  return typeof value === "object" ? null : (value ?? null);
}

/**
 * What every request may hold: the schemas that check bodies and queries, and that the OpenAPI document publishes.
 * Unknown members are refused everywhere, as a typo would otherwise be lost without a word.
 */
export type BodySchema = Readonly<Record<string, unknown>>;

export const actionName = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  pattern: "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$",
  description: "Segments of letters, digits, _ and - joined by single dots.",
  examples: ["user.created", "user.created.v2"],
} as const;

export const label = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  pattern: `^${LABEL_PATTERN}$`,
} as const;

export const application = {
  ...label,
  description: "Name of the owning application: printable characters, trimmed.",
  examples: ["billing"],
} as const;

export const byAction: QueryProperty = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  pattern: NO_NUL,
  description: "Only of this action.",
};

export const byApplication: QueryProperty = {
  type: "string",
  minLength: 1,
  maxLength: NAME_LENGTH,
  pattern: NO_NUL,
  description: "Only of this application.",
};

export const from: QueryProperty = {
  type: "string",
  format: "date-time",
  description: "Start of the time range, itself included.",
  examples: ["2026-01-31T00:00:00Z"],
};

export const to: QueryProperty = {
  type: "string",
  format: "date-time",
  description: "End of the time range, itself not included.",
  examples: ["2026-02-01T00:00:00Z"],
};

export const rowid: QueryProperty = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER };

export function querySchema(title: string, properties: Readonly<Record<string, QueryProperty>>): QuerySchema {
  return { title, type: "object", properties, additionalProperties: false };
}
