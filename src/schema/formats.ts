import type { Format } from "ajv";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { spend } from "./budget.ts";
import { isHostName, isIdnHostName } from "./format/host-name.ts";
import { isIdnMailbox, isMailbox } from "./format/mailbox.ts";
import { isDate, isDateTime, isIsoDateTime, isIsoTime, isTime } from "./format/time.ts";
import { isIri, isIriReference, isUri, isUriReference, isUriTemplate, isUrl } from "./format/uri.ts";

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

type Check = (text: string) => boolean;

/** Formats whose checks of ajv-formats miss the standard or take long on some text, and those it has none of. */
const OWN: Readonly<Record<string, Check>> = {
  date: isDate,
  time: isTime,
  "date-time": isDateTime,
  "iso-time": isIsoTime,
  "iso-date-time": isIsoDateTime,
  uri: isUri,
  "uri-reference": isUriReference,
  "uri-template": isUriTemplate,
  url: isUrl,
  iri: isIri,
  "iri-reference": isIriReference,
  email: isMailbox,
  "idn-email": isIdnMailbox,
  hostname: isHostName,
  "idn-hostname": isIdnHostName,
  // Its own expression is for one of several lines.
  byte: (text) => text.length % 4 === 0 && BASE64.test(text),
};

/** Those of ajv-formats that are right. */
const TAKEN = [
  "duration",
  "ipv4",
  "ipv6",
  "regex",
  "uuid",
  "json-pointer",
  "json-pointer-uri-fragment",
  "relative-json-pointer",
] as const;

/** Least and most of the formats of whole numbers. The largest of 64 bits is 2 ** 63 when it has been read into a double. */
export const INTEGER_FORMATS: ReadonlyMap<string, readonly [least: number, most: number]> = new Map([
  ["int32", [-(2 ** 31), 2 ** 31 - 1]],
  ["int64", [-(2 ** 63), 2 ** 63]],
]);

/** The formats that are checked, strictly, each counting its steps. */
export const FORMATS: Readonly<Record<string, Format>> = Object.fromEntries<Format>([
  ...TAKEN.map((name) => [name, counting(checkOf(fullFormats[name]))] as const),
  ...Object.entries(OWN).map(([name, check]) => [name, counting(check)] as const),
  ...[...INTEGER_FORMATS].map(([name, range]) => [name, within(range)] as const),
]);

export function isCheckedFormat(name: string): boolean {
  return Object.hasOwn(FORMATS, name);
}

function within([least, most]: readonly [number, number]): Format {
  return {
    type: "number",
    validate: (value) => Number.isInteger(value) && value >= least && value <= most,
  };
}

const STEPS_PER_CHECK = 5;

/** All checks take time with the length of the text and no more. */
function counting(check: Check): Format {
  return (text: string) => {
    spend(STEPS_PER_CHECK + text.length);
    return check(text);
  };
}

function checkOf(format: Format): Check {
  const check = typeof format === "object" && !(format instanceof RegExp) ? format.validate : format;
  if (check instanceof RegExp) return (text) => check.test(text);
  if (typeof check === "function") return check as Check;
  throw new Error("ajv-formats has a format of an unknown shape.");
}
