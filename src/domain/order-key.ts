import { hash } from "node:crypto";
import { textOf } from "../json/nodes.ts";
import { valueAt } from "../json/pointed.ts";

// The key of an event in a subscription that is ordered by key: a number for the value at its JSON Pointer. Equal values have
// the same number, however they are written; two others have the same one as good as never, and then only wait for each other.

/** A pointer into a payload: at least one step, `~` and `/` in a name as `~0` and `~1`. */
export const KEY_POINTER = "^(/([^~/]|~[01])*)+$";
/** Characters of a pointer. */
export const KEY_POINTER_LENGTH = 256;

/** Of all events without a value there: an object or a list is none either. */
export const NO_KEY = 0;

export function pointerSteps(pointer: string): readonly string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** @param payload `undefined` for one that cannot be read */
export function orderKeyOf(payload: Uint8Array | undefined, steps: readonly string[]): number {
  const span = payload === undefined ? undefined : valueAt(payload, steps);
  if (payload === undefined || span === undefined) return NO_KEY;
  const first = payload[span.start];
  if (first === 0x7b || first === 0x5b) return NO_KEY;
  return keyOfScalar(textOf(payload, span));
}

/**
 * The value that has this key, as it may be typed: a text as it is, another value as JSON.
 * @returns `undefined` where there is none, or another, at the pointer
 */
export function keyTextOf(payload: Uint8Array, steps: readonly string[], key: number): string | undefined {
  if (key === NO_KEY || orderKeyOf(payload, steps) !== key) return undefined;
  const json = textOf(payload, valueAt(payload, steps)!);
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

/** The keys that somebody may mean who types this: those of the text and, where it is JSON, of that value. */
export function keysOfText(text: string): readonly number[] {
  const asText = keyOfScalar(JSON.stringify(text));
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? [asText] : [asText, keyOfScalar(text.trim())];
  } catch {
    return [asText];
  }
}

/** @param json of a string, a number, `true`, `false` or `null` */
function keyOfScalar(json: string): number {
  const digest = hash("sha256", canonical(json), "buffer");
  // 53 bits: all that is exact everywhere.
  const key = (digest.readUInt32BE(0) % 2 ** 21) * 2 ** 32 + digest.readUInt32BE(4);
  return key === NO_KEY ? 1 : key;
}

function canonical(json: string): string {
  if (json.startsWith('"')) return `"${JSON.parse(json) as string}`;
  return /^[tfn]/.test(json) ? json : canonicalNumber(json);
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Longer numbers are taken as they are written: they could take long to compare. */
const MAX_NUMBER_LENGTH = 400;

/** `1`, `1.0` and `10e-1` are the same; large ones are compared digit by digit, not rounded. */
function canonicalNumber(json: string): string {
  if (json.length > MAX_NUMBER_LENGTH) return json;
  const [, sign, whole = "", fraction = "", exponent = "0"] = NUMBER.exec(json) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return "0";
  const significant = digits.replace(/0+$/, "");
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${sign}${significant}e${power}`;
}
