import type { Format } from "ajv";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { nearest } from "../../domain/words/nearest.ts";
import { spend } from "../limits.ts";
import { NUMBER, TYPE } from "./values.ts";

/** `full-time` and `date-time` of RFC 3339. ajv-formats also takes an hour 24, a space between, and an offset without minutes. */
const TIME = /^(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:[zZ]|[+-]\d\d:\d\d)$/;
const DATE_TIME = new RegExp(TIME.source.replace("^", String.raw`^\d{4}-\d\d-\d\d[tT]`));
/** Days that exist in every month, and times as programs write them: that takes a tenth of the whole check. */
const USUAL_DATE_TIME =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Characters of the longest name, as it goes over the wire. */
const MAX_NAME = 253;
const LABEL = /[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?/;
const NAME = new RegExp(`^${LABEL.source}(?:\\.${LABEL.source})*$`);

/** A name of RFC 1123. */
function isHostName(text: string): boolean {
  return text.length <= MAX_NAME && NAME.test(text);
}

const IPV4 = fullFormats.ipv4 as RegExp;
const IPV6 = fullFormats.ipv6 as RegExp;
/** What the part of a mailbox before the @ may not have, bare and in quotes. */
const NOT_BARE = /[^A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]|^\.|\.\.|\.$|^$/;
const NOT_QUOTED = /[^ !#-[\]-~]/;

/** A mailbox of RFC 5321. */
function isMailbox(text: string): boolean {
  const at = text.lastIndexOf("@");
  const local = text.slice(0, Math.max(at, 0));
  const isQuoted = local.length > 1 && local.startsWith('"') && local.endsWith('"');
  // A backslash may precede any printable ASCII character.
  const isFaulty = isQuoted
    ? NOT_QUOTED.test(local.slice(1, -1).replaceAll(/\\[ -~]/g, ""))
    : NOT_BARE.test(local);
  if (isFaulty) return false;
  const domain = text.slice(at + 1);
  if (!domain.startsWith("[") || !domain.endsWith("]")) return isHostName(domain);
  const address = domain.slice(1, -1);
  return IPV4.test(address) || (/^ipv6:/i.test(address) && IPV6.test(address.slice(5)));
}

/** An address on the web, in linear time, which the expression of ajv-formats does not take. */
const URL_OF_WEB = /^(?:https?|ftp):\/\/[^\s/]{1,320}(?:\/\S*)?$/iu;

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

type FormatCheck = (text: string) => boolean;

/** Formats that ajv-formats checks wrongly or slowly, or not at all. */
const OWN: Readonly<Record<string, FormatCheck>> = {
  time: (text) => TIME.test(text) && checkOf(fullFormats.time)(text),
  "date-time": (text) =>
    USUAL_DATE_TIME.test(text) || (DATE_TIME.test(text) && checkOf(fullFormats["date-time"])(text)),
  url: (text) => URL_OF_WEB.test(text),
  email: isMailbox,
  hostname: isHostName,
  // Its own expression is for one of several lines.
  byte: (text) => text.length % 4 === 0 && BASE64.test(text),
};

/** Formats that ajv-formats checks right. */
const TAKEN = [
  "date",
  "iso-time",
  "iso-date-time",
  "duration",
  "uri",
  "uri-reference",
  "uri-template",
  "ipv4",
  "ipv6",
  "regex",
  "uuid",
  "json-pointer",
  "json-pointer-uri-fragment",
  "relative-json-pointer",
] as const;

/** Minimum and maximum of the integer formats. The largest of 64 bits is 2 ** 63 once it has been parsed to a double. */
export const INTEGER_FORMATS: ReadonlyMap<string, readonly [min: number, max: number]> = new Map([
  ["int32", [-(2 ** 31), 2 ** 31 - 1]],
  ["int64", [-(2 ** 63), 2 ** 63]],
]);

/** As Ajv takes them: of texts, and of numbers. */
type CheckedFormat = FormatCheck | { readonly type: "number"; readonly validate: (value: number) => boolean };

/** The formats that are checked, strictly, each counting its steps. */
export const FORMATS: Readonly<Record<string, CheckedFormat>> = Object.fromEntries<CheckedFormat>([
  ...TAKEN.map((name) => [name, counting(checkOf(fullFormats[name]))] as const),
  ...Object.entries(OWN).map(([name, check]) => [name, counting(check)] as const),
  ...[...INTEGER_FORMATS].map(([name, [min, max]]) => {
    const validate = (value: number) => Number.isInteger(value) && value >= min && value <= max;
    return [name, { type: "number", validate }] as const;
  }),
]);

/** The types of the values that a format is about, as bits. */
export function typesOfFormat(name: string): number {
  return INTEGER_FORMATS.has(name) ? NUMBER : TYPE.string;
}

export function isCheckedFormat(name: string): boolean {
  return Object.hasOwn(FORMATS, name);
}

/** The known format that a misspelt one probably stands for. */
export function closestFormat(name: string): string | undefined {
  return nearest(name, Object.keys(FORMATS));
}

const STEPS_PER_CHECK = 5;

/** All checks take time with the length of the text. */
function counting(check: FormatCheck): FormatCheck {
  return (text: string) => {
    spend(STEPS_PER_CHECK + text.length);
    return check(text);
  };
}

function checkOf(format: Format): FormatCheck {
  const check = typeof format === "object" && !(format instanceof RegExp) ? format.validate : format;
  if (check instanceof RegExp) return (text) => check.test(text);
  if (typeof check === "function") return check as FormatCheck;
  throw new Error("ajv-formats has a format of an unknown shape.");
}
