import { isUtf8 } from "node:buffer";

/**
 * Why a document was refused: `syntax` and `encoding` are no JSON, the others would not be passed on unaltered. Only a scan
 * with `maxKeys` has `width`.
 */
export type JsonFaultReason =
  | "syntax"
  | "encoding"
  | "duplicate_key"
  | "nesting"
  | "lone_surrogate"
  | "width";

/** The refusal of a document. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly reason: JsonFaultReason;
  /** Counted in characters, from 1. */
  readonly line: number;
  readonly column: number;
  /** Counted from 0. */
  readonly byte: number;

  /** @param lines counts from the last error in the same bytes */
  constructor(
    bytes: Uint8Array,
    byte: number,
    reason: JsonFaultReason,
    what: string,
    lines = new LineCount(),
  ) {
    const { line, column } = lines.advance(bytes, byte);
    const verdict = reason === "syntax" || reason === "encoding" ? "Malformed JSON" : "JSON refused";
    super(`${verdict} at line ${line}, column ${column} (byte ${byte}): ${what}.`);
    this.reason = reason;
    this.line = line;
    this.column = column;
    this.byte = byte;
  }
}

/** Line and column of offsets in one text. It counts from the last offset, so that a thousand faults cost as much as one. */
export class LineCount {
  #offset = 0;
  #line = 1;
  #column = 1;

  advance(bytes: Uint8Array, offset: number): { line: number; column: number } {
    if (offset < this.#offset) {
      this.#offset = 0;
      this.#line = 1;
      this.#column = 1;
    }
    let line = this.#line;
    let column = this.#column;
    for (let at = this.#offset; at < offset; at++) {
      const byte = bytes[at]!;
      if (byte === 0x0a) {
        line++;
        column = 1;
      } else if ((byte & 0xc0) !== 0x80) {
        // Continuation bytes belong to the character before them.
        column++;
      }
    }
    this.#offset = offset;
    this.#line = line;
    this.#column = column;
    return { line, column };
  }
}

const LONGEST_CHARACTER = 4;

/** The place of the first character that is not UTF-8; there must be one. */
export function firstBadUtf8(bytes: Uint8Array): number {
  let good = 0;
  let bad = bytes.length;
  while (bad - good > 3 * LONGEST_CHARACTER) {
    const middle = startOfCharacter(bytes, (good + bad) >>> 1);
    if (isUtf8(bytes.subarray(good, middle))) good = middle;
    else bad = middle;
  }
  for (let end = good + 1; end <= Math.min(good + LONGEST_CHARACTER, bytes.length); end++) {
    if (isUtf8(bytes.subarray(good, end))) good = end;
  }
  return good;
}

/** The offset itself or, inside a character, that of the character's first byte. */
function startOfCharacter(bytes: Uint8Array, offset: number): number {
  let start = offset;
  while (start > offset - LONGEST_CHARACTER && (bytes[start]! & 0xc0) === 0x80) start--;
  return start;
}

/** The character at an offset, in words. */
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
