const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = /[\t\n\r ]*/y;
const SCALAR = /[^\t\n\r ,\]}]*/y;

/**
 * Parses JSON as `JSON.parse` does. That takes a name with escapes for another one, where an object with that other name was
 * parsed before: `"gr\u00f6\u00dfe"` for `gr\u0` (https://github.com/nodejs/node/issues/63785). So whoever publishes could
 * change what others are understood to have published. A text with such names is read here.
 */
export function parseText(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasEscapedName(text) ? new Reader(text).value() : value;
}

function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf("\\"); at !== -1;) {
    const end = endOfString(text, at);
    if (text[endOf(SPACE, text, end)] === ":") return true;
    at = text.indexOf("\\", end);
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

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  pattern.test(text);
  return pattern.lastIndex;
}

/** Reads a text that is known to be JSON. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): unknown {
    const first = this.#next();
    if (first === "{") return Object.fromEntries(this.#parts("}", () => this.#member()));
    if (first === "[") return this.#parts("]", () => this.value());
    return first === '"' ? this.#string() : this.#token(endOf(SCALAR, this.#text, this.#at));
  }

  /** The next character that is no space. */
  #next(): string | undefined {
    this.#at = endOf(SPACE, this.#text, this.#at);
    return this.#text[this.#at];
  }

  /** What is between two brackets, with a comma before each but the first. */
  #parts<T>(close: string, read: () => T): T[] {
    const parts: T[] = [];
    this.#at += 1;
    while (this.#next() !== close) {
      if (parts.length > 0) this.#at += 1;
      parts.push(read());
    }
    this.#at += 1;
    return parts;
  }

  #member(): [string, unknown] {
    this.#next();
    const name = this.#string() as string;
    this.#next();
    this.#at += 1;
    return [name, this.value()];
  }

  #string(): unknown {
    return this.#token(endOfString(this.#text, this.#at + 1));
  }

  #token(end: number): unknown {
    const token = this.#text.slice(this.#at, end);
    this.#at = end;
    return JSON.parse(token);
  }
}
