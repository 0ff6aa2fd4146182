import { holdsText } from "./utf8.ts";

const OTHER = 0;
const QUOTE = 1;
const OPENING = 2;
const CLOSING = 3;
/** Of bytes outside of strings. */
const KINDS = new Uint8Array(256);
for (const [text, kind] of [
  ['"', QUOTE],
  ["{[", OPENING],
  ["}]", CLOSING],
] as const) {
  for (const byte of Buffer.from(text)) KINDS[byte] = kind;
}

/**
 * Whether the bytes, put between others, keep to themselves: they begin with `{`, end with its `}`, and no string is open
 * behind them. What reads them within a larger document then either takes them for exactly one object or finds the whole
 * document malformed; so nobody need read them as JSON just to put them there.
 *
 * `false` also where a name of the outermost members is hard to tell or is `name`, and where there is no member: `true`
 * means that a member `name` can be put in before the last byte.
 * @param name of ASCII letters and `_`
 */
export function framesObject(bytes: Uint8Array, name: string): boolean {
  const end = bytes.length;
  if (end < 2 || bytes[0] !== 0x7b || bytes[end - 1] !== 0x7d) return false;
  let depth = 1;
  let hasMember = false;
  for (let pos = 1; pos < end; pos += 1) {
    const kind = KINDS[bytes[pos]!]!;
    if (kind === OTHER) continue;
    if (kind === QUOTE) {
      pos += 1;
      const start = pos;
      for (; pos < end && bytes[pos] !== 0x22; pos += 1) {
        if (bytes[pos] !== 0x5c) continue;
        if (depth === 1) return false;
        pos += 1;
      }
      if (depth === 1) {
        if (pos - start === name.length && holdsText(bytes, start, pos, name)) return false;
        hasMember = true;
      }
    } else {
      depth += kind === OPENING ? 1 : -1;
      if (depth === 0) return pos === end - 1 && hasMember;
    }
  }
  return false;
}
