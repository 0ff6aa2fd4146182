/** Why a document was refused: `syntax` and `encoding` are no JSON, the others would not be passed on unaltered. */
export type JsonFaultReason = "syntax" | "encoding" | "duplicate_key" | "nesting" | "lone_surrogate";

/** The refusal of a document. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly reason: JsonFaultReason;
  /** Counted in characters, from 1. */
  readonly line: number;
  readonly column: number;
  /** Counted from 0. */
  readonly byte: number;
  /** The message for a document that is itself one line of a file: without "line 1". */
  readonly inLine: string;

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
    this.inLine = `${verdict} at column ${column}: ${what}.`;
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

/** The place of the first character that is not UTF-8; there must be one. */
export function firstBadUtf8(bytes: Uint8Array): number {
  const text = Buffer.from(bytes).toString("utf8");
  let place = 0;
  for (let from = 0; ;) {
    const at = text.indexOf("\ufffd", from);
    place += Buffer.byteLength(text.slice(from, at));
    // What is read as U+FFFD may be that character.
    if (bytes[place] !== 0xef || bytes[place + 1] !== 0xbf || bytes[place + 2] !== 0xbd) return place;
    place += 3;
    from = at + 1;
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
