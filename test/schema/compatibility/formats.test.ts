import { expect, test } from "vitest";
import { lengthOf } from "../../faults/length.ts";
import { compare } from "../../../src/schema/compatibility/compare.ts";
import { matchesFormat } from "../../../src/schema/validate/evaluate.ts";
import { WIDER_FORMATS } from "../../../src/schema/compatibility/rules.ts";
import { budget, VALIDATION_STEPS } from "../../../src/schema/limits.ts";
import { randomFrom } from "./random-payloads.ts";
import { at, text, whole } from "./rule-cases.ts";

/** What one format or another takes, and some that hardly any does. */
const SEEDS = [
  [
    "",
    "1",
    "a'b",
    "a b",
    "<x>",
    "a^b",
    "a\\b",
    "é",
    "\u{1f600}",
    "AA==",
    "Zm9v",
    "P1D",
    "PT5M",
    "(",
    "[a-z]",
  ],
  [
    "ada@example.com",
    "o'neil@a-b.co",
    "a{b}|c@x.y",
    "a@ab--c.de",
    "ä@bücher.de",
    '"a b"@x.y',
    "a@[192.0.2.1]",
  ],
  ["0b0f3c3e-6f0b-4c69-9d6f-1a2b3c4d5e6f", "urn:uuid:0b0f3c3e-6f0b-4c69-9d6f-1a2b3c4d5e6f"],
  ["2026-01-31T12:00:00Z", "2026-06-30T23:59:60Z", "2026-01-31 12:00:00", "2026-01-31T12:00:00+01"],
  ["2026-01-31t12:00:00.123+01:00", "2026-01-31", "2024-02-29", "12:00:00Z", "12:00:00", "23:59:60Z"],
  [
    "24:00:00Z",
    "12:00:00.5-03:30",
    "12:00:00+0100",
    "192.0.2.1",
    "01.1.1.1",
    "2001:db8::1",
    "::ffff:1.2.3.4",
  ],
  [
    "example.com",
    "a.b.c.",
    "xn--bcher-kva.example",
    "ab--c.de",
    "bücher.example",
    "a_b.c",
    "https://example.com/",
  ],
  [
    "http://u:p@[::1]:80/a%20b?q=1#f",
    "http://a:b/",
    "urn:x",
    "mailto:a@b",
    "//x.y/z",
    "/path",
    "?q",
    "#f",
    "../a",
  ],
  ["a:b:c", "x:", "http://ä.de/\u{e000}?\u{e000}", "/{id}", "{a.b}", "{+x:3,y*}", "a{b", "%zz", "a%20b"],
  ["/a", "/a~0b/~1", "/a b", "#/a", "#/a%25", "0", "1/a", "0#"],
].flat();
const CHARACTERS = Array.from("abcXZ019-._~:/?#[]@!$&'()*+,;=%{}|^`\\\"<> äTtZP");

/** Seeds with some characters changed, or put together. */
function* texts(count: number): Generator<string> {
  yield* SEEDS;
  const random = randomFrom(7);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  for (let made = 0; made < count; made++) {
    let characters = Array.from(pick(SEEDS));
    for (let edits = Math.ceil(random() * 3); edits > 0; edits--) {
      const place = Math.floor(random() * (characters.length + 1));
      const removed = random() < 0.5 ? 1 : 0;
      const put = random() < 0.8 ? [pick(CHARACTERS)] : Array.from(pick(SEEDS));
      characters = characters.toSpliced(place, removed, ...(random() < 0.8 ? put : []));
    }
    yield characters.join("");
  }
}

const PAIRS = [...WIDER_FORMATS].flatMap(([format, wider]) => wider.map((one) => [format, one] as const));

test("a wider format accepts all that a narrower one accepts", () => {
  const taken = new Map([...WIDER_FORMATS.keys()].map((format) => [format, 0]));
  for (const one of texts(lengthOf("schema/compatibility/formats").texts)) {
    budget.left = VALIDATION_STEPS;
    for (const [format, wider] of WIDER_FORMATS) {
      if (!matchesFormat(one, format)) continue;
      taken.set(format, taken.get(format)! + 1);
      for (const other of wider) expect(matchesFormat(one, other), `${other} ${one}`).toBe(true);
    }
  }
  // A text that no format takes shows nothing.
  expect(Math.min(...taken.values())).toBeGreaterThanOrEqual(5);
});

test.each(PAIRS)("%s may become %s for producers, and the other way round for consumers", (format, wider) => {
  const [narrow, wide] = [at({ ...text, format }), at({ ...text, format: wider })];
  expect(compare(narrow, wide, { mode: "producer" }).breaks).toEqual([]);
  expect(compare(narrow, wide).breaks).toMatchObject([{ side: "consumer", certainty: "proven" }]);
  expect(compare(wide, narrow).breaks).toMatchObject([{ side: "producer", certainty: "proven" }]);
});

const formatted = (format: string) => at({ ...whole, format });

test("the same is true of formats of whole numbers and of equal bounds", () => {
  expect(compare(formatted("int32"), formatted("int64"), { mode: "producer" }).breaks).toEqual([]);
  expect(compare(formatted("int64"), formatted("int32")).breaks).toMatchObject([
    { side: "producer", certainty: "proven" },
  ]);
  const bounded = at({ ...whole, minimum: -(2 ** 31), maximum: 2 ** 31 - 1 });
  expect(compare(bounded, formatted("int32")).breaks).toEqual([]);
  expect(compare(at({ ...whole, maximum: 2 ** 31, minimum: 0 }), formatted("int32")).breaks).toMatchObject([
    { side: "producer", certainty: "proven" },
    { side: "consumer", certainty: "proven" },
  ]);
});
