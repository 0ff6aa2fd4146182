const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = /[\t\n\r ]*/y;
const SCALAR = /[^\t\n\r ,\]}]+/y;

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
    if (text[afterSpace(text, end)] === ":") return true;
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

function afterSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.test(text);
  return SPACE.lastIndex;
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
    if (first === "{") return this.#object();
    if (first === "[") return this.#array();
    return first === '"' ? this.#string() : this.#scalar();
  }

  /** The next character that is no space. */
  #next(): string | undefined {
    this.#at = afterSpace(this.#text, this.#at);
    return this.#text[this.#at];
  }

  #object(): object {
    const object: Record<string, unknown> = {};
    while (this.#hasMore("}")) {
      const name = this.#string();
      this.#next();
      this.#at += 1;
      const value = this.value();
      // To set this name would set the prototype.
      if (name !== "__proto__") object[name] = value;
      else
        Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true });
    }
    return object;
  }

  #array(): unknown[] {
    const items: unknown[] = [];
    while (this.#hasMore("]")) items.push(this.value());
    return items;
  }

  /** Goes past what opens the container, separates its parts or closes it. Answers whether another part follows. */
  #hasMore(close: string): boolean {
    const isOver = this.#next() === close;
    this.#at += 1;
    if (isOver) return false;
    if (this.#next() !== close) return true;
    // It is empty.
    this.#at += 1;
    return false;
  }

  #string(): string {
    return this.#token(endOfString(this.#text, this.#at + 1)) as string;
  }

  #scalar(): unknown {
    SCALAR.lastIndex = this.#at;
    SCALAR.test(this.#text);
    return this.#token(SCALAR.lastIndex);
  }

  #token(end: number): unknown {
    const token = this.#text.slice(this.#at, end);
    this.#at = end;
    return JSON.parse(token);
  }
}
