/** The parts of a pattern that matter to a text for it: anchors and boundaries need no character. */
export type PatternPart =
  | { readonly kind: "literal"; readonly text: string }
  /** One character of a class, in the syntax of RE2. */
  | { readonly kind: "class"; readonly source: string }
  | { readonly kind: "sequence"; readonly parts: readonly PatternPart[] }
  | { readonly kind: "choice"; readonly branches: readonly PatternPart[] }
  | { readonly kind: "repeat"; readonly part: PatternPart; readonly min: number; readonly max: number };

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
    const min = sign === undefined ? Number(least) : sign === "+" ? 1 : 0;
    if (sign === "?" || (sign === undefined && comma === undefined)) {
      return { kind: "repeat", part, min, max: sign === "?" ? 1 : min };
    }
    return { kind: "repeat", part, min, max: Number(most || Infinity) };
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

/** What re2js makes of a pattern and the work for it, estimated in advance: never exactly, but never far too little. */
interface PatternCost {
  /** Instructions of its program. */
  readonly instructions: number;
  /** Ranges of characters in all of them. */
  readonly ranges: number;
  /** Ranges merged to find out whether each character has at most one transition. */
  readonly merged: number;
  /** Whether it takes the empty text. */
  readonly isOptional: boolean;
  /** Places where it may end. */
  readonly ends: number;
  /** How many ways to begin there are, and the ranges these begin with. */
  readonly ways: number;
  readonly first: number;
}

/** Ranges of a category such as `\p{L}`. */
const RANGES_PER_CATEGORY = 700;
const NO_COST = { instructions: 0, ranges: 0, merged: 0, isOptional: true, ends: 0, ways: 0, first: 0 };

export function patternCost(part: PatternPart): PatternCost {
  if (part.kind === "literal") return character(1);
  if (part.kind === "class") return character(rangesOf(part.source));
  if (part.kind === "sequence") {
    return part.parts.reduceRight((cost, one) => followed(patternCost(one), cost), NO_COST);
  }
  if (part.kind === "choice") return part.branches.map(patternCost).reduce(either);
  return repeated(patternCost(part.part), part.min, part.max);
}

function character(ranges: number): PatternCost {
  return { instructions: 1, ranges, merged: 0, isOptional: false, ends: 1, ways: 1, first: ranges };
}

/** How many ranges a class has at most. */
function rangesOf(source: string): number {
  return source.length + RANGES_PER_CATEGORY * (source.match(/\\[pP]/g)?.length ?? 0);
}

/** One after which the rest comes. Wherever it ends, the ways into the rest are gone through. */
function followed(one: PatternCost, rest: PatternCost): PatternCost {
  return {
    instructions: one.instructions + rest.instructions,
    ranges: one.ranges + rest.ranges,
    merged: one.merged + rest.merged + one.ends * rest.ways * rest.first,
    isOptional: one.isOptional && rest.isOptional,
    ends: rest.ends + (rest.isOptional ? one.ends : 0),
    ways: one.ways + (one.isOptional ? rest.ways : 0),
    first: one.first + (one.isOptional ? rest.first : 0),
  };
}

function either(one: PatternCost, other: PatternCost): PatternCost {
  return {
    instructions: one.instructions + other.instructions + 1,
    ranges: one.ranges + other.ranges,
    merged: one.merged + other.merged,
    isOptional: one.isOptional || other.isOptional,
    ends: one.ends + other.ends,
    ways: one.ways + other.ways + 1,
    first: one.first + other.first,
  };
}

function repeated(one: PatternCost, min: number, max: number): PatternCost {
  const copies = max === Infinity ? Math.max(min, 1) : max;
  const inRow = one.isOptional ? copies : 1;
  const ways = (one.ways + 1) * inRow;
  const first = one.first * inRow;
  return {
    instructions: (one.instructions + 1) * copies,
    ranges: one.ranges * copies,
    merged: copies * (one.merged + one.ends * ways * first),
    isOptional: min === 0 || one.isOptional,
    ends: one.ends * (min < max ? copies : 1),
    ways,
    first,
  };
}
