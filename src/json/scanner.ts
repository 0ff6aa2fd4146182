import { isUtf8 } from "node:buffer";
import { findDuplicate, KeyStack, keyText } from "./duplicate-keys.ts";
import { characterAt, firstBadUtf8, jsonFault, shown } from "./fault.ts";
import type { JsonFaultReason } from "./fault.ts";
import type { JsonKind, JsonNode, JsonSpan } from "./node.ts";
import { Recorder } from "./recorder.ts";
import type { OpenNode } from "./recorder.ts";
import { LITERALS, NUMBER_START, skipNumber, skipString, WHITESPACE } from "./tokens.ts";

/** Levels of objects and arrays in one payload, its own root counted. */
export const MAX_NESTING = 64;

export interface ScanOptions {
  /** The part of `bytes` that is the document; all of it unless told. Places in errors count from the first byte of all. */
  readonly span?: JsonSpan;
  /** Levels of objects and arrays allowed, the outermost counted. An envelope adds its own levels to `MAX_NESTING`. */
  readonly maxNesting?: number;
  /**
   * How many children to record in each container, one number a level from the root down: `[8]` records the first eight
   * members of the root, `[8, 1000]` also the first thousand children of each of those. What is not recorded is checked
   * and counted all the same.
   */
  readonly record?: readonly number[];
  /** Below the recorded levels, refuse only what is not JSON: no look for duplicate keys or lone surrogates. */
  readonly syntaxOnlyBelow?: boolean;
}

interface Frame {
  /** Whether it is an array. */
  readonly list: boolean;
  /** Where its keys begin on the key stack. */
  readonly keyBase: number;
  readonly node: OpenNode | undefined;
  escapedKey: boolean;
}

/** One for all scans: a scan never yields, so no two overlap. */
const keyStack = new KeyStack();

/**
 * Checks that the bytes are one JSON document (RFC 8259, UTF-8, no byte order mark) that can be passed on unaltered, and
 * tells where its parts are.
 *
 * Refused as `malformed`: anything that is not JSON, duplicate keys in one object (also when only escapes tell them apart),
 * lone surrogates, nesting beyond `maxNesting`. A number too large for a double (`1e400`) is JSON and passes: its bytes
 * are kept, and a schema that asks for a number refuses it later.
 *
 * One pass, no recursion, a cost linear in the length.
 */
export function scanJson(bytes: Uint8Array, options: ScanOptions = {}): JsonNode {
  const start = options.span?.start ?? 0;
  const end = options.span?.end ?? bytes.length;
  const document = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
  if (!isUtf8(document)) {
    throw jsonFault(bytes, start + firstBadUtf8(document), "encoding", "the bytes here are not UTF-8");
  }
  if (end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf) {
    throw jsonFault(bytes, start, "encoding", "it begins with a byte order mark; send it without one");
  }
  return new Scan(bytes, start, end, options).run();
}

class Scan {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #maxNesting: number;
  readonly #recorder: Recorder;
  /** Frames deeper than this are checked for syntax only. */
  readonly #strictDepth: number;
  readonly #frames: Frame[] = [];
  readonly #keys = keyStack;
  #pos: number;

  constructor(bytes: Uint8Array, start: number, end: number, options: ScanOptions) {
    keyStack.clear();
    this.#bytes = bytes;
    this.#pos = start;
    this.#end = end;
    this.#maxNesting = options.maxNesting ?? MAX_NESTING;
    this.#recorder = new Recorder(options.record ?? []);
    this.#strictDepth = options.syntaxOnlyBelow === true ? this.#recorder.levels : Infinity;
  }

  run(): JsonNode {
    do this.#value();
    while (this.#afterValue());
    if (this.#next() !== -1) throw this.#fault(`nothing may follow the document, found ${this.#found()}`);
    return this.#recorder.root!;
  }

  /** Takes one scalar, or opens containers up to the first scalar or empty container inside them. */
  #value(): void {
    for (;;) {
      const byte = this.#next();
      if (byte === 0x7b) {
        if (this.#open(false)) return;
        this.#key();
      } else if (byte === 0x5b) {
        if (this.#open(true)) return;
      } else {
        this.#scalar(byte);
        return;
      }
    }
  }

  /** Closes what ends here; true when a comma announces another value. */
  #afterValue(): boolean {
    const frames = this.#frames;
    while (frames.length > 0) {
      const frame = frames[frames.length - 1]!;
      const byte = this.#next();
      if (byte === 0x2c) {
        this.#pos++;
        if (!frame.list) this.#key();
        return true;
      }
      if (byte !== (frame.list ? 0x5d : 0x7d)) {
        const close = frame.list ? "a closing bracket" : "a closing brace";
        throw this.#fault(`expected a comma or ${close}, found ${this.#found()}`);
      }
      this.#close(frame);
    }
    return false;
  }

  /** True when the container was empty and is closed again. */
  #open(list: boolean): boolean {
    const frames = this.#frames;
    if (frames.length >= this.#maxNesting) {
      throw this.#fault(`it is nested deeper than ${this.#maxNesting} levels`, "nesting");
    }
    const node = this.#enter(list ? "array" : "object", this.#pos, this.#pos);
    this.#pos++;
    const frame: Frame = { list, keyBase: this.#keys.top, node, escapedKey: false };
    frames.push(frame);
    if (this.#next() !== (list ? 0x5d : 0x7d)) return false;
    this.#close(frame);
    return true;
  }

  #close(frame: Frame): void {
    const keys = this.#keys;
    if (keys.top - frame.keyBase > 1) {
      const twice = findDuplicate(this.#bytes, keys, frame.keyBase, frame.escapedKey);
      if (twice >= 0) {
        const name = keyText(this.#bytes, keys.starts[twice]!, keys.ends[twice]!);
        this.#pos = keys.starts[twice]! - 1;
        throw this.#fault(`the key ${shown(name)} is in this object twice`, "duplicate_key");
      }
    }
    keys.top = frame.keyBase;
    this.#frames.pop();
    this.#pos++;
    if (frame.node !== undefined) frame.node.end = this.#pos;
  }

  #key(): void {
    const byte = this.#next();
    if (byte !== 0x22) {
      const after = this.#frames[this.#frames.length - 1]!.keyBase < this.#keys.top ? " after the comma" : "";
      throw this.#fault(`expected a key in double quotes${after}, found ${this.#found()}`);
    }
    const start = this.#pos + 1;
    const escaped = this.#string();
    const depth = this.#frames.length;
    const frame = this.#frames[depth - 1]!;
    if (depth <= this.#strictDepth) {
      this.#keys.push(start, this.#pos - 1);
      if (escaped) frame.escapedKey = true;
    }
    if (this.#recorder.takes(frame.node, depth)) {
      this.#recorder.name = keyText(this.#bytes, start, this.#pos - 1);
    }
    if (this.#next() !== 0x3a) throw this.#fault(`expected a colon after the key, found ${this.#found()}`);
    this.#pos++;
  }

  #scalar(byte: number): void {
    const start = this.#pos;
    if (byte === 0x22) {
      this.#string();
      this.#enter("string", start, this.#pos);
    } else if (NUMBER_START[byte] === 1) {
      const stop = skipNumber(this.#bytes, start, this.#end);
      if (stop < 0) {
        this.#pos = -stop;
        throw this.#fault(`a digit is missing in this number, found ${this.#found()}`);
      }
      this.#pos = stop;
      this.#enter("number", start, stop);
    } else {
      this.#literal(byte);
    }
  }

  #literal(byte: number): void {
    const literal = LITERALS[byte];
    if (literal === undefined) {
      throw this.#fault(
        byte === -1 && this.#recorder.root === undefined
          ? "it is empty"
          : `expected a value, found ${this.#found()}`,
      );
    }
    const start = this.#pos;
    const { text, kind } = literal;
    for (let index = 1; index < text.length; index++) {
      if (start + index >= this.#end || this.#bytes[start + index] !== text.charCodeAt(index)) {
        throw this.#fault(`expected a value; perhaps ${text} was meant`);
      }
    }
    this.#pos = start + text.length;
    this.#enter(kind, start, this.#pos);
  }

  /** Moves behind the closing quote; tells whether the string holds an escape. */
  #string(): boolean {
    const stop = skipString(this.#bytes, this.#pos + 1, this.#end, this.#frames.length <= this.#strictDepth);
    if (typeof stop !== "number") {
      this.#pos = stop.offset;
      throw this.#fault(stop.what, stop.reason);
    }
    this.#pos = Math.abs(stop);
    return stop < 0;
  }

  /** The next byte that is no whitespace, not yet taken; -1 at the end. */
  #next(): number {
    const bytes = this.#bytes;
    const end = this.#end;
    let pos = this.#pos;
    while (pos < end && WHITESPACE[bytes[pos]!] === 1) pos++;
    this.#pos = pos;
    return pos < end ? bytes[pos]! : -1;
  }

  #enter(kind: JsonKind, start: number, end: number): OpenNode | undefined {
    const depth = this.#frames.length;
    const parent = depth === 0 ? undefined : this.#frames[depth - 1]!.node;
    return this.#recorder.add(parent, depth, kind, start, end);
  }

  #found(): string {
    return characterAt(this.#bytes, this.#pos, this.#end);
  }

  #fault(what: string, reason: JsonFaultReason = "syntax"): Error {
    return jsonFault(this.#bytes, this.#pos, reason, what);
  }
}
