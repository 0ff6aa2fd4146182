import { INTEGER_FORMATS } from "../formats.ts";
import { isMultipleOf } from "../multiple-of.ts";
import type { Task } from "../task.ts";
import { acceptsFormat, lengthOf } from "./accepts.ts";
import type { Facts } from "./facts.ts";
import type { TextSearch } from "./text-search.ts";
import { TYPE } from "./types.ts";

/** Texts of each format that is checked, to make others from. */
const OF_FORMAT: Readonly<Record<string, readonly string[]>> = {
  email: ["ada@example.com", "a@b.co"],
  "idn-email": ["ä@example.com"],
  uuid: ["0b0f3c3e-6f0b-4c69-9d6f-1a2b3c4d5e6f"],
  "date-time": ["2026-01-31T12:00:00Z"],
  "iso-date-time": ["2026-01-31T12:00:00Z", "2026-01-31 12:00:00"],
  date: ["2026-01-31"],
  time: ["12:00:00Z"],
  "iso-time": ["12:00:00Z", "12:00:00"],
  duration: ["P1D"],
  ipv4: ["192.0.2.1"],
  ipv6: ["2001:db8::1"],
  hostname: ["example.com"],
  "idn-hostname": ["bücher.example"],
  uri: ["https://example.com/", "urn:x"],
  url: ["https://example.com/"],
  "uri-reference": ["/path", "https://example.com/"],
  iri: ["https://example.com/ä"],
  "iri-reference": ["/ä"],
  "uri-template": ["/{id}"],
  "json-pointer": ["/a"],
  "json-pointer-uri-fragment": ["#/a"],
  "relative-json-pointer": ["0"],
  regex: ["[a-z]"],
  byte: ["AAAA"],
};
const PLAIN = [
  "text",
  "",
  "a",
  "7",
  "A b",
  "-",
  "ä",
  "Not-a-Format!",
  "a text of some length, made to be longer than most",
];
const MAX_LENGTH = 5_000;
/** The first that each format of whole numbers does not take. */
const INTEGERS_PAST_FORMATS = [...INTEGER_FORMATS.values()].flatMap(([least, most]) => [
  nextAfter(most),
  -nextAfter(-least),
]);

/** Some texts that keep to what is known; others may keep to it as well. */
export function* textsFor(facts: Facts, search: TextSearch): Task<string[]> {
  const { patterns, formats, minLength, maxLength } = facts;
  const texts = [...formats.flatMap((format) => OF_FORMAT[format] ?? []), ...PLAIN];
  if (formats.length === 0) texts.push(...Object.values(OF_FORMAT).flat());
  if (patterns.length > 0) {
    const found = yield* search.find({ matching: patterns, notMatching: [], minLength, maxLength });
    if (typeof found === "object") texts.unshift(found.text);
  }
  for (const length of [minLength, maxLength]) if (length <= MAX_LENGTH) texts.push("a".repeat(length));
  return [...new Set(texts)].filter(
    (text) =>
      lengthOf(text) >= minLength &&
      lengthOf(text) <= maxLength &&
      formats.every((format) => acceptsFormat(text, format)),
  );
}

/** Some numbers of the type between the bounds: the bounds themselves, small ones, and multiples. */
export function numbersFor({ lower, upper, factors }: Facts, type: number): number[] {
  const step = type === TYPE.integer ? 1 : 0.5;
  const near = [lower.value, upper.value].filter(Number.isFinite);
  const whole = near.flatMap((bound) => [Math.ceil(bound), Math.floor(bound)]);
  const around = [...near, ...whole].flatMap((bound) => [
    bound,
    bound + step,
    bound - step,
    bound + step / 50,
  ]);
  const between = Number.isFinite(lower.value + upper.value) ? [(lower.value + upper.value) / 2] : [];
  const plain =
    type === TYPE.integer ? [1, 0, -1, 2, 3, 7, 1_000_003, -1_000_003] : [0.5, 1.5, -0.5, 0.1, 1_000_000.5];
  const multiples = factors.flatMap((factor) =>
    [0, 1, -1, Math.ceil(lower.value / factor), Math.floor(upper.value / factor)]
      .filter(Number.isFinite)
      .map((count) => count * factor),
  );
  const pastFormats = type === TYPE.integer ? INTEGERS_PAST_FORMATS : [];
  return [...new Set([...plain, ...around, ...between, ...multiples, ...pastFormats])].filter(
    (value) =>
      Number.isInteger(value) === (type === TYPE.integer) &&
      (lower.exclusive ? value > lower.value : value >= lower.value) &&
      (upper.exclusive ? value < upper.value : value <= upper.value) &&
      factors.every((factor) => isMultipleOf(value, factor)),
  );
}

/** The next larger whole number that a double can hold. */
function nextAfter(value: number): number {
  return value + Math.max(1, value * Number.EPSILON);
}
