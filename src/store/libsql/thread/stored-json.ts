import { EvregError } from "../../../domain/error.ts";

/** How deep JSON in the data file may nest, payloads apart; requests may bring less. */
const STORED_MAX_NESTING = 128;

/**
 * Parses JSON that evreg has written itself. A deeper value could not be read by the other thread, and its request would
 * never be answered.
 * @throws EvregError `internal`
 */
export function parseStored(text: string): unknown {
  const isDeep = nestingOf(text) > STORED_MAX_NESTING;
  try {
    if (!isDeep) return JSON.parse(text);
  } catch {
    // As below.
  }
  throw new EvregError(
    "internal",
    `A record in the data file has JSON that evreg could not have written: it is ${isDeep ? "nested too deep" : "malformed"}. \`evreg doctor --deep\` tells which; restore a backup from before.`,
  );
}

/** The value that `read` makes of stored JSON; `fallback` where evreg could not have written it. */
export function readableOr<T>(fallback: T, text: string, read: (value: unknown) => T | undefined): T {
  try {
    return read(parseStored(text)) ?? fallback;
  } catch {
    return fallback;
  }
}

function nestingOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isInString = !isInString;
    else if (isInString) at += code === BACKSLASH ? 1 : 0;
    else if (code === BRACE || code === BRACKET) deepest = Math.max(deepest, (depth += 1));
    else if (code === BRACE_END || code === BRACKET_END) depth -= 1;
  }
  return deepest;
}

const [QUOTE, BACKSLASH, BRACE, BRACKET, BRACE_END, BRACKET_END] = [0x22, 0x5c, 0x7b, 0x5b, 0x7d, 0x5d];
