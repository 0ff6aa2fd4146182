import { isUtf8 } from "node:buffer";
import { findDuplicate, keyText } from "./duplicate-keys.ts";
import type { KeyStack } from "./duplicate-keys.ts";
import { characterAt, firstBadUtf8, jsonFault, shown } from "./fault.ts";
import type { JsonFaultReason, LineCount } from "./fault.ts";
import type { JsonKind, JsonNode, JsonSpan } from "./node.ts";
import { Recorder } from "./recorder.ts";
import type { OpenNode } from "./recorder.ts";
import { LITERALS, NUMBER_START, skipNumber, skipString, WHITESPACE } from "./tokens.ts";

export interface ScanOptions {
  /** The part of `bytes` that is the document; all of it unless told. Places in errors count from the first byte of all. */
  readonly span?: JsonSpan;
  /** Levels of objects and arrays allowed, the outermost counted; as a payload may have unless told. */
  readonly maxNesting?: number;
  /** Levels an envelope may add to those. They are not the caller's, so a refusal does not count them. */
  readonly envelopeLevels?: number;
  /**
   * How many children to record in each container, one number a level from the root down: `[8]` records the first eight
   * members of the root, `[8, 1000]` also the first thousand children of each of those. What is not recorded is checked
   * and counted all the same.
   */
  readonly record?: readonly number[];
  /** Refuse duplicate keys (among those recorded) and lone surrogates only in so many of the upper levels; all unless told. */
  readonly strictLevels?: number;
  /** Counts lines on from the last fault in the same bytes. */
  readonly lines?: LineCount;
}

interface Frame {
  /** Whether it is an array. */
  readonly list: boolean;
  /** Where its keys begin on the key stack. */
  readonly keyBase: number;
  readonly node: OpenNode | undefined;
  escapedKey: boolean;
}

/** One pass over a document, which can be interrupted. */
export class Scan {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #maxNesting: number;
  readonly #envelopeLevels: number;
  readonly #recorder: Recorder;
  /** Frames deeper than this are checked for syntax only. */
  readonly #strictDepth: number;
  readonly #lines: LineCount | undefined;
  readonly #frames: Frame[] = [];
  readonly #keys: KeyStack;
  #pos: number;

  constructor(bytes: Uint8Array, options: ScanOptions & { readonly maxNesting: number }, keys: KeyStack) {
    keys.clear();
    this.#bytes = bytes;
    this.#pos = options.span?.start ?? 0;
    this.#end = options.span?.end ?? bytes.length;
    this.#maxNesting = options.maxNesting;
    this.#envelopeLevels = options.envelopeLevels ?? 0;
    this.#recorder = new Recorder(options.record ?? []);
    this.#strictDepth = options.strictLevels ?? Infinity;
    this.#lines = options.lines;
    this.#keys = keys;
    this.#checkEncoding();
  }

  /** Goes on for about so many bytes; true at the document's end. */
  advance(stretch: number): boolean {
    const stop = this.#pos + stretch;
    do {
      this.#value();
      if (!this.#afterValue()) return true;
    } while (this.#pos < stop);
    return false;
  }

  finish(): JsonNode {
    if (this.#next() !== -1) throw this.#fault(`nothing may follow the document, found ${this.#found()}`);
    return this.#recorder.root!;
  }

  #checkEncoding(): void {
    const start = this.#pos;
    const document = this.#bytes.subarray(start, this.#end);
    if (!isUtf8(document)) {
      this.#pos += firstBadUtf8(document);
      throw this.#fault("the bytes here are not UTF-8", "encoding");
    }
    if (document[0] === 0xef && document[1] === 0xbb && document[2] === 0xbf) {
      throw this.#fault("it begins with a byte order mark; send it without one", "encoding");
    }
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
    if (frames.length >= this.#maxNesting + this.#envelopeLevels) {
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
    const recorded = this.#recorder.takes(frame.node, depth);
    // A lenient scan has no use for the many keys of what cannot be an envelope.
    if (this.#strictDepth === Infinity || (recorded && depth <= this.#strictDepth)) {
      this.#keys.push(start, this.#pos - 1);
      if (escaped) frame.escapedKey = true;
    }
    if (recorded) this.#recorder.name = keyText(this.#bytes, start, this.#pos - 1);
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
    return jsonFault(this.#bytes, this.#pos, reason, what, this.#lines);
  }
}
