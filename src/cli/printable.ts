// oxlint-disable no-control-regex -- finding them is what this file is for
/**
 * Names, payloads and handlers' answers come from outside. Written raw, an escape sequence in one of them could repaint
 * the terminal, rename its window or answer a prompt, and a bidirectional override could show another text than is there.
 */
const UNSAFE_IN_TEXT =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu;
const UNSAFE_BETWEEN_LINES =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu;
/** In well-formed JSON these stand only inside strings, where their escape means the same. */
const UNSAFE_IN_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

const SHORT_FORMS: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\u001b": "\\e",
};

/** One line of text that does nothing to a terminal: control characters appear as `\n`, `\e`, `\u0007`. */
export function printableLine(text: string): string {
  return text.replace(UNSAFE_IN_TEXT, visible);
}

/** As `printableLine`, with the line breaks kept. */
export function printableLines(text: string): string {
  return text.replace(UNSAFE_BETWEEN_LINES, visible);
}

/** The same JSON document without characters that act on a terminal; for showing, not for passing bytes on. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, escapeSequence);
}

function visible(character: string): string {
  return SHORT_FORMS[character] ?? escapeSequence(character);
}

function escapeSequence(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
