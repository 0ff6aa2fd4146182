/** A stretch of bytes: `start` is the first, `end` the one after the last. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
}

export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** One value of a scanned document: what it is and where its bytes are. Nothing in it has been parsed. */
export interface JsonNode extends JsonSpan {
  readonly kind: JsonKind;
  /** The member's name, escapes resolved, when the value is a member of an object; else `undefined`. */
  readonly name: string | undefined;
  /** How many members or items it has, recorded or not; 0 for a value that is no container. */
  readonly count: number;
  /** The members or items the scan was told to record, in order; empty below the recorded levels. */
  readonly children: readonly JsonNode[];
}

/** The member of that name among the recorded ones. */
export function memberOf(node: JsonNode, name: string): JsonNode | undefined {
  for (const child of node.children) if (child.name === name) return child;
  return undefined;
}

/** The bytes of a value, as a view on the document (no copy). */
export function bytesOf(bytes: Uint8Array, span: JsonSpan): Uint8Array {
  return bytes.subarray(span.start, span.end);
}

/** The value's source text. */
export function textOf(bytes: Uint8Array, span: JsonSpan): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + span.start, span.end - span.start).toString("utf8");
}

/** The parsed value of a node. Numbers past 2^53 are rounded. */
export function valueOf(bytes: Uint8Array, span: JsonSpan): unknown {
  return JSON.parse(textOf(bytes, span));
}
