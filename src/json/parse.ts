import { type JsonNode, type JsonSpan, nameOf, textOf } from "./nodes.ts";
import { scanJson, type ScanOptions } from "./scanner.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = /[\t\n\r ]*/y;

/** More than any document has that is taken. */
const MAX_LEVELS = 1_000;
const EVERYTHING: ScanOptions = {
  maxNesting: MAX_LEVELS,
  record: Array.from({ length: MAX_LEVELS }, () => Infinity),
  // Of two members of one name the last one counts, as for `JSON.parse`.
  strictLevels: 0,
};

/**
 * Parses JSON as `JSON.parse` does. That takes a name with escapes for another one, where an object with that other name was
 * parsed before: `"gr\u00f6\u00dfe"` for `gr\u0` (https://github.com/nodejs/node/issues/63785). So whoever publishes could
 * change what others are understood to have published. A text with such names is put together here.
 */
export function parseText(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!hasEscapedName(text)) return value;
  const bytes = Buffer.from(text);
  return valueIn(bytes, scanJson(bytes, EVERYTHING));
}

/** The parsed value of a node. Numbers past 2^53 are rounded. */
export function valueOf(bytes: Uint8Array, span: JsonSpan): unknown {
  return parseText(textOf(bytes, span));
}

function valueIn(bytes: Uint8Array, node: JsonNode): unknown {
  if (node.kind === "array") return node.children.map((item) => valueIn(bytes, item));
  if (node.kind !== "object") return JSON.parse(textOf(bytes, node));
  return Object.fromEntries(node.children.map((member) => [nameOf(bytes, member), valueIn(bytes, member)]));
}

function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf("\\"); at !== -1;) {
    SPACE.lastIndex = endOfString(text, at);
    SPACE.test(text);
    if (text[SPACE.lastIndex] === ":") return true;
    at = text.indexOf("\\", SPACE.lastIndex);
  }
  return false;
}

/** @param at a place in a string, and not within an escape */
function endOfString(text: string, at: number): number {
  for (let end = at; ; end += 1) {
    const code = text.charCodeAt(end);
    if (code === QUOTE) return end + 1;
    if (code === BACKSLASH) end += 1;
  }
}
