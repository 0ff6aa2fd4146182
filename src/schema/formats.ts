import type { Format } from "ajv";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { spend } from "./budget.ts";

/** `url` of ajv-formats backtracks: its time grows with the square of the length, so its steps do too. */
const QUADRATIC_FORMATS = new Set(["url"]);

/** Formats of draft-07 that nothing here checks, and OpenAPI's that check nothing by design. */
const UNCHECKED = new Set(["password", "binary", "float", "double"]);

/**
 * Times as programs write them, with days that their months have. Telling those by one expression takes a quarter of what
 * ajv-formats' way takes, which the others (`t`, a leap day, a leap second) go on to.
 */
const USUAL_DATE_TIME =
  /^\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** An offset as RFC 3339 has it; ajv-formats takes ISO 8601's `+01` and `+0100` as well. */
const RFC_3339_OFFSET = /(?:[zZ]|[+-]\d\d:\d\d)$/;
/** What may stand after the ten characters of a date; ajv-formats takes line breaks and tabs as well. */
const T = /^[^]{10}[tT]/;
const T_OR_SPACE = /^[^]{10}[tT ]/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

type Check = (text: string) => boolean;

/** What the checks of ajv-formats let through that the formats do not allow. */
const STRICTER: Readonly<Record<string, (lax: Check) => Check>> = {
  time: (lax) => (text) => RFC_3339_OFFSET.test(text) && lax(text),
  "date-time": (lax) => (text) =>
    USUAL_DATE_TIME.test(text) || (T.test(text) && RFC_3339_OFFSET.test(text) && lax(text)),
  "iso-date-time": (lax) => (text) => T_OR_SPACE.test(text) && lax(text),
  // Its own expression is for one of several lines.
  byte: () => (text) => text.length % 4 === 0 && BASE64.test(text),
};

/** Least and most of the formats of whole numbers. The largest of 64 bits is 2 ** 63 when it has been read into a double. */
export const INTEGER_FORMATS: ReadonlyMap<string, readonly [least: number, most: number]> = new Map([
  ["int32", [-(2 ** 31), 2 ** 31 - 1]],
  ["int64", [-(2 ** 63), 2 ** 63]],
]);

/** The formats that are checked, strictly, each counting its steps. */
export const FORMATS: Readonly<Record<string, Format>> = Object.fromEntries(
  Object.entries(fullFormats)
    .filter(([name]) => !UNCHECKED.has(name))
    .map(([name, format]) => [name, integerFormat(name) ?? counting(name, format)]),
);

export function isCheckedFormat(name: string): boolean {
  return Object.hasOwn(FORMATS, name);
}

function integerFormat(name: string): Format | undefined {
  const range = INTEGER_FORMATS.get(name);
  if (range === undefined) return undefined;
  const [least, most] = range;
  return {
    type: "number",
    validate: (value) => Number.isInteger(value) && value >= least && value <= most,
  };
}

function counting(name: string, format: Format): Format {
  const lax = checkOf(format);
  const check = STRICTER[name]?.(lax) ?? lax;
  const quadratic = QUADRATIC_FORMATS.has(name);
  return (text: string) => {
    spend(1 + (quadratic ? (text.length * text.length) >> 5 : text.length));
    return check(text);
  };
}

function checkOf(format: Format): Check {
  const check = typeof format === "object" && !(format instanceof RegExp) ? format.validate : format;
  if (check instanceof RegExp) return (text) => check.test(text);
  if (typeof check === "function") return check as Check;
  throw new Error("ajv-formats has a format of an unknown shape.");
}
