import { type Bounds, containsNumber } from "../compatibility/bounds.ts";
import { lengthOf, matchesFormat } from "../validate/evaluate.ts";
import { spend } from "../limits.ts";
import type { TextWitness } from "../patterns/search.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { TYPE } from "../validate/values.ts";
import { SeededRandom } from "./seeded-random.ts";

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
    url: uri,
    "uri-reference": (random) => `/${word(random)}/${word(random)}`,
    "uri-template": (random) => `https://${host(random)}/{id}`,
    email,
    hostname: host,
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
const FORMAT_EXAMPLES: ReadonlyMap<string, string> = new Map(
  Array.from(MAKERS, ([format, make]) => [format, make(new SeededRandom(1, 0))]),
);

const TEXT_TRIES = 12;
/** A text for a pattern gets up to so many characters, where the pattern needs fewer. */
const USUAL_LENGTH = 8;

type TextBounds = Pick<Bounds, "minLength" | "maxLength" | "patterns" | "formats">;

/** Texts within the bounds: some by chance, or else plain ones. */
export function* textsFor(bounds: TextBounds, search: TextWitness, random?: SeededRandom): Generator<string> {
  const { minLength, maxLength, formats } = bounds;
  if (minLength > maxLength) return;
  const texts = random === undefined ? plainTexts(bounds, search) : textsByChance(bounds, search, random);
  for (const text of texts) {
    const length = lengthOf(text);
    const fits =
      length >= minLength && length <= maxLength && formats.every((format) => matchesFormat(text, format));
    if (fits) yield text;
  }
}

function* textsByChance(bounds: TextBounds, search: TextWitness, random: SeededRandom): Generator<string> {
  const { minLength, maxLength, patterns, formats } = bounds;
  for (let tried = 0; tried < TEXT_TRIES; tried++) {
    if (patterns.length === 0) {
      const make = formats.length === 0 ? undefined : MAKERS.get(random.pick(formats));
      yield make === undefined ? phrase(random, minLength, maxLength) : make(random);
      continue;
    }
    // Every other one is as short as it may be: not all patterns allow more.
    const longer = Math.min(Math.max(minLength, random.whole(1, USUAL_LENGTH)), maxLength);
    yield* textOf({ ...bounds, minLength: tried % 2 === 0 ? longer : minLength }, search, random);
  }
}

function textOf(bounds: TextBounds, search: TextWitness, random?: SeededRandom): readonly string[] {
  const { patterns: matching, minLength, maxLength } = bounds;
  const text = search.find({ matching, notMatching: [], minLength, maxLength }, random);
  return typeof text === "object" ? [text.text] : [];
}

/** Plain texts, and those that only one of two similar formats takes. */
const TEXTS = [
  "text",
  "",
  "a",
  "7",
  "A b",
  "-",
  "ä",
  "Not-a-Format!",
  "a text of some length, made to be longer than most",
  "ä@example.com",
  "2026-01-31 12:00:00",
  "12:00:00",
  "bücher.example",
  "urn:x",
  "https://example.com/ä",
  "/ä",
];
const MAX_LENGTH = 10_000;

function plainTexts(bounds: TextBounds, search: TextWitness): Iterable<string> {
  const { patterns, formats, minLength, maxLength } = bounds;
  const examples = formats.length === 0 ? [...FORMAT_EXAMPLES.keys()] : formats;
  const formatted = examples.flatMap((format) => FORMAT_EXAMPLES.get(format) ?? []);
  const long = [minLength, maxLength].filter((length) => length <= MAX_LENGTH);
  return new Set([
    ...(patterns.length === 0 ? [] : textOf(bounds, search)),
    ...(formats.length === 0 ? [...TEXTS, ...formatted] : [...formatted, ...TEXTS]),
    ...long.map((length) => "a".repeat(length)),
  ]);
}

/** How far from a single bound a number by chance may be, in steps. */
const SPREAD = 1_000;
/** In a wider range numbers by chance are near zero, or near the bound that is next to it. */
const WIDE = 1e9;
const NUMBER_TRIES = 8;
const STEPS_PER_NUMBER = 50;
const PLAIN_NUMBERS = [1, 0, -1, 2, 3, 7, 1_000_003, -1_000_003, 0.5, 1.5, -0.5, 0.1, 1_000_000.5];
/** The first integers that each integer format refuses. */
const PAST_FORMATS = [...INTEGER_FORMATS.values()]
  .flat()
  .map((limit) => limit + Math.sign(limit) * Math.max(1, Math.abs(limit) * Number.EPSILON));

/** Numbers within the bounds: some by chance, or else plain ones; then multiples, and the bounds and what is near them. */
export function numbersFor(bounds: Bounds, random?: SeededRandom): number[] {
  spend(STEPS_PER_NUMBER);
  const { lower, upper, types } = bounds;
  const step = stepOf(bounds);
  const first = random === undefined ? PLAIN_NUMBERS : numbersByChance(bounds, step, random);
  const ends = [lower.value, upper.value].filter(Number.isFinite);
  const whole = [Math.ceil(lower.value / step), Math.floor(upper.value / step)].filter(Number.isFinite);
  const multiples = [0, ...whole].flatMap((count) => [count, count + 1, count - 1]);
  const offset = (types & TYPE.fraction) === 0 ? 1 : 0.5;
  const near = [...ends, ...ends.flatMap((end) => [Math.ceil(end), Math.floor(end)])].flatMap((end) =>
    [0, offset, -offset, offset / 50].map((away) => end + away),
  );
  const middle = (lower.value + upper.value) / 2;
  const all = [
    ...first,
    ...multiples.map((count) => rounded(count * step)),
    ...near,
    middle,
    ...PAST_FORMATS,
  ];
  return [...new Set(all)].filter((value) => containsNumber(bounds, value));
}

function numbersByChance({ lower, upper }: Bounds, step: number, random: SeededRandom): number[] {
  let [low, high] = [lower.value, upper.value];
  if (high - low > WIDE) {
    const nearest = Math.min(Math.max(0, low), high);
    low = nearest === high ? high - SPREAD * step : nearest;
    high = Math.min(high, low + SPREAD * step);
  }
  const [first, last] = [Math.ceil(low / step), Math.floor(high / step)];
  return Array.from({ length: NUMBER_TRIES }, () => rounded(random.whole(first, last) * step));
}

function stepOf({ types, lower, upper, factors }: Bounds): number {
  const isWhole = (types & TYPE.fraction) === 0;
  const step = Math.max(isWhole ? 1 : 0, ...factors);
  if (step > 0) return step;
  const span = upper.value - lower.value;
  return span > 0 && span < 1 ? span / SPREAD : 0.01;
}

/** Leaves out the last digits of a double, where 3 * 0.1 is more than 0.3. */
function rounded(value: number): number {
  return Number(value.toPrecision(15)) + 0;
}
