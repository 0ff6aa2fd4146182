import { EvregError, invalidField } from "../../domain/error.ts";

/**
 * The engine reads text with a NUL back cut short and changes lone surrogates, both without a word. Text with either is
 * refused before it gets there. Bytes that must survive whatever they are go in as BLOBs.
 */
export function checkText(field: string, text: string): string {
  if (text.includes("\0")) throw invalidField(field, "must not hold the character U+0000");
  if (!text.isWellFormed()) throw invalidField(field, "must not hold half a surrogate pair");
  return text;
}

/** A rowid the engine can be asked for; anything else names no record. */
export function isRowid(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

/** Levels of objects and arrays in JSON that is kept beside the payloads; what requests may bring has fewer. */
export const KEPT_NESTING = 128;

/**
 * The value of JSON that evreg has written itself. Nested deeper, it would cross to the other thread as a message that
 * cannot be read there, and its request would never be answered.
 * @throws EvregError `internal`
 */
export function parseKept(text: string): unknown {
  if (nestingOf(text) <= KEPT_NESTING) return JSON.parse(text);
  throw new EvregError(
    "internal",
    "A record in the data file has JSON that evreg could not have written: it is nested too deep. `evreg doctor --deep` tells which; restore a backup from before.",
  );
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
