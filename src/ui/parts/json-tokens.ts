type TokenKind = "name" | "string" | "number" | "word" | "mark";

/** One token of JSON text: where it stands, never what it would mean. So no number is rounded and no member re-ordered. */
interface JsonToken {
  readonly kind: TokenKind;
  readonly start: number;
  readonly end: number;
  /** How many objects and arrays are open before it. */
  readonly depth: number;
}

/** The tokens of well-formed JSON text, as the server stores it. */
function* tokensOf(text: string): Generator<JsonToken> {
  const token = /[ \t\n\r]*(["{}[\],:]|[^ \t\n\r"{}[\],:]+)/y;
  const colon = /[ \t\n\r]*:/y;
  let depth = 0;
  for (let found = token.exec(text); found !== null; found = token.exec(text)) {
    const first = found[1]![0]!;
    const start = token.lastIndex - found[1]!.length;
    if (first === '"') token.lastIndex = colon.lastIndex = stringEnd(text, start);
    if (first === "}" || first === "]") depth -= 1;
    const isName = first === '"' && colon.test(text);
    yield { kind: isName ? "name" : kindOf(first), start, end: token.lastIndex, depth };
    if (first === "{" || first === "[") depth += 1;
  }
}

/** By hand: a pattern for whole strings overflows its stack at long ones. */
function stringEnd(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slash = quote;
    while (text[slash - 1] === "\\") slash -= 1;
    if ((quote - slash) % 2 === 0) return quote + 1;
  }
  return text.length;
}

function kindOf(first: string): TokenKind {
  if (first === '"') return "string";
  if ("{}[],:".includes(first)) return "mark";
  return first >= "a" && first <= "z" ? "word" : "number";
}

/** A piece of a line, of one kind; `space` for what stands between. */
export interface Piece {
  readonly kind: TokenKind | "space";
  readonly text: string;
}

/** The lines of JSON text as it is. */
export function exactLines(text: string): readonly (readonly Piece[])[] {
  const lines: Piece[][] = [[]];
  const put = (kind: Piece["kind"], part: string): void => {
    for (const [index, line] of part.split("\n").entries()) {
      if (index > 0) lines.push([]);
      if (line !== "") lines.at(-1)!.push({ kind, text: line });
    }
  };
  let at = 0;
  for (const { kind, start, end } of tokensOf(text)) {
    if (start > at) put("space", text.slice(at, start));
    put(kind, text.slice(start, end));
    at = end;
  }
  if (at < text.length) put("space", text.slice(at));
  return lines;
}

/** Puts white space of our own between tokens: a line for each member. */
export function indentedLines(text: string): readonly (readonly Piece[])[] {
  const lines: Piece[][] = [];
  let line: Piece[] = [];
  let before = "";
  const end = (depth: number): void => {
    if (line.length > 0) lines.push(line);
    line = depth === 0 ? [] : [{ kind: "space", text: "  ".repeat(depth) }];
  };
  for (const token of tokensOf(text)) {
    const part = text.slice(token.start, token.end);
    const closes = part === "}" || part === "]";
    const opened = before === "{" || before === "[";
    if (closes ? !opened : opened) end(token.depth);
    line.push({ kind: token.kind, text: part });
    if (part === ",") end(token.depth);
    if (part === ":") line.push({ kind: "space", text: " " });
    before = token.kind === "string" || token.kind === "name" ? "" : part;
  }
  if (line.length > 0) lines.push(line);
  return lines;
}

export const indented = (text: string): string =>
  indentedLines(text)
    .map((line) => line.map((piece) => piece.text).join(""))
    .join("\n");

/** The exact text of a member of the object that the text is; `undefined` if it has none of that name. */
export function memberText(text: string, name: string): string | undefined {
  let isWanted = false;
  let value = { start: 0, end: 0 };
  for (const { kind, start, end, depth } of tokensOf(text)) {
    if (depth > 1) continue;
    const mark = text[start];
    if (mark === "," || (mark === "}" && depth === 0)) {
      if (isWanted) return text.slice(value.start, value.end);
    } else if (kind === "name") {
      isWanted = JSON.parse(text.slice(start, end)) === name;
      value = { start: 0, end: 0 };
    } else if (mark !== ":") value = { start: value.start || start, end };
  }
  return undefined;
}

/** Why a text is no JSON object, such as a schema or a payload; `undefined` where it is one. */
export function whyNoObject(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? undefined : "This is no JSON object.";
  } catch (error) {
    return `This is no JSON: ${(error as Error).message}.`;
  }
}
