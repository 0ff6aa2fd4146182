import { textOf } from "./node.ts";

/** What is published is read as text to be checked and again to be answered; a batch of large ones is not held twice. */
const KEPT_TEXT_BYTES = 1_024;

/**
 * One JSON value kept as the exact bytes it arrived in.
 *
 * Parsing and writing again would re-order integer-like keys and round numbers past 2^53, so whatever was accepted
 * travels as bytes: from the request body into the store, into listings, and into signed deliveries. The bytes are
 * well-formed JSON in UTF-8 by construction: only the scanner and the store make instances from outside data.
 */
export class RawJson {
  readonly bytes: Uint8Array;
  /** Whether the scanner has passed the bytes. What `fromValue` and `fromText` make has yet to be held to its rules. */
  readonly scanned: boolean;
  #text: string | undefined;

  constructor(bytes: Uint8Array, scanned = true) {
    this.bytes = bytes;
    this.scanned = scanned;
  }

  /** The bytes of `JSON.stringify(value)`; for callers that start from a value and have no bytes to keep. */
  static fromValue(value: unknown): RawJson {
    return new RawJson(Buffer.from(JSON.stringify(value)), false);
  }

  static fromText(text: string): RawJson {
    return new RawJson(Buffer.from(text), false);
  }

  text(): string {
    if (this.#text !== undefined) return this.#text;
    const { bytes } = this;
    const text = textOf(bytes, { start: 0, end: bytes.length });
    if (bytes.length <= KEPT_TEXT_BYTES) this.#text = text;
    return text;
  }

  /** The parsed value, made anew at each call. Numbers past 2^53 are rounded here, never in `bytes`. */
  value(): unknown {
    return JSON.parse(this.text());
  }

  equals(other: RawJson): boolean {
    return Buffer.compare(this.bytes, other.bytes) === 0;
  }

  /** For `JSON.stringify` in places where exactness does not matter (a debugger, a test's diff). */
  toJSON(): unknown {
    return this.value();
  }
}
