// The one import that goes upwards: the product has one error type, and its file imports nothing itself.
// oxlint-disable-next-line no-restricted-imports
import { EvregError } from "../domain/error.ts";

/** Why a document was refused: `syntax` and `encoding` are not JSON at all, the others would be altered on the way. */
export type JsonFaultReason = "syntax" | "encoding" | "duplicate_key" | "nesting" | "lone_surrogate";

/**
 * The refusal of a document, as `malformed` with details `{ line, column, byte, reason }`. Line and column count
 * characters from 1, `byte` counts from 0.
 */
export function jsonFault(
  bytes: Uint8Array,
  offset: number,
  reason: JsonFaultReason,
  what: string,
): EvregError {
  const { line, column } = placeOf(bytes, offset);
  const verdict = reason === "syntax" || reason === "encoding" ? "Malformed JSON" : "JSON refused";
  return new EvregError(
    "malformed",
    `${verdict} at line ${line}, column ${column} (byte ${offset}): ${what}.`,
    { line, column, byte: offset, reason },
  );
}

/** Whether the refused document was JSON all the same, so that its parts can be judged one by one. */
export function isWellFormedFault(error: unknown): boolean {
  if (!(error instanceof EvregError) || error.code !== "malformed") return false;
  const { reason } = error.details;
  return reason === "duplicate_key" || reason === "nesting" || reason === "lone_surrogate";
}

function placeOf(bytes: Uint8Array, offset: number): { line: number; column: number } {
  let line = 1;
  let lineStart = 0;
  for (let at = 0; at < offset; at++) {
    if (bytes[at] === 0x0a) {
      line++;
      lineStart = at + 1;
    }
  }
  // Continuation bytes belong to the character before them.
  let column = 1;
  for (let at = lineStart; at < offset; at++) if ((bytes[at]! & 0xc0) !== 0x80) column++;
  return { line, column };
}

/** Offset of the first byte that cannot belong to UTF-8. Only called on bytes known to hold one. */
export function firstBadUtf8(bytes: Uint8Array): number {
  let good = 0;
  let bad = bytes.length;
  // A prefix stays decodable (an unfinished last character allowed) exactly up to the first bad byte.
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1;
    if (decodes(bytes.subarray(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

function decodes(prefix: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(prefix, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** What stands at a place, in words. */
export function characterAt(bytes: Uint8Array, offset: number, end: number): string {
  if (offset >= end) return "the end";
  const some = Buffer.from(bytes.subarray(offset, Math.min(end, offset + 4))).toString("utf8");
  const character = String.fromCodePoint(some.codePointAt(0)!);
  return character === '"' ? "a double quote" : shown(character);
}

/** A text in quotes, cut when it is long. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64).toWellFormed()}…` : text);
}
