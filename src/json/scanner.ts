import { isUtf8 } from "node:buffer";
import {
  characterAt,
  firstBadUtf8,
  JsonError,
  type JsonFaultReason,
  type LineCount,
  shown,
} from "./json-error.ts";
import { type JsonKind, type JsonNode, type JsonSpan, keyText, Recorder } from "./nodes.ts";

/** 1 for the four bytes JSON calls whitespace. */
const WHITESPACE = table(" \t\n\r");
/** 1 for the bytes a number can begin with. */
const NUMBER_START = table("-0123456789");
const DIGIT = table("0123456789");
const ESCAPE = table('"\\/bfnrt');
/** 1 for the bytes at which a run of ordinary characters in a string ends: the quote, the backslash, control characters. */
const STRING_STOP = table('"\\');
STRING_STOP.fill(1, 0, 0x20);

const LITERALS: Readonly<Record<number, { readonly text: string; readonly kind: JsonKind }>> = {
  0x74: { text: "true", kind: "boolean" },
  0x66: { text: "false", kind: "boolean" },
  0x6e: { text: "null", kind: "null" },
};

/** Levels of objects and arrays in one payload, its own root counted. */
export const MAX_NESTING = 64;

/** A step takes a quarter of a millisecond; with nothing but brackets and short keys, some. */
const STEP_BYTES = 64 * 1024;

/**
 * Checks that the bytes are one JSON document (RFC 8259, UTF-8, no byte order mark) that can be passed on unaltered, and
 * returns where its parts are.
 *
 * Refused: anything that is not JSON, duplicate keys in one object (also when they differ only by escapes),
 * lone surrogates, nesting beyond `maxNesting`. A number too large for a double (`1e400`) is JSON and passes: its bytes
 * are kept, and a schema that asks for a number refuses it later.
 *
 * One pass, no recursion, a cost linear in the length.
 * @throws JsonError
 */
export function scanJson(bytes: Uint8Array, options: ScanOptions = {}): JsonNode {
  const scan = new Scan(bytes, options);
  scan.advance(Infinity);
  return scan.finish();
}

/** Checks a document of many megabytes as `scanJson` does, in steps. */
export function* scanSteps(bytes: Uint8Array, options: ScanOptions): Generator<void, JsonNode, void> {
  const scan = new Scan(bytes, options);
  while (!scan.advance(STEP_BYTES)) yield;
  return scan.finish();
}

/** What a scan checks, and which parts of the document it returns. */
export interface ScanOptions {
  /** The part of `bytes` that is the document; by default all of it. Places in errors count from the first byte of all. */
  readonly span?: JsonSpan;
  /** Levels of objects and arrays allowed, the outermost counted; by default as many as a payload may have. */
  readonly maxNesting?: number;
  /** Levels an envelope may add to those. They are not the caller's, so a refusal does not count them. */
  readonly envelopeLevels?: number;
  /**
   * How many children to record in each container, one number a level from the root down: `[8]` records the first eight
   * members of the root, `[8, 1000]` also the first thousand children of each of those. What is not recorded is checked
   * and counted all the same.
   */
  readonly record?: readonly number[];
  /** Refuse duplicate keys (among those recorded) and lone surrogates only in so many of the upper levels; by default in all. */
  readonly strictLevels?: number;
  /** Counts lines on from the last fault in the same bytes. */
  readonly lines?: LineCount;
}

/** One pass over a document, which can be interrupted. */
export class Scan {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #maxNesting: number;
  readonly #envelopeLevels: number;
  readonly #recorder: Recorder;
  /** Containers deeper than this are checked for syntax only. */
  readonly #strictDepth: number;
  readonly #lines: LineCount | undefined;
  readonly #open = new OpenContainers();
  #pos: number;

  constructor(bytes: Uint8Array, options: ScanOptions) {
    this.#bytes = bytes;
    this.#pos = options.span?.start ?? 0;
    this.#end = options.span?.end ?? bytes.length;
    this.#maxNesting = options.maxNesting ?? MAX_NESTING;
    this.#envelopeLevels = options.envelopeLevels ?? 0;
    this.#recorder = new Recorder(options.record ?? []);
    this.#strictDepth = options.strictLevels ?? Infinity;
    this.#lines = options.lines;
    this.#checkEncoding();
  }

  /**
   * Goes on for about so many bytes; true at the document's end.
   *
   * Every byte of every publish goes through here, so it is one loop on local variables that calls nothing for what is
   * common: a string without escapes, a comma.
   */
  advance(maxBytes: number): boolean {
    const bytes = this.#bytes;
    const end = this.#end;
    const open = this.#open;
    const recorder = this.#recorder;
    const { levels } = recorder;
    const strictDepth = this.#strictDepth;
    const stop = this.#pos + maxBytes;
    let pos = this.#pos;
    let { depth } = open;
    let { isObject } = open;
    let nameStart = 0;
    let nameEnd = 0;

    next: for (;;) {
      if (isObject) {
        while (pos < end && WHITESPACE[bytes[pos]!] === 1) pos++;
        if (pos >= end || bytes[pos] !== 0x22) {
          const after = open.hasKeys ? " after the comma" : "";
          throw this.#unexpected(pos, `a key in double quotes${after}`);
        }
        nameStart = pos + 1;
        pos = nameStart;
        while (pos < end && STRING_STOP[bytes[pos]!] === 0) pos++;
        let isEscaped = false;
        if (pos < end && bytes[pos] === 0x22) pos++;
        else {
          pos = this.#restOfString(nameStart - 1, pos, depth);
          isEscaped = true;
        }
        nameEnd = pos - 1;
        // A lenient scan has no use for the many keys of what cannot be an envelope.
        if (
          strictDepth === Infinity ||
          (depth <= strictDepth && depth <= levels && recorder.records(depth))
        ) {
          if (!open.addKey(bytes, nameStart, nameEnd, isEscaped)) this.#refuseTwice(nameStart, nameEnd);
        }
        while (pos < end && WHITESPACE[bytes[pos]!] === 1) pos++;
        if (pos >= end || bytes[pos] !== 0x3a) throw this.#unexpected(pos, "a colon after the key");
        pos++;
      }

      while (pos < end && WHITESPACE[bytes[pos]!] === 1) pos++;
      const start = pos;
      const first = pos < end ? bytes[pos]! : -1;
      if (first === 0x22) {
        pos++;
        while (pos < end && STRING_STOP[bytes[pos]!] === 0) pos++;
        if (pos < end && bytes[pos] === 0x22) pos++;
        else pos = this.#restOfString(start, pos, depth);
        if (depth <= levels) recorder.add(depth, "string", start, pos, nameStart, nameEnd);
      } else if (first === 0x7b || first === 0x5b) {
        if (depth >= this.#maxNesting + this.#envelopeLevels) {
          throw this.#fault(pos, `it is nested deeper than ${this.#maxNesting} levels`, "nesting");
        }
        isObject = first === 0x7b;
        if (depth <= levels) {
          recorder.open(depth, isObject ? "object" : "array", start, nameStart, nameEnd);
        }
        open.push(isObject);
        depth += 1;
        pos++;
        while (pos < end && WHITESPACE[bytes[pos]!] === 1) pos++;
        if (pos >= end || bytes[pos] !== (isObject ? 0x7d : 0x5d)) continue;
      } else if (first !== -1 && NUMBER_START[first] === 1) {
        pos = this.#endOfNumber(start);
        if (depth <= levels) recorder.add(depth, "number", start, pos, nameStart, nameEnd);
      } else {
        pos = this.#literal(first, pos);
        if (depth <= levels) {
          recorder.add(depth, LITERALS[first]!.kind, start, pos, nameStart, nameEnd);
        }
      }

      // Closes what ends here, up to a comma that announces another value.
      while (depth > 0) {
        while (pos < end && WHITESPACE[bytes[pos]!] === 1) pos++;
        const byte = pos < end ? bytes[pos]! : -1;
        if (byte === 0x2c) {
          pos++;
          if (pos < stop) continue next;
          this.#pos = pos;
          return false;
        }
        if (byte !== (isObject ? 0x7d : 0x5d)) {
          throw this.#unexpected(pos, `a comma or ${isObject ? "a closing brace" : "a closing bracket"}`);
        }
        pos++;
        open.pop();
        depth -= 1;
        isObject = open.isObject;
        if (depth <= levels) recorder.close(depth, pos);
      }
      this.#pos = pos;
      return true;
    }
  }

  finish(): JsonNode {
    let pos = this.#pos;
    while (pos < this.#end && WHITESPACE[this.#bytes[pos]!] === 1) pos++;
    if (pos < this.#end)
      throw this.#fault(pos, `nothing may follow the document, found ${this.#characterAt(pos)}`);
    return this.#recorder.root!;
  }

  #checkEncoding(): void {
    const bytes = this.#bytes;
    const start = this.#pos;
    const document = this.#end - start === bytes.length ? bytes : bytes.subarray(start, this.#end);
    if (!isUtf8(document)) {
      throw this.#fault(start + firstBadUtf8(document), "the bytes here are not UTF-8", "encoding");
    }
    if (document[0] === 0xef && document[1] === 0xbb && document[2] === 0xbf) {
      throw this.#fault(start, "it begins with a byte order mark; send it without one", "encoding");
    }
  }

  /**
   * The place behind a string that does not simply go on to its closing quote.
   * @param quote the place of the opening one
   * @param pos from where on it is to be looked at
   */
  #restOfString(quote: number, pos: number, depth: number): number {
    const bytes = this.#bytes;
    const end = this.#end;
    while (pos < end) {
      const byte = bytes[pos]!;
      if (STRING_STOP[byte] === 0) pos++;
      else if (byte === 0x22) return pos + 1;
      else if (byte === 0x5c) pos = this.#endOfEscape(pos, depth <= this.#strictDepth);
      else throw this.#fault(pos, "a control character in a string must be written as an escape");
    }
    throw this.#fault(Math.min(quote, end), "the string that begins here has no closing quote");
  }

  /** @param isStrict whether to refuse a `\u` surrogate that is not half of a pair */
  #endOfEscape(pos: number, isStrict: boolean): number {
    const bytes = this.#bytes;
    const letter = pos + 1 < this.#end ? bytes[pos + 1]! : 0;
    if (ESCAPE[letter] === 1) return pos + 2;
    if (letter !== 0x75) throw this.#fault(pos, "this escape does not exist in JSON");
    const unit = hexUnit(bytes, pos + 2, this.#end);
    if (unit < 0) throw this.#fault(pos, "\\u must be followed by four hexadecimal digits");
    if (!isStrict || (unit & 0xf800) !== 0xd800) return pos + 6;
    if (unit < 0xdc00 && isLowSurrogate(bytes, pos + 6, this.#end)) return pos + 12;
    const what = "this escape is half of a surrogate pair without the other half";
    throw this.#fault(pos, what, "lone_surrogate");
  }

  #endOfNumber(start: number): number {
    const bytes = this.#bytes;
    const end = this.#end;
    let pos = bytes[start] === 0x2d ? start + 1 : start;
    pos = pos < end && bytes[pos] === 0x30 ? pos + 1 : this.#endOfDigits(pos);
    if (pos < end && bytes[pos] === 0x2e) pos = this.#endOfDigits(pos + 1);
    if (pos < end && (bytes[pos]! | 0x20) === 0x65) {
      pos++;
      if (pos < end && (bytes[pos] === 0x2b || bytes[pos] === 0x2d)) pos++;
      pos = this.#endOfDigits(pos);
    }
    return pos;
  }

  #endOfDigits(start: number): number {
    let pos = start;
    while (pos < this.#end && DIGIT[this.#bytes[pos]!] === 1) pos++;
    if (pos > start) return pos;
    throw this.#fault(pos, `a digit is missing in this number, found ${this.#characterAt(pos)}`);
  }

  #literal(first: number, pos: number): number {
    const literal = LITERALS[first];
    if (literal === undefined) {
      if (first === -1 && this.#recorder.root === undefined) throw this.#fault(pos, "it is empty");
      throw this.#unexpected(pos, "a value");
    }
    const { text } = literal;
    for (let index = 1; index < text.length; index++) {
      if (pos + index >= this.#end || this.#bytes[pos + index] !== text.charCodeAt(index)) {
        throw this.#fault(pos, `expected a value; perhaps ${text} was meant`);
      }
    }
    return pos + text.length;
  }

  #refuseTwice(start: number, end: number): never {
    const what = `the key ${shown(keyText(this.#bytes, start, end))} is in this object twice`;
    throw this.#fault(start - 1, what, "duplicate_key");
  }

  #characterAt(pos: number): string {
    return characterAt(this.#bytes, pos, this.#end);
  }

  #unexpected(pos: number, what: string): Error {
    return this.#fault(pos, `expected ${what}, found ${this.#characterAt(pos)}`);
  }

  #fault(pos: number, what: string, reason: JsonFaultReason = "syntax"): Error {
    return new JsonError(this.#bytes, pos, reason, what, this.#lines);
  }
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

function table(characters: string): Uint8Array {
  const flags = new Uint8Array(256);
  for (const character of characters) flags[character.charCodeAt(0)] = 1;
  return flags;
}

/**
 * So many keys of one object are compared byte by byte. A `Set` of their texts takes three times as long for a whole scan, and a
 * third of the rate of a batch.
 */
const COMPARED_KEYS = 16;

/**
 * The objects and arrays that are open around the place a scan has come to, by depth from 1 (at 0 there is none). In lists of
 * numbers: an object for each would be the larger part of a scan's garbage.
 */
class OpenContainers {
  /** How many are open. */
  depth = 0;
  readonly #isObject = [false];
  /** Where the keys of each begin in the two lists below. */
  readonly #bases = [0];
  /** The keys, as spans between their quotes. Those of the innermost object are the last. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  #top = 0;
  /** All keys of objects that have more than are compared, or one with an escape, by depth. */
  #texts: Map<number, Set<string>> | undefined;

  /** Whether the innermost one is an object. */
  get isObject(): boolean {
    return this.#isObject[this.depth]!;
  }

  /** Whether the innermost one has keys. */
  get hasKeys(): boolean {
    return this.#top > this.#bases[this.depth]! || this.#texts?.has(this.depth) === true;
  }

  push(isObject: boolean): void {
    const depth = (this.depth += 1);
    this.#isObject[depth] = isObject;
    this.#bases[depth] = this.#top;
  }

  /** Closes the innermost one, its keys with it. */
  pop(): void {
    this.#top = this.#bases[this.depth]!;
    this.#texts?.delete(this.depth);
    this.depth -= 1;
  }

  /** Adds a key to the innermost object. False if that has it already. */
  addKey(bytes: Uint8Array, start: number, end: number, isEscaped: boolean): boolean {
    const base = this.#bases[this.depth]!;
    const texts = this.#texts?.get(this.depth);
    if (texts === undefined && !isEscaped && this.#top - base < COMPARED_KEYS) {
      for (let at = base; at < this.#top; at++) if (this.#isSame(bytes, at, start, end)) return false;
      this.#starts[this.#top] = start;
      this.#ends[this.#top] = end;
      this.#top += 1;
      return true;
    }
    const all = texts ?? this.#startTexts(bytes, base);
    const { size } = all;
    return all.add(keyText(bytes, start, end)).size > size;
  }

  #startTexts(bytes: Uint8Array, base: number): Set<string> {
    const texts = new Set<string>();
    for (let at = base; at < this.#top; at++) texts.add(keyText(bytes, this.#starts[at]!, this.#ends[at]!));
    (this.#texts ??= new Map()).set(this.depth, texts);
    return texts;
  }

  #isSame(bytes: Uint8Array, at: number, start: number, end: number): boolean {
    let other = this.#starts[at]!;
    if (this.#ends[at]! - other !== end - start) return false;
    for (let place = start; place < end; place++) if (bytes[place] !== bytes[other++]) return false;
    return true;
  }
}
