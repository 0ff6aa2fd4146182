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

/** The formats that are checked, strictly, each counting its steps. */
export const FORMATS: Readonly<Record<string, Format>> = Object.fromEntries(
  Object.entries(fullFormats)
    .filter(([name]) => !UNCHECKED.has(name))
    .map(([name, format]) => [name, counting(name, format)]),
);

export function isCheckedFormat(name: string): boolean {
  return Object.hasOwn(FORMATS, name);
}

function counting(name: string, format: Format): Format {
  if (typeof format === "object" && !(format instanceof RegExp) && format.type === "number") return format;
  const check = name === "date-time" ? dateTimeCheck(checkOf(format)) : checkOf(format);
  const quadratic = QUADRATIC_FORMATS.has(name);
  return (text: string) => {
    spend(1 + (quadratic ? (text.length * text.length) >> 5 : text.length));
    return check(text);
  };
}

function dateTimeCheck(anyForm: (text: string) => boolean): (text: string) => boolean {
  return (text) => USUAL_DATE_TIME.test(text) || anyForm(text);
}

function checkOf(format: Format): (text: string) => boolean {
  const check = typeof format === "object" && !(format instanceof RegExp) ? format.validate : format;
  if (check instanceof RegExp) return (text) => check.test(text);
  if (typeof check === "function") return check as (text: string) => boolean;
  throw new Error("ajv-formats has a format of an unknown shape.");
}
