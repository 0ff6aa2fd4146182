import type { JsonObject } from "../keywords.ts";
import { refillBudget, type StepBudget } from "../limits.ts";
import type { PatternCompiler } from "../patterns/compile.ts";
import { FORMATS, INTEGER_FORMATS } from "../validate/formats.ts";
import { charactersIn, isMultipleOf } from "../validate/values.ts";
import { PatternText, type SeededRandom } from "./pattern-text.ts";

const WORDS =
  "amber anchor apple autumn basil beacon birch bridge canvas cedar cherry cloud copper coral delta ember fern forest garden harbor hazel island ivory juniper lantern lemon linen maple marble meadow mint olive orchard pepper pine quartz river saffron silver spruce sunset timber tulip valley velvet violet walnut willow winter".split(
    " ",
  );

export function word(random: SeededRandom): string {
  return random.pick(WORDS);
}

/** A few words, or as many as the minimum length needs. Lengths in characters. */
function phrase(random: SeededRandom, min: number, max: number): string {
  let text = word(random);
  if (max > 16 && random.chance(0.4)) text += ` ${word(random)}`;
  while (text.length < min) text += ` ${word(random)}`;
  return text.length <= max ? text : text.slice(0, max);
}

type Maker = (random: SeededRandom) => string;

const padded = (value: number, digits = 2): string => String(value).padStart(digits, "0");

const date: Maker = (random) =>
  `${random.whole(2020, 2029)}-${padded(random.whole(1, 12))}-${padded(random.whole(1, 28))}`;
const time: Maker = (random) =>
  `${padded(random.whole(0, 23))}:${padded(random.whole(0, 59))}:${padded(random.whole(0, 59))}Z`;
const dateTime: Maker = (random) => `${date(random)}T${time(random)}`;
const hex = (random: SeededRandom, digits: number): string =>
  Array.from({ length: digits }, () => random.whole(0, 15).toString(16)).join("");
const uuid: Maker = (random) =>
  `${hex(random, 8)}-${hex(random, 4)}-4${hex(random, 3)}-${random.pick(["8", "9", "a", "b"])}${hex(random, 3)}-${hex(random, 12)}`;
const host: Maker = (random) => `${word(random)}.example.com`;
const uri: Maker = (random) => `https://${host(random)}/${word(random)}`;
const email: Maker = (random) => `${word(random)}.${word(random)}@example.com`;
const pointer: Maker = (random) => `/${word(random)}/${random.whole(0, 9)}`;

/** Addresses and names are those reserved for examples (RFC 2606, 5737, 3849), so that none is real. */
const MAKERS: Readonly<Record<string, Maker>> = {
  date,
  time,
  "date-time": dateTime,
  "iso-time": time,
  "iso-date-time": dateTime,
  duration: (random) => `P${random.whole(1, 9)}DT${random.whole(1, 23)}H`,
  uri,
  iri: uri,
  url: uri,
  "uri-reference": (random) => `/${word(random)}/${word(random)}`,
  "iri-reference": (random) => `/${word(random)}/${word(random)}`,
  "uri-template": (random) => `https://${host(random)}/{id}`,
  email,
  "idn-email": email,
  hostname: host,
  "idn-hostname": host,
  ipv4: (random) => `192.0.2.${random.whole(1, 254)}`,
  ipv6: (random) => `2001:db8::${random.whole(1, 0xffff).toString(16)}`,
  regex: (random) => `^${word(random)}$`,
  uuid,
  "json-pointer": pointer,
  "json-pointer-uri-fragment": (random) => `#${pointer(random)}`,
  "relative-json-pointer": (random) => `${random.whole(0, 3)}${pointer(random)}`,
  byte: (random) => Buffer.from(word(random)).toString("base64"),
};

const TEXT_TRIES = 12;
/** Repetitions of what a pattern may repeat, where no length needs more. */
const REPEATS = 6;

interface Rules {
  readonly min: number;
  readonly max: number;
  readonly patterns: readonly string[];
  readonly formats: readonly string[];
}

/** Makes strings for the schemas of one document. */
export class Texts {
  readonly #patterns: PatternCompiler;
  readonly #makers = new Map<string, PatternText>();

  constructor(patterns: PatternCompiler) {
    this.#patterns = patterns;
  }

  /** A string that all of the schemas allow, or `undefined` where none was found. */
  textFor(schemas: readonly JsonObject[], random: SeededRandom, steps: StepBudget): string | undefined {
    const rules = rulesOf(schemas);
    if (rules.min > rules.max) return undefined;
    for (let tried = 0; tried < TEXT_TRIES; tried++) {
      const text = this.#candidate(rules, tried, random, steps);
      if (text === undefined) continue;
      steps.spend(1 + (text.length >> 4));
      if (this.#fits(text, rules)) return text;
    }
    return undefined;
  }

  /** Whether a pattern is found in a text. */
  matches(pattern: string, text: string): boolean {
    refillBudget();
    return this.#patterns.compile(pattern).test(text);
  }

  #candidate(rules: Rules, tried: number, random: SeededRandom, steps: StepBudget): string | undefined {
    const { min, max, patterns, formats } = rules;
    // Every other try is short, for a maximum length.
    const more = tried % 2 === 1 ? Math.min(1, min) : Math.max(REPEATS, min);
    const [pattern] = patterns;
    if (pattern !== undefined) {
      steps.spend(1 + more);
      const text = this.#maker(random.chance(0.5) ? pattern : patterns.at(-1)!).make(random, steps, more);
      if (text === undefined || charactersIn(text) >= min) return text;
      const missing = min - charactersIn(text);
      steps.spend(missing >> 4);
      return random.chance(0.5)
        ? text + phrase(random, missing, missing)
        : phrase(random, missing, missing) + text;
    }
    const format = formats.length === 0 ? undefined : random.pick(formats);
    const make = format !== undefined && Object.hasOwn(MAKERS, format) ? MAKERS[format] : undefined;
    if (make !== undefined) return make(random);
    steps.spend(min >> 4);
    return phrase(random, min, max);
  }

  #maker(pattern: string): PatternText {
    let maker = this.#makers.get(pattern);
    if (maker === undefined) {
      maker = new PatternText(pattern);
      this.#makers.set(pattern, maker);
    }
    return maker;
  }

  #fits(text: string, { min, max, patterns, formats }: Rules): boolean {
    const characters = charactersIn(text);
    if (characters < min || characters > max) return false;
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
    min: Math.max(0, ...numbersIn(schemas, "minLength")),
    max: Math.min(Infinity, ...numbersIn(schemas, "maxLength")),
    patterns: values("pattern") as string[],
    formats: values("format") as string[],
  };
}

/** The limits that the schemas set by a keyword. */
export function numbersIn(schemas: readonly JsonObject[], keyword: string): number[] {
  return schemas.map((schema) => schema[keyword]).filter((value) => typeof value === "number");
}

/** How far from a single bound a number may be, in steps. */
const SPREAD = 1_000;
const NUMBER_TRIES = 8;

interface Range {
  readonly low: number;
  readonly high: number;
  fits(value: number): boolean;
}

/** A number that all of the schemas allow, or `undefined`. */
export function numberFor(
  schemas: readonly JsonObject[],
  integer: boolean,
  random: SeededRandom,
): number | undefined {
  const formats = schemas.flatMap(({ format }) => {
    const bounds = INTEGER_FORMATS.get(String(format));
    return bounds === undefined ? [] : [bounds];
  });
  const whole = integer || formats.length > 0;
  const range = rangeOf(schemas, whole);
  const step = stepOf(schemas, whole, range);
  const from = range.low > -Infinity ? range.low : range.high < 0 ? range.high - SPREAD * step : 0;
  const low = Math.max(from, ...formats.map(([min]) => min));
  const to = range.high < Infinity ? range.high : low + SPREAD * step;
  const high = Math.min(to, ...formats.map(([, max]) => max));
  const [first, last] = [Math.ceil(low / step), Math.floor(high / step)];
  const places = Array.from({ length: NUMBER_TRIES }, () => random.whole(first, last));
  const candidates = [...places, first, last, first + 1, last - 1].map((place) => rounded(place * step));
  return [...candidates, low, high, (low + high) / 2].find((value) => range.fits(value));
}

function rangeOf(schemas: readonly JsonObject[], integer: boolean): Range {
  const above = numbersIn(schemas, "exclusiveMinimum");
  const below = numbersIn(schemas, "exclusiveMaximum");
  const low = Math.max(...numbersIn(schemas, "minimum"), ...above);
  const high = Math.min(...numbersIn(schemas, "maximum"), ...below);
  const factors = numbersIn(schemas, "multipleOf");
  return {
    low,
    high,
    fits(value) {
      refillBudget();
      return (
        Number.isFinite(value) &&
        (!integer || Number.isInteger(value)) &&
        value >= low &&
        value <= high &&
        !above.includes(value) &&
        !below.includes(value) &&
        factors.every((factor) => isMultipleOf(value, factor))
      );
    },
  };
}

function stepOf(schemas: readonly JsonObject[], integer: boolean, { low, high }: Range): number {
  const factors = numbersIn(schemas, "multipleOf");
  let step = factors.reduce((one, other) => commonMultiple(one, other), integer ? 1 : 0);
  if (step === 0) step = high - low < 1 ? (high - low) / SPREAD : 0.01;
  return step > 0 ? step : 1;
}

/** A common multiple, if few tries find one. */
function commonMultiple(one: number, other: number): number {
  if (one === 0) return other;
  for (let times = 1; times <= SPREAD; times++) {
    const multiple = rounded(times * Math.max(one, other));
    refillBudget();
    if (isMultipleOf(multiple, Math.min(one, other))) return multiple;
  }
  return Math.max(one, other);
}

/** Without the last digits of a double, where 3 * 0.1 is more than 0.3. */
function rounded(value: number): number {
  return Number(value.toPrecision(15)) + 0;
}
