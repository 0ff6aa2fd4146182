import { refillBudget } from "../budget.ts";
import { FORMATS } from "../formats.ts";
import type { JsonObject } from "../keywords.ts";
import { PatternCompiler } from "../pattern.ts";
import type { Effort } from "./effort.ts";
import { formatText } from "./format-text.ts";
import { PatternText } from "./pattern-text.ts";
import type { SeededRandom } from "./random.ts";
import { phrase } from "./words.ts";

const TEXT_TRIES = 12;
/** How often something that may be repeated is, at most, where no length asks for more. */
const REPEATS = 6;

interface Rules {
  readonly least: number;
  readonly most: number;
  readonly patterns: readonly string[];
  readonly formats: readonly string[];
}

/** Makes strings for the schemas of one document. */
export class Texts {
  readonly #compiler = new PatternCompiler();
  readonly #makers = new Map<string, PatternText>();

  /** A string that all of the schemas allow, or `undefined` where none was found. */
  textFor(schemas: readonly JsonObject[], random: SeededRandom, effort: Effort): string | undefined {
    const rules = rulesOf(schemas);
    if (rules.least > rules.most) return undefined;
    for (let tried = 0; tried < TEXT_TRIES; tried++) {
      const text = this.#candidate(rules, tried, random, effort);
      if (text === undefined) continue;
      effort.spend(1 + (text.length >> 4));
      if (this.#fits(text, rules)) return text;
    }
    return undefined;
  }

  /** Whether a pattern is found in a text. */
  matches(pattern: string, text: string): boolean {
    refillBudget();
    return this.#compiler.compile(pattern).test(text);
  }

  #candidate(rules: Rules, tried: number, random: SeededRandom, effort: Effort): string | undefined {
    const { least, most, patterns, formats } = rules;
    // Every other try is a short one, for lengths with an upper end.
    const more = tried % 2 === 1 ? Math.min(1, least) : Math.max(REPEATS, least);
    const [pattern] = patterns;
    if (pattern !== undefined) {
      effort.spend(1 + more);
      const text = this.#maker(random.chance(0.5) ? pattern : patterns.at(-1)!).make(random, effort, more);
      if (text === undefined || length(text) >= least) return text;
      const missing = least - length(text);
      effort.spend(missing >> 4);
      return random.chance(0.5)
        ? text + phrase(random, missing, missing)
        : phrase(random, missing, missing) + text;
    }
    const format = formats.length === 0 ? undefined : random.pick(formats);
    const formatted = format === undefined ? undefined : formatText(format, random);
    if (formatted !== undefined) return formatted;
    effort.spend(least >> 4);
    return phrase(random, least, most);
  }

  #maker(pattern: string): PatternText {
    let maker = this.#makers.get(pattern);
    if (maker === undefined) {
      maker = new PatternText(pattern);
      this.#makers.set(pattern, maker);
    }
    return maker;
  }

  #fits(text: string, { least, most, patterns, formats }: Rules): boolean {
    const characters = length(text);
    if (characters < least || characters > most) return false;
    return (
      patterns.every((pattern) => this.matches(pattern, text)) &&
      formats.every((format) => hasFormat(format, text))
    );
  }
}

function hasFormat(format: string, text: string): boolean {
  const check = Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  refillBudget();
  return typeof check !== "function" || check(text);
}

function rulesOf(schemas: readonly JsonObject[]): Rules {
  const values = (keyword: string): unknown[] =>
    schemas.map((schema) => schema[keyword]).filter((value) => value !== undefined);
  return {
    least: Math.max(0, ...(values("minLength") as number[])),
    most: Math.min(Infinity, ...(values("maxLength") as number[])),
    patterns: values("pattern") as string[],
    formats: values("format") as string[],
  };
}

/** In characters, as JSON Schema counts: those outside the basic plane have two UTF-16 units. */
function length(text: string): number {
  let surrogates = 0;
  for (const _ of text.matchAll(/[\ud800-\udbff](?=[\udc00-\udfff])/g)) surrogates++;
  return text.length - surrogates;
}
