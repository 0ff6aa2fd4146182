import { textOf } from "./nodes.ts";
import { parseText } from "./parse.ts";
import { scanJson } from "./scanner.ts";

/** A payload is read as text to be checked and again to be answered; the texts of large ones are not held. */
const MAX_CACHED_TEXT_BYTES = 1_024;

/**
 * One JSON value as the exact bytes it arrived in: parsing and writing it again would re-order integer-like keys and round
 * numbers past 2^53. The bytes are well-formed JSON in UTF-8, as only the scanner and the store make instances from outside
 * data.
 */
export class RawJson {
  readonly bytes: Uint8Array;
  /** Whether the scanner has checked the bytes. It has not for those of `fromValue` and `fromText`. */
  readonly scanned: boolean;
  #text: string | undefined;

  constructor(bytes: Uint8Array, scanned = true) {
    this.bytes = bytes;
    this.scanned = scanned;
  }

  /** The bytes of `JSON.stringify(value)`; for callers that start from a value and have no bytes. */
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
    if (bytes.length <= MAX_CACHED_TEXT_BYTES) this.#text = text;
    return text;
  }

  /** The parsed value, a new one at each call. Numbers past 2^53 are rounded here, never in `bytes`. */
  value(): unknown {
    return parseText(this.text());
  }

  /** Whether the other has the same bytes. */
  equals(other: RawJson): boolean {
    return Buffer.compare(this.bytes, other.bytes) === 0;
  }

  /** `JSON.stringify` calls it where exactness does not matter, such as for a test's diff. */
  toJSON(): unknown {
    return this.value();
  }
}

/**
 * Writes a JSON document, with every `RawJson` inside it as its exact bytes. Members that are `undefined` are left out. No
 * other object has a `toJSON`.
 * @param indent spaces a level; raw values are never re-indented, as that would change their bytes
 */
export function encodeJson(value: unknown, indent = 0): string {
  return write(value, indent, "\n");
}

function write(value: unknown, indent: number, newline: string): string {
  if (value instanceof RawJson) return value.text();
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (!holdsRaw(value)) {
    const text = JSON.stringify(value, null, indent);
    return indent === 0 || newline === "\n" ? text : text.replaceAll("\n", newline);
  }
  const inner = indent === 0 ? "" : newline + " ".repeat(indent);
  const outer = indent === 0 ? "" : newline;
  if (Array.isArray(value)) {
    return `[${inner}${value.map((item) => write(item, indent, inner)).join(`,${inner}`)}${outer}]`;
  }
  const colon = indent === 0 ? ":" : ": ";
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([name, member]) => JSON.stringify(name) + colon + write(member, indent, inner));
  return `{${inner}${members.join(`,${inner}`)}${outer}}`;
}

function holdsRaw(value: object): boolean {
  if (value instanceof RawJson) return true;
  for (const member of Object.values(value)) {
    if (typeof member === "object" && member !== null && holdsRaw(member)) return true;
  }
  return false;
}

/** A document of text and bytes, without making a string of it. It has memory of its own, which can be freed once it is out. */
export function joinPieces(pieces: readonly (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const joined = Buffer.allocUnsafeSlow(pieces.reduce((bytes, piece) => bytes + Buffer.byteLength(piece), 0));
  let at = 0;
  for (const piece of pieces) {
    if (typeof piece === "string") at += joined.write(piece, at);
    else {
      joined.set(piece, at);
      at += piece.length;
    }
  }
  return joined;
}

/** Levels the largest envelope adds around a payload: `{ "data": [ { "payload": … } ] }`. */
export const ENVELOPE_LEVELS = 3;

/**
 * The value of a JSON document, by the scanner's strict rules. A key such as `__proto__` becomes an own property like any
 * other. Numbers past 2^53 are rounded and those past the range of a double become infinite.
 * @param envelopeLevels levels allowed beyond those of a payload
 * @throws JsonError
 */
export function parseJson(bytes: Uint8Array, envelopeLevels: number = ENVELOPE_LEVELS): unknown {
  scanJson(bytes, { envelopeLevels });
  return parseText(textOf(bytes, { start: 0, end: bytes.length }));
}
