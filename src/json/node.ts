import { keyText } from "./duplicate-keys.ts";
import { decoded, holdsText } from "./utf8.ts";
import type { JsonKind } from "./tokens.ts";

/** A stretch of bytes: `start` is the first, `end` the one after the last. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
}

/** One value of a scanned document: what it is and where its bytes are. Nothing in it has been parsed. */
export interface JsonNode extends JsonSpan {
  readonly kind: JsonKind;
  /** Where the member's name is, between its quotes, when the value is a member of an object; else -1. */
  readonly nameStart: number;
  readonly nameEnd: number;
  /** How many members or items it has, recorded or not; 0 for a value that is no container. */
  readonly count: number;
  /** The members or items the scan was told to record, in order; empty below the recorded levels. */
  readonly children: readonly JsonNode[];
}

/** A member's name, escapes resolved. */
export function nameOf(bytes: Uint8Array, member: JsonNode): string {
  return keyText(bytes, member.nameStart, member.nameEnd);
}

/**
 * Whether that is the member's name; mostly told by its bytes alone.
 * @param name of ASCII letters and `_`
 */
export function isNamed(bytes: Uint8Array, member: JsonNode, name: string): boolean {
  const { nameStart, nameEnd } = member;
  if (nameEnd - nameStart <= name.length) return holdsText(bytes, nameStart, nameEnd, name);
  return isEscaped(bytes, member) && nameOf(bytes, member) === name;
}

function isEscaped(bytes: Uint8Array, { nameStart, nameEnd }: JsonNode): boolean {
  for (let at = nameStart; at < nameEnd; at++) if (bytes[at] === 0x5c) return true;
  return false;
}

/** The first recorded member of that name, as `isNamed` takes it. */
export function memberOf(bytes: Uint8Array, node: JsonNode, name: string): JsonNode | undefined {
  for (const child of node.children) if (isNamed(bytes, child, name)) return child;
  return undefined;
}

/** The bytes of a value, as a view on the document (no copy). */
export function bytesOf(bytes: Uint8Array, span: JsonSpan): Uint8Array {
  return bytes.subarray(span.start, span.end);
}

/** The value's source text. */
export function textOf(bytes: Uint8Array, { start, end }: JsonSpan): string {
  return decoded(bytes, start, end);
}

/** The parsed value of a node. Numbers past 2^53 are rounded. */
export function valueOf(bytes: Uint8Array, span: JsonSpan): unknown {
  return JSON.parse(textOf(bytes, span));
}
