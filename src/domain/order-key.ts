import { hash } from "node:crypto";
import { childOf } from "../json/field-path.ts";
import { valueOf } from "../json/parse.ts";

// The key of an event in an ordered subscription: a number for the value at its JSON Pointer. Equal values have the same number,
// however they are written; two others have the same one as good as never, and then only wait for each other. Without a pointer
// all events have one key.

/** The key of all events without a value there; an object or a list is none either. */
export const NO_KEY = 0;

/** The pointer of a subscription whose deliveries have one order: it has no steps, and all events have one key. */
export const WHOLE_ORDER = "";
export const WHOLE_KEY = Number.MAX_SAFE_INTEGER;

type Scalar = string | number | boolean | null;

/**
 * Answers the keys of an event by the steps of their pointers. The payload is read once for all of them, and not at all where
 * none has steps.
 * @param payload `undefined` for one that cannot be read
 */
export function orderKeysOf(
  payload: Uint8Array | undefined,
  pointers: readonly (readonly string[])[],
): readonly number[] {
  const isRead = payload !== undefined && pointers.some((steps) => steps.length > 0);
  const whole = isRead ? valueOf(payload, { start: 0, end: payload.length }) : undefined;
  return pointers.map((steps) => {
    if (steps.length === 0) return WHOLE_KEY;
    const value = scalarAt(whole, steps);
    return value === undefined ? NO_KEY : keyOfScalar(value);
  });
}

/** The keys that somebody may mean who types this: those of the text and, where it is JSON, of that value. */
export function keysOfText(text: string): readonly number[] {
  const asText = keyOfScalar(text);
  try {
    const value: unknown = JSON.parse(text);
    return isScalar(value) ? [asText, keyOfScalar(value)] : [asText];
  } catch {
    return [asText];
  }
}

/** The value that the steps of a JSON Pointer lead to; `undefined` where they lead nowhere, or to an object or a list. */
function scalarAt(whole: unknown, steps: readonly string[]): Scalar | undefined {
  let value = whole;
  for (const step of steps) {
    if (Array.isArray(value) && !LIST_INDEX.test(step)) return undefined;
    value = childOf(value, step);
  }
  return isScalar(value) ? value : undefined;
}

/** A list has other members that are its own, such as `length`. */
const LIST_INDEX = /^(?:0|[1-9]\d*)$/;

function isScalar(value: unknown): value is Scalar {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function keyOfScalar(value: Scalar): number {
  const digest = hash("sha256", textOf(value), "buffer");
  // 53 bits: all that is exact everywhere.
  const key = (digest.readUInt32BE(0) % 2 ** 21) * 2 ** 32 + digest.readUInt32BE(4);
  return key === NO_KEY ? 1 : key;
}

/** Stored keys are made from this. */
function textOf(value: Scalar): string {
  if (typeof value === "string") return `"${value}`;
  return typeof value === "number" ? digitsOf(value) : String(value);
}

/** All digits, and a power of ten behind them, such as `42e0` and `-15e-1`. */
function digitsOf(value: number): string {
  const [decimal = "", exponent] = value.toExponential().split("e");
  const [whole, fraction = ""] = decimal.split(".");
  return value === 0 ? "0" : `${whole}${fraction}e${Number(exponent) - fraction.length}`;
}
