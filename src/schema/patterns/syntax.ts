/** White space of ECMA-262's `\s`, as ranges for a class; RE2's own knows only the ASCII part. */
const SPACE =
  "\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
const NOT_SPACE =
  "\\x00-\\x08\\x0e-\\x1f!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}" +
  "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";
/** What ECMA-262's `.` leaves out; RE2's leaves out the line feed only. */
const NOT_NEWLINE = "[^\\n\\r\\x{2028}\\x{2029}]";

/** Names of general categories as ECMA-262 also writes them, in RE2's short form. */
const CATEGORIES: Readonly<Record<string, string>> = {
  Letter: "L",
  Lowercase_Letter: "Ll",
  Uppercase_Letter: "Lu",
  Titlecase_Letter: "Lt",
  Modifier_Letter: "Lm",
  Other_Letter: "Lo",
  Mark: "M",
  Number: "N",
  Decimal_Number: "Nd",
  digit: "Nd",
  Punctuation: "P",
  punct: "P",
  Symbol: "S",
  Separator: "Z",
  Space_Separator: "Zs",
};

export class PatternSyntaxError extends Error {}

/**
 * Rewrites an ECMA-262 pattern (the dialect of draft-07) so that RE2 finds the same strings with it.
 * @throws `PatternSyntaxError` with a sentence part on what RE2 cannot do
 */
export function toRe2Syntax(pattern: string): string {
  const unicode = isEcma(pattern, "u");
  if (!unicode && !isEcma(pattern, "")) {
    throw new PatternSyntaxError("is not a regular expression of ECMA-262");
  }
  return new PatternTranslation(pattern, unicode).run();
}

function isEcma(pattern: string, flags: string): boolean {
  try {
    return new RegExp(pattern, flags) instanceof RegExp;
  } catch {
    return false;
  }
}

class PatternTranslation {
  readonly #pattern: string;
  readonly #unicode: boolean;
  #at = 0;

  constructor(pattern: string, unicode: boolean) {
    this.#pattern = pattern;
    this.#unicode = unicode;
  }

  run(): string {
    let out = "";
    while (this.#at < this.#pattern.length) {
      const character = this.#take();
      if (character === "\\") out += this.#escape(false);
      else if (character === ".") out += NOT_NEWLINE;
      else if (character === "[") out += this.#class();
      else if (character === "(") out += this.#group();
      else out += character;
    }
    return out;
  }

  #take(): string {
    const character = String.fromCodePoint(this.#pattern.codePointAt(this.#at)!);
    this.#at += character.length;
    return character;
  }

  #match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at;
    const match = expression.exec(this.#pattern);
    if (match === null) return undefined;
    this.#at += match[0].length;
    return match;
  }

  #group(): string {
    if (this.#match(/\?<?[=!]/y) !== undefined) {
      throw new PatternSyntaxError(
        'uses a lookahead or lookbehind, which cannot be checked in linear time; put what must not match into "not": { "pattern": … }, and what must match as well into "allOf"',
      );
    }
    // Groups are only ever matched, never read, so none needs its number or name.
    if (this.#match(/\?<[^>]*>/y) !== undefined || this.#match(/\?:/y) !== undefined) return "(?:";
    if (this.#match(/\?/y) !== undefined)
      throw new PatternSyntaxError("sets flags inside a group, which is not supported");
    return "(?:";
  }

  #class(): string {
    const negated = this.#match(/\^/y) !== undefined;
    let inner = "";
    for (let character = this.#take(); character !== "]"; character = this.#take()) {
      if (character === "\\") inner += this.#escape(true);
      else inner += character === "[" ? "\\[" : character;
    }
    if (inner === "") return negated ? "[\\x00-\\x{10ffff}]" : "[^\\x00-\\x{10ffff}]";
    return `[${negated ? "^" : ""}${inner}]`;
  }

  #escape(inClass: boolean): string {
    const unit = this.#match(/u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})/y);
    if (unit !== undefined) {
      return codePoint(String.fromCharCode(parseInt(unit[1]!, 16), parseInt(unit[2]!, 16)).codePointAt(0)!);
    }
    const code = this.#match(/u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})/y);
    if (code !== undefined) return codePoint(parseInt(code[1] ?? code[2]!, 16));
    if (this.#unicode) {
      const braced = this.#match(/u\{([0-9a-fA-F]+)\}/y);
      if (braced !== undefined) return codePoint(parseInt(braced[1]!, 16));
      const property = this.#match(
        /([pP])\{(?:(?:gc|General_Category|sc|Script|scx|Script_Extensions)=)?(\w+)\}/y,
      );
      if (property !== undefined) return `\\${property[1]}{${CATEGORIES[property[2]!] ?? property[2]}}`;
    }
    const control = this.#match(/c([A-Za-z])/y);
    if (control !== undefined) return codePoint(control[1]!.charCodeAt(0) % 32);
    return this.#letter(this.#take(), inClass);
  }

  #letter(letter: string, inClass: boolean): string {
    if (/[dDwWtnvfr]/.test(letter)) return `\\${letter}`;
    if (letter === "s") return inClass ? SPACE : `[${SPACE}]`;
    if (letter === "S") return inClass ? NOT_SPACE : `[${NOT_SPACE}]`;
    if (letter === "b") return inClass ? "\\x08" : "\\b";
    if (letter === "B") return inClass ? "B" : "\\B";
    if (letter === "0" && this.#match(/(?=\d)/y) === undefined) return "\\x00";
    if (letter === "k" && (this.#unicode || /\(\?</.test(this.#pattern))) throw backreference();
    if (/\d/.test(letter)) throw backreference();
    // Any other letter stands for itself (outside unicode mode); any other sign is written with its backslash.
    return /[A-Za-z_]/.test(letter) || letter.charCodeAt(0) > 0x7e ? letter : `\\${letter}`;
  }
}

function codePoint(code: number): string {
  return `\\x{${code.toString(16)}}`;
}

function backreference(): PatternSyntaxError {
  return new PatternSyntaxError(
    "refers back to a group, which cannot be checked in linear time, or has a number behind a backslash, as older dialects write characters; write such a character as \\xNN with two hexadecimal digits",
  );
}
