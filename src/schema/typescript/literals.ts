// What comes from a schema, as it may stand in TypeScript.

// oxlint-disable no-control-regex -- finding them is what this file is for
/** Characters that end a line, act on a terminal or show text in another order than it has. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

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

/** A documentation comment with its line break, or nothing for no text. */
export function commentOf(lines: readonly string[]): string {
  const shown = lines.flatMap((line) => line.split(LINE_END)).map((line) => harmless(line).trimEnd());
  while (shown.at(-1) === "") shown.pop();
  if (shown.length === 0) return "";
  if (shown.length === 1) return `/** ${shown[0]} */\n`;
  const body = shown.map((line) => ` *${line === "" ? "" : ` ${line}`}\n`).join("");
  return `/**\n${body} */\n`;
}

/** Text from a schema, safe in a comment: it neither ends it nor instructs the compiler or a tool. */
function harmless(line: string): string {
  return line
    .replace(UNSAFE, " ")
    .replaceAll("*/", "*\\/")
    .replaceAll(/(^|[^\w\\`])@(?=\w)/g, "$1\\@");
}
