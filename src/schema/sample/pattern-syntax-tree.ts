/** What a pattern is made of, as far as making a text for it goes: anchors and boundaries ask for no character. */
export type PatternPart =
  | { readonly kind: "literal"; readonly text: string }
  /** One character of a class, in the syntax of RE2. */
  | { readonly kind: "class"; readonly source: string }
  | { readonly kind: "sequence"; readonly parts: readonly PatternPart[] }
  | { readonly kind: "choice"; readonly branches: readonly PatternPart[] }
  | { readonly kind: "repeat"; readonly part: PatternPart; readonly least: number; readonly most: number };

const EMPTY_PATTERN: PatternPart = { kind: "sequence", parts: [] };
const CONTROLS: Readonly<Record<string, string>> = { t: "\t", n: "\n", v: "\v", f: "\f", r: "\r" };

/** Reads a pattern that `toRe2Syntax` has written; it holds neither named groups nor lookarounds. */
export function readPattern(source: string): PatternPart {
  return new PatternReader(source).choice();
}

class PatternReader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  choice(): PatternPart {
    const branches = [this.#sequence()];
    while (this.#take(/\|/y) !== undefined) branches.push(this.#sequence());
    return branches.length === 1 ? branches[0]! : { kind: "choice", branches };
  }

  #sequence(): PatternPart {
    const parts: PatternPart[] = [];
    while (this.#at < this.#source.length && !/[|)]/.test(this.#source[this.#at]!)) {
      parts.push(this.#repeated(this.#atom()));
    }
    return { kind: "sequence", parts };
  }

  #repeated(part: PatternPart): PatternPart {
    const counted = this.#take(/(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y);
    if (counted === undefined) return part;
    const [, sign, least, comma, most] = counted;
    if (sign !== undefined) {
      return {
        kind: "repeat",
        part,
        least: sign === "+" ? 1 : 0,
        most: sign === "?" ? 1 : Infinity,
      };
    }
    const times = Number(least);
    return {
      kind: "repeat",
      part,
      least: times,
      most: comma === undefined ? times : most === "" ? Infinity : Number(most),
    };
  }

  #atom(): PatternPart {
    if (this.#take(/\(\?:/y) !== undefined) {
      const inner = this.choice();
      this.#take(/\)/y);
      return inner;
    }
    if (this.#take(/[$^]|\\[bB]/y) !== undefined) return EMPTY_PATTERN;
    const set = this.#take(/\[(?:\\.|[^\]\\])*\]|\\[dDwW]|\\[pP]\{\w+\}/uy);
    if (set !== undefined) return { kind: "class", source: set[0] };
    const code = this.#take(/\\x(?:\{([0-9a-f]+)\}|([0-9a-f]{2}))/y);
    if (code !== undefined) {
      return { kind: "literal", text: String.fromCodePoint(parseInt(code[1] ?? code[2]!, 16)) };
    }
    const control = this.#take(/\\([tnvfr])/y);
    if (control !== undefined) return { kind: "literal", text: CONTROLS[control[1]!]! };
    const other = this.#take(/\\?([^])/uy);
    return { kind: "literal", text: other?.[1] ?? "" };
  }

  #take(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at;
    const match = expression.exec(this.#source);
    if (match === null) return undefined;
    this.#at += match[0].length;
    return match;
  }
}
