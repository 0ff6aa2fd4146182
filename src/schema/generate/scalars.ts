import { type Bounds, containsNumber } from "../compatibility/bounds.ts";
import { lengthOf, matchesFormat } from "../validate/evaluate.ts";
import { spend } from "../limits.ts";
import type { TextWitness } from "../patterns/search.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { TYPE } from "../validate/values.ts";

/** A text of each format. Addresses and names are those reserved for examples (RFC 2606, 5737, 3849), so that none is real. */
const FORMAT_EXAMPLES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    date: "2026-01-31",
    time: "12:00:00Z",
    "date-time": "2026-01-31T12:00:00Z",
    "iso-time": "12:00:00Z",
    "iso-date-time": "2026-01-31T12:00:00Z",
    duration: "P1DT12H",
    uri: "https://example.com/path",
    url: "https://example.com/path",
    "uri-reference": "/path",
    "uri-template": "https://example.com/{id}",
    email: "ada@example.com",
    hostname: "host.example.com",
    ipv4: "192.0.2.1",
    ipv6: "2001:db8::1",
    regex: "^a$",
    uuid: "0b4e1c6a-5f3d-4a2e-9c1b-7d8e6f5a4b3c",
    "json-pointer": "/member/0",
    "json-pointer-uri-fragment": "#/member/0",
    "relative-json-pointer": "1/member",
    byte: "dGV4dA==",
  }),
);

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
/** Texts for patterns that are tried, the shortest of all first. */
const PATTERN_TEXTS = 12;

type TextBounds = Pick<Bounds, "minLength" | "maxLength" | "patterns" | "formats">;

/** Texts within the bounds. */
export function* textsFor(bounds: TextBounds, search: TextWitness): Generator<string> {
  const { minLength, maxLength, formats } = bounds;
  if (minLength > maxLength) return;
  for (const text of textsToTry(bounds, search)) {
    const length = lengthOf(text);
    const fits =
      length >= minLength && length <= maxLength && formats.every((format) => matchesFormat(text, format));
    if (fits) yield text;
  }
}

function* textsToTry(bounds: TextBounds, search: TextWitness): Generator<string> {
  const { patterns: matching, formats, minLength, maxLength } = bounds;
  for (let variant = 0; matching.length > 0 && variant < PATTERN_TEXTS; variant++) {
    const found = search.find({ matching, notMatching: [], minLength, maxLength }, variant);
    if (typeof found === "object") yield found.text;
    else break;
  }
  const examples = formats.length === 0 ? [...FORMAT_EXAMPLES.keys()] : formats;
  const formatted = examples.flatMap((format) => FORMAT_EXAMPLES.get(format) ?? []);
  yield* formats.length === 0 ? [...TEXTS, ...formatted] : [...formatted, ...TEXTS];
  for (const length of [minLength, maxLength]) if (length <= MAX_LENGTH) yield "a".repeat(length);
}

const STEPS_PER_NUMBER = 50;
const PLAIN_NUMBERS = [1, 0, -1, 2, 3, 7, 1_000_003, -1_000_003, 0.5, 1.5, -0.5, 0.1, 1_000_000.5];
/** The first integers that each integer format refuses. */
const PAST_FORMATS = [...INTEGER_FORMATS.values()]
  .flat()
  .map((limit) => limit + Math.sign(limit) * Math.max(1, Math.abs(limit) * Number.EPSILON));

/** Numbers within the bounds: plain ones; then multiples, and the bounds and what is near them. */
export function numbersFor(bounds: Bounds): number[] {
  spend(STEPS_PER_NUMBER);
  const { lower, upper, types } = bounds;
  const step = stepOf(bounds);
  const ends = [lower.value, upper.value].filter(Number.isFinite);
  const whole = [Math.ceil(lower.value / step), Math.floor(upper.value / step)].filter(Number.isFinite);
  const multiples = [0, ...whole].flatMap((count) => [count, count + 1, count - 1]);
  const offset = (types & TYPE.fraction) === 0 ? 1 : 0.5;
  const near = [...ends, ...ends.flatMap((end) => [Math.ceil(end), Math.floor(end)])].flatMap((end) =>
    [0, offset, -offset, offset / 50].map((away) => end + away),
  );
  const middle = (lower.value + upper.value) / 2;
  const all = [
    ...PLAIN_NUMBERS,
    ...multiples.map((count) => rounded(count * step)),
    ...near,
    middle,
    ...PAST_FORMATS,
  ];
  return [...new Set(all)].filter((value) => containsNumber(bounds, value));
}

function stepOf({ types, lower, upper, factors }: Bounds): number {
  const isWhole = (types & TYPE.fraction) === 0;
  const step = Math.max(isWhole ? 1 : 0, ...factors);
  if (step > 0) return step;
  const span = upper.value - lower.value;
  return span > 0 && span < 1 ? span / 1_000 : 0.01;
}

/** Leaves out the last digits of a double, where 3 * 0.1 is more than 0.3. */
function rounded(value: number): number {
  return Number(value.toPrecision(15)) + 0;
}
