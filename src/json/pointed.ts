import { keyText, type JsonSpan } from "./nodes.ts";

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
const INDEX = /^(?:0|[1-9]\d{0,8})$/;

/**
 * The value that the steps of a JSON Pointer lead to, `undefined` where they lead nowhere. One pass that stops there.
 * @param bytes a document that the scanner has checked
 */
export function valueAt(bytes: Uint8Array, steps: readonly string[]): JsonSpan | undefined {
  let at = skipSpace(bytes, 0);
  for (const step of steps) {
    const found =
      bytes[at] === OPEN_OBJECT
        ? memberAt(bytes, at, step)
        : bytes[at] === OPEN_ARRAY
          ? itemAt(bytes, at, step)
          : undefined;
    if (found === undefined) return undefined;
    at = found;
  }
  return { start: at, end: valueEnd(bytes, at) };
}

function memberAt(bytes: Uint8Array, open: number, name: string): number | undefined {
  for (let at = skipSpace(bytes, open + 1); bytes[at] === QUOTE;) {
    const nameEnd = stringEnd(bytes, at);
    const isFound = keyText(bytes, at + 1, nameEnd - 1) === name;
    const value = skipSpace(bytes, skipSpace(bytes, nameEnd) + 1);
    if (isFound) return value;
    at = skipSpace(bytes, valueEnd(bytes, value));
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
  return undefined;
}

function itemAt(bytes: Uint8Array, open: number, index: string): number | undefined {
  if (!INDEX.test(index)) return undefined;
  let at = skipSpace(bytes, open + 1);
  for (let left = Number(index); at < bytes.length && bytes[at] !== CLOSE_ARRAY; left -= 1) {
    if (left === 0) return at;
    at = skipSpace(bytes, valueEnd(bytes, at));
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
  return undefined;
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at]! <= 0x20) at += 1;
  return at;
}

/** @param open its first quote */
function stringEnd(bytes: Uint8Array, open: number): number {
  let at = open + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}

function valueEnd(bytes: Uint8Array, start: number): number {
  const first = bytes[start];
  if (first === QUOTE) return stringEnd(bytes, start);
  let at = start;
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) {
    while (at < bytes.length && !endsLiteral(bytes[at]!)) at += 1;
    return at;
  }
  let depth = 0;
  do {
    const byte = bytes[at];
    if (byte === QUOTE) at = stringEnd(bytes, at);
    else {
      if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth += 1;
      else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth -= 1;
      at += 1;
    }
  } while (depth > 0 && at < bytes.length);
  return at;
}

function endsLiteral(byte: number): boolean {
  return byte <= 0x20 || byte === COMMA || byte === COLON || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY;
}
