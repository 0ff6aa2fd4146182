// oxlint-disable no-control-regex -- finding them is what this file is for
/** Characters that end a line, act on a terminal or show text in another order than it has. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const LONGEST_COMMENT_LINE = 110;

export function stringLiteral(text: string): string {
  return JSON.stringify(text).replace(UNSAFE, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** A value of JSON as the literal type that only it has; `undefined` for a number that no literal stands for. */
export function scalarLiteral(value: string | number | boolean | null): string | undefined {
  if (typeof value === "string") return stringLiteral(value);
  if (typeof value === "number") return Number.isFinite(value) ? String(value + 0) : undefined;
  return String(value);
}

export function memberName(name: string): string {
  return IDENTIFIER.test(name) ? name : stringLiteral(name);
}

/** A documentation comment with its line break, or nothing when there is nothing to say. */
export function commentOf(lines: readonly string[], indent: string): string {
  const shown = lines
    .flatMap((line) => line.split(LINE_END))
    .flatMap((line) => wrapped(harmless(line).trimEnd(), LONGEST_COMMENT_LINE - indent.length));
  while (shown.at(-1) === "") shown.pop();
  if (shown.length === 0) return "";
  if (shown.length === 1) return `${indent}/** ${shown[0]} */\n`;
  const body = shown.map((line) => `${indent} *${line === "" ? "" : ` ${line}`}\n`).join("");
  return `${indent}/**\n${body}${indent} */\n`;
}

/** Text from a schema as it may stand in a comment: it neither ends it nor tells the compiler or a tool anything. */
function harmless(line: string): string {
  return line
    .replace(UNSAFE, " ")
    .replaceAll("*/", "*\\/")
    .replaceAll(/(^|[^\w\\`])@(?=\w)/g, "$1\\@");
}

function wrapped(line: string, width: number): string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > width) {
    const space = rest.lastIndexOf(" ", width);
    if (space <= 0) break;
    lines.push(rest.slice(0, space));
    rest = rest.slice(space + 1);
  }
  return [...lines, rest];
}
