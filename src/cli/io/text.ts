// oxlint-disable no-control-regex -- finding them is what this file is for
import { shellWord } from "../../domain/formats.ts";

/**
 * Names, payloads and handlers' answers come from outside. Written raw, an escape sequence in one of them could repaint
 * the terminal, rename its window or answer a prompt, and a bidirectional override could show another text than is there.
 */
const UNSAFE_IN_TEXT =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu;
/** In well-formed JSON these stand only inside strings, where their escape means the same. */
const UNSAFE_IN_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

const SHORT_FORMS: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\u001b": "\\e",
};

/** One line of text that does nothing to a terminal: control characters appear as `\n`, `\e`, `\u0007`. */
export function escapeControl(text: string): string {
  return text.replace(UNSAFE_IN_TEXT, visible);
}

/** Escapes as `escapeControl` does, but line breaks stay. */
export function escapeControlKeepingLines(text: string): string {
  return text.split("\n").map(escapeControl).join("\n");
}

/** Writes a JSON document without characters that act on a terminal; for showing, not for passing bytes on. */
export function escapeControlInJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, escapeSequence);
}

function visible(character: string): string {
  return SHORT_FORMS[character] ?? escapeSequence(character);
}

function escapeSequence(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

// Our own: string-width needs 35 ms of a processor to load and as much for its first wide character, in each command; and
// wrap-ansi breaks a long word where the line before it ends, so that an address cannot be copied.

const ASCII = /^[\x20-\x7e]*$/;
/** Characters that fill two cells: East Asian wide and full-width forms, and pictographs shown as emoji. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|\p{RI}|.\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|[\u{17000}-\u{18cff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}])/u;
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

let segmenter: Intl.Segmenter | undefined;

/** What a reader sees as single characters, so that none is cut in two. */
function characters(text: string): string[] {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), (part) => part.segment);
}

function widthOf(character: string): number {
  if (ZERO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Terminal cells that `text` fills; it must hold no control characters. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const character of characters(text)) width += widthOf(character);
  return width;
}

/** Cut to at most `width` cells, with `…` in the last of them when something is missing. */
export function truncate(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  return width < 1 ? "" : `${fitting(characters(text), width - 1).join("")}…`;
}

/** The first characters, as many as fit into `width` cells. */
function fitting(all: readonly string[], width: number): readonly string[] {
  let filled = 0;
  for (const [at, character] of all.entries()) {
    filled += widthOf(character);
    if (filled > width) return all.slice(0, at);
  }
  return all;
}

/** Filled up with spaces to `width` cells. */
export function pad(text: string, width: number, side: "left" | "right"): string {
  const space = " ".repeat(Math.max(0, width - textWidth(text)));
  return side === "right" ? space + text : text + space;
}

/** Broken into lines of at most `width` cells, at spaces where there are any. */
export function wrap(text: string, width: number): string[] {
  const cells = Math.max(2, width);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/(?<= )/)) {
    if (textWidth(line) + textWidth(word.trimEnd()) <= cells) {
      line += word;
      continue;
    }
    if (line !== "") lines.push(line.trimEnd());
    let rest: readonly string[] = characters(word.trimEnd());
    for (let start = fitting(rest, cells); start.length < rest.length; start = fitting(rest, cells)) {
      lines.push(start.join(""));
      rest = rest.slice(start.length);
    }
    line = `${rest.join("")} `;
  }
  lines.push(line.trimEnd());
  return lines;
}

/** `1 event`, `2,000 events` */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** `1 event is`, `2,000 events are` */
export function countedAre(count: number, noun: string): string {
  return `${counted(count, noun)} ${count === 1 ? "is" : "are"}`;
}

const MAX_NAMED = 5;

/** The first few, and how many more there are. */
export function someOf(all: readonly (string | number)[]): string {
  const more = all.length - MAX_NAMED;
  return all.slice(0, MAX_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** The first lines, and how many more there are. */
export function firstOf(lines: readonly string[], most: number): readonly string[] {
  const more = lines.length - most;
  return more > 0 ? [...lines.slice(0, most), `and ${more.toLocaleString("en")} more`] : lines;
}

/** Flags as they would be typed again, each after a space; without those of one page, and without the token itself. */
export function flagWords(flags: object): string {
  type Word = string | number | boolean | undefined;
  const all: [string, Word | readonly Word[]][] = Object.entries(flags);
  return all
    .flatMap(([name, value]) => [value].flat().map((one): [string, Word] => [name, one]))
    .filter(([name, value]) => name !== "after" && name !== "page" && value !== undefined && value !== false)
    .map(([name, value]) => {
      // A token is not for the screen.
      if (name === "token") return " --token TOKEN";
      return value === true ? ` --${name}` : ` --${name} ${shellWord(String(value))}`;
    })
    .join("");
}
