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

const WINDOW_BYTES = 64 * 1024;

/** Offset of the first byte that cannot belong to UTF-8; there must be one. */
export function firstBadUtf8(bytes: Uint8Array): number {
  let start = 0;
  for (let end = 0; end < bytes.length; start = end) {
    end = startOfCharacter(bytes, Math.min(bytes.length, start + WINDOW_BYTES));
    if (!isUtf8(bytes.subarray(start, end))) break;
  }
  let good = start;
  let bad = Math.min(bytes.length, start + WINDOW_BYTES + 1);
  // A prefix stays decodable (an unfinished last character allowed) exactly up to the first bad byte.
  while (bad - good > 1) {
    const middle = (good + bad) >>> 1;
    if (decodes(bytes.subarray(start, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

/** The offset itself or, inside a character, that of the character's first byte. */
function startOfCharacter(bytes: Uint8Array, offset: number): number {
  let start = offset;
  while (start < bytes.length && start > offset - 3 && (bytes[start]! & 0xc0) === 0x80) start--;
  return start;
}

function decodes(prefix: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(prefix, { stream: true });
    return true;
  } catch {
    return false;
  }
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
