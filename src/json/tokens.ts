import type { JsonFaultReason } from "./json-error.ts";

/** 1 for the four bytes JSON calls whitespace. */
export const WHITESPACE = table(" \t\n\r");
/** 1 for the bytes a number can begin with. */
export const NUMBER_START = table("-0123456789");
const DIGIT = table("0123456789");
const ESCAPE = table('"\\/bfnrt');
/** 1 for the bytes at which a run of ordinary characters in a string ends: the quote, the backslash, control characters. */
export const STRING_STOP = table('"\\');
STRING_STOP.fill(1, 0, 0x20);

export const LITERALS: Readonly<Record<number, { readonly text: string; readonly kind: JsonKind }>> = {
  0x74: { text: "true", kind: "boolean" },
  0x66: { text: "false", kind: "boolean" },
  0x6e: { text: "null", kind: "null" },
};

interface TokenFault {
  readonly offset: number;
  readonly what: string;
  readonly reason: JsonFaultReason;
}

/**
 * Finds the end of a string.
 * @param quote the place of the opening quote
 * @param pos from where on it is to be looked at
 * @param surrogates whether to refuse a `\u` surrogate that is not half of a pair
 * @returns the place after the closing quote; or what is wrong
 */
export function skipString(
  bytes: Uint8Array,
  quote: number,
  pos: number,
  end: number,
  surrogates: boolean,
): number | TokenFault {
  while (pos < end) {
    const byte = bytes[pos]!;
    if (STRING_STOP[byte] === 0) {
      pos++;
    } else if (byte === 0x22) {
      return pos + 1;
    } else if (byte !== 0x5c) {
      return syntax(pos, "a control character in a string must be written as an escape");
    } else {
      const letter = pos + 1 < end ? bytes[pos + 1]! : 0;
      if (letter !== 0x75) {
        if (ESCAPE[letter] === 0) return syntax(pos, "this escape does not exist in JSON");
        pos += 2;
        continue;
      }
      const unit = hexUnit(bytes, pos + 2, end);
      if (unit < 0) return syntax(pos, "\\u must be followed by four hexadecimal digits");
      if (surrogates && (unit & 0xf800) === 0xd800) {
        if (unit >= 0xdc00 || !isLowSurrogate(bytes, pos + 6, end)) return loneSurrogate(pos);
        pos += 12;
      } else {
        pos += 6;
      }
    }
  }
  return syntax(Math.min(quote, end), "the string that begins here has no closing quote");
}

/** The place after a number that begins at `pos`; or minus the place where a digit is missing. */
export function skipNumber(bytes: Uint8Array, pos: number, end: number): number {
  if (bytes[pos] === 0x2d) pos++;
  if (pos < end && bytes[pos] === 0x30) pos++;
  else {
    pos = skipDigits(bytes, pos, end);
    if (pos < 0) return pos;
  }
  if (pos < end && bytes[pos] === 0x2e) {
    pos = skipDigits(bytes, pos + 1, end);
    if (pos < 0) return pos;
  }
  if (pos < end && (bytes[pos]! | 0x20) === 0x65) {
    pos++;
    if (pos < end && (bytes[pos] === 0x2b || bytes[pos] === 0x2d)) pos++;
    pos = skipDigits(bytes, pos, end);
  }
  return pos;
}

function skipDigits(bytes: Uint8Array, pos: number, end: number): number {
  const start = pos;
  while (pos < end && DIGIT[bytes[pos]!] === 1) pos++;
  return pos === start ? -pos : pos;
}

/** The value of four hexadecimal digits, or -1. */
function hexUnit(bytes: Uint8Array, pos: number, end: number): number {
  if (pos + 4 > end) return -1;
  let unit = 0;
  for (let index = 0; index < 4; index++) {
    const byte = bytes[pos + index]!;
    const letter = byte | 0x20;
    if (DIGIT[byte] === 1) unit = unit * 16 + byte - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
    else return -1;
  }
  return unit;
}

function isLowSurrogate(bytes: Uint8Array, pos: number, end: number): boolean {
  if (pos + 6 > end || bytes[pos] !== 0x5c || bytes[pos + 1] !== 0x75) return false;
  return (hexUnit(bytes, pos + 2, end) & 0xfc00) === 0xdc00;
}

function syntax(offset: number, what: string): TokenFault {
  return { offset, what, reason: "syntax" };
}

function loneSurrogate(offset: number): TokenFault {
  return {
    offset,
    what: "this escape is half of a surrogate pair without the other half",
    reason: "lone_surrogate",
  };
}

function table(characters: string): Uint8Array {
  const flags = new Uint8Array(256);
  for (const character of characters) flags[character.charCodeAt(0)] = 1;
  return flags;
}

export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** The text of a range of bytes. */
export function decoded(bytes: Uint8Array, start: number, end: number): string {
  // What comes from a socket is a Buffer already, and another view on it would cost more than short texts do.
  if (Buffer.isBuffer(bytes)) return bytes.toString("utf8", start, end);
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8");
}

/**
 * Whether a range of bytes is that text.
 * @param text of ASCII characters only
 */
export function holdsText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let at = 0; at < text.length; at++) if (bytes[start + at] !== text.charCodeAt(at)) return false;
  return true;
}
