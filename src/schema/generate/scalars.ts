import { type Bounds, containsNumber } from "../compatibility/bounds.ts";
import { lengthOf, matchesFormat } from "../compatibility/evaluate.ts";
import { spend } from "../limits.ts";
import { type PatternPart, readPattern } from "../patterns/ast.ts";
import type { PatternCompiler } from "../patterns/compile.ts";
import { toRe2Syntax } from "../patterns/syntax.ts";
import { isMultipleOf, TYPE } from "../validate/values.ts";
import { patternText, SeededRandom } from "./pattern-text.ts";

const WORDS =
  "amber anchor apple autumn basil beacon birch bridge canvas cedar cherry cloud copper coral delta ember fern forest garden harbor hazel island ivory juniper lantern lemon linen maple marble meadow mint olive orchard pepper pine quartz river saffron silver spruce sunset timber tulip valley velvet violet walnut willow winter".split(
    " ",
  );

export function word(random: SeededRandom): string {
  return random.pick(WORDS);
}

/** A few words, or as many as the minimum length needs. Lengths in characters. */
function phrase(random: SeededRandom, min: number, max: number): string {
  spend(min >> 2);
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
const MAKERS: ReadonlyMap<string, Maker> = new Map(
  Object.entries({
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
  } satisfies Record<string, Maker>),
);

/** A text of each format. */
export const FORMAT_EXAMPLES: ReadonlyMap<string, string> = new Map(
  Array.from(MAKERS, ([format, make]) => [format, make(new SeededRandom(1, 0))]),
);

const TEXT_TRIES = 12;
/** Repetitions of what a pattern may repeat, where no length needs more. */
const REPEATS = 6;

type TextBounds = Pick<Bounds, "minLength" | "maxLength" | "patterns" | "formats">;

/** Makes texts for the schemas of one document. */
export class TextMaker {
  readonly #patterns: PatternCompiler;
  readonly #parts = new Map<string, PatternPart>();

  constructor(patterns: PatternCompiler) {
    this.#patterns = patterns;
  }

  /** A text within the bounds, or `undefined` where none was found. */
  textFor(bounds: TextBounds, random: SeededRandom): string | undefined {
    if (bounds.minLength > bounds.maxLength) return undefined;
    for (let tried = 0; tried < TEXT_TRIES; tried++) {
      const text = this.#candidate(bounds, tried, random);
      if (text !== undefined && this.#fits(text, bounds)) return text;
    }
    return undefined;
  }

  #candidate(bounds: TextBounds, tried: number, random: SeededRandom): string | undefined {
    const { minLength: min, maxLength: max, patterns, formats } = bounds;
    if (patterns.length > 0) {
      // Every other try is short, for a maximum length.
      const more = tried % 2 === 1 ? Math.min(1, min) : Math.max(REPEATS, min);
      spend(1 + more);
      const text = patternText(this.#part(random.pick(patterns)), random, more);
      const missing = text === undefined ? 0 : min - lengthOf(text);
      if (text === undefined || missing <= 0) return text;
      const filler = phrase(random, missing, missing);
      return random.chance(0.5) ? text + filler : filler + text;
    }
    const make = formats.length === 0 ? undefined : MAKERS.get(random.pick(formats));
    return make === undefined ? phrase(random, min, max) : make(random);
  }

  #part(pattern: string): PatternPart {
    let part = this.#parts.get(pattern);
    if (part === undefined) this.#parts.set(pattern, (part = readPattern(toRe2Syntax(pattern))));
    return part;
  }

  #fits(text: string, { minLength, maxLength, patterns, formats }: TextBounds): boolean {
    const length = lengthOf(text);
    return (
      length >= minLength &&
      length <= maxLength &&
      patterns.every((pattern) => this.#patterns.compile(pattern).test(text)) &&
      formats.every((format) => matchesFormat(text, format))
    );
  }
}

/** How far from a single bound a number may be, in steps. */
const SPREAD = 1_000;
/** In a wider range numbers are near zero, or near the bound that is next to it. */
const WIDE = 1e9;
const NUMBER_TRIES = 8;

/** A number within the bounds, or `undefined` where none was found. */
export function numberFor(bounds: Bounds, random: SeededRandom): number | undefined {
  const { lower, upper } = bounds;
  const step = stepOf(bounds);
  let [low, high] = [lower.value, upper.value];
  if (high - low > WIDE) {
    const nearest = Math.min(Math.max(0, low), high);
    low = nearest === high ? high - SPREAD * step : nearest;
    high = Math.min(high, low + SPREAD * step);
  }
  const [first, last] = [Math.ceil(low / step), Math.floor(high / step)];
  const places = Array.from({ length: NUMBER_TRIES }, () => random.whole(first, last));
  const candidates = [...places, first, last, first + 1, last - 1].map((place) => rounded(place * step));
  return [...candidates, low, high, (low + high) / 2].find((value) => containsNumber(bounds, value));
}

function stepOf({ types, lower, upper, factors }: Bounds): number {
  const isWhole = (types & TYPE.fraction) === 0;
  const step = factors.reduce(commonMultiple, isWhole ? 1 : 0);
  if (step > 0) return step;
  const span = upper.value - lower.value;
  return span > 0 && span < 1 ? span / SPREAD : 0.01;
}

/** A common multiple, if few tries find one. */
function commonMultiple(one: number, other: number): number {
  if (one === 0) return other;
  for (let times = 1; times <= SPREAD; times++) {
    const multiple = rounded(times * Math.max(one, other));
    if (isMultipleOf(multiple, Math.min(one, other))) return multiple;
  }
  return Math.max(one, other);
}

/** Without the last digits of a double, where 3 * 0.1 is more than 0.3. */
function rounded(value: number): number {
  return Number(value.toPrecision(15)) + 0;
}
