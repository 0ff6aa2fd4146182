import { RE2JS } from "re2js";
import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { PatternPart } from "../patterns/ast.ts";

/** The last character that is looked at for a class without ASCII characters. */
const LAST_LOOKED_AT = 0x2fff;

/**
 * Makes a text in which a pattern is found; `undefined` where a class has no character that was found.
 * @param more how often at most something is repeated beyond what it must be
 */
export function patternText(part: PatternPart, random: SeededRandom, more: number): string | undefined {
  spend(4);
  const joined = (parts: readonly PatternPart[]): string | undefined => {
    let text = "";
    for (const inner of parts) {
      const piece = patternText(inner, random, more);
      if (piece === undefined) return undefined;
      text += piece;
    }
    return text;
  };
  switch (part.kind) {
    case "literal":
      return part.text;
    case "class":
      spend(20);
      return random.pick(alphabetOf(part));
    case "choice":
      return patternText(random.pick(part.branches), random, more);
    case "sequence":
      return joined(part.parts);
    case "repeat": {
      const times = random.whole(part.min, Math.min(part.max, part.min + more));
      return joined(Array.from({ length: times }, () => part.part));
    }
    default:
      return undefined;
  }
}

/** Letters and digits of the class, or else its signs, or else its first character beyond ASCII. */
const alphabetOf = memoize(({ source }: { readonly source: string }): readonly string[] => {
  spend(1_000);
  const expression = RE2JS.compile(source);
  const has = (code: number): boolean => expression.matches(String.fromCodePoint(code));
  const ascii = range(0x20, 0x7e)
    .filter(has)
    .map((code) => String.fromCodePoint(code));
  const plain = ascii.filter((character) => /[A-Za-z0-9]/.test(character));
  if (ascii.length > 0) return plain.length > 0 ? plain : ascii;
  const named = [...source.matchAll(/\\x\{([0-9a-f]+)\}|([^\0-\x7f])/gu)].map(([, code, character]) =>
    code === undefined ? character!.codePointAt(0)! : parseInt(code, 16),
  );
  const other = [...named, ...range(0xa0, LAST_LOOKED_AT), ...range(0, 0x1f)].find(
    (code) => (code < 0xd800 || code > 0xdfff) && has(code),
  );
  return other === undefined ? [] : [String.fromCodePoint(other)];
});

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** A random generator whose values depend on seed and stream alone; for samples, never for secrets. */
export class SeededRandom {
  #state: number;

  /** @param stream distinguishes the samples of one seed; both whole numbers from 0 */
  constructor(seed: number, stream: number) {
    this.#state = 0x9e3779b9;
    for (const part of [seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0, stream >>> 0]) {
      this.#state = mixed(this.#state ^ part);
    }
  }

  /** In [0, 1). Mulberry32. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    return mixed(this.#state) / 2 ** 32;
  }

  /** Both ends included. */
  whole(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  chance(share: number): boolean {
    return this.fraction() < share;
  }

  /** One of the list; `undefined` of an empty one. */
  pick<T>(list: readonly T[]): T {
    return list[this.whole(0, list.length - 1)]!;
  }

  shuffled<T>(list: readonly T[]): T[] {
    const out = [...list];
    for (let at = out.length - 1; at > 0; at--) {
      const other = this.whole(0, at);
      [out[at], out[other]] = [out[other]!, out[at]!];
    }
    return out;
  }
}

function mixed(state: number): number {
  let word = Math.imul(state ^ (state >>> 15), 1 | state);
  word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
  return (word ^ (word >>> 14)) >>> 0;
}
