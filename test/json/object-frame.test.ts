import * as fc from "fast-check";
import { expect, test } from "vitest";
import { framesObject } from "../../src/json/nodes.ts";
import { scanJson } from "../../src/json/scanner.ts";

const frames = (text: string): boolean => framesObject(Buffer.from(text), "key");

test.each([
  ['{"a":1}', true],
  ['{"a":{"key":[{"b":"}"},"]"]}}', true],
  ['{"a":{"b":"\\"}"}}', true],
  ['{"é":"𝄞","keys":1}', true],
  // Not JSON, and yet nothing of it gets out.
  ['{"a":01,"b":tru}', true],
  ['{"a" 1,]}', false],
  ["", false],
  ["{", false],
  ["{}", false],
  ["{1}", false],
  ["[]", false],
  [' {"a":1}', false],
  ['{"a":1} ', false],
  ['{"a":1}}', false],
  ['{"a":1}{"a":1}', false],
  ['{"a":1},{"a":1}', false],
  ['{"a":{"b":1}', false],
  ['{"a":"}', false],
  ['{"a":{"b":"\\"}}', false],
  ['{"a":{"b":"\\\\"}}', true],
  ['{"a":{"b":"\\', false],
  // The member is there, or may be.
  ['{"a":1,"key":2}', false],
  ['{"k\\u0065y":2}', false],
  ['{"a":"key"}', false],
])("%s: %s", (text, isFramed) => {
  expect(frames(text)).toBe(isFramed);
});

/** Objects, of which pieces are missing, doubled or in another place. */
const member = fc.constantFrom(
  '"}"',
  '"{"',
  '"],["',
  '"\\""',
  "1",
  "[1,2]",
  '{"b":"}"}',
  '[{"b":[]}]',
  '{"b":"\\\\"}',
);
const change = fc.tuple(fc.nat(24), fc.nat(2), fc.constantFrom("", "{", "}", "[", "]", '"', "\\", ","));
const line = fc
  .tuple(member, member, fc.array(change, { maxLength: 2 }))
  .map(([first, second, changes]) =>
    changes.reduce(
      (text, [at, length, piece]) => text.slice(0, at) + piece + text.slice(at + length),
      `{"a":${first},"c":${second}}`,
    ),
  );

test("an object between others is found, or all of it is malformed", () => {
  let framed = 0;
  let whole = 0;
  const check = (one: string, other: string): void => {
    if (!frames(one) || !frames(other)) return;
    framed += 1;
    const bytes = Buffer.from(`[${one},${other.slice(0, -1)},"key":1}]`);
    let spans: readonly { start: number; end: number }[];
    try {
      spans = scanJson(bytes, { record: [9], strictLevels: 0 }).children;
    } catch {
      return;
    }
    whole += 1;
    const comma = 1 + Buffer.byteLength(one);
    expect(spans.map(({ start, end }) => [start, end])).toEqual([
      [1, comma],
      [comma + 1, bytes.length - 1],
    ]);
  };
  fc.assert(fc.property(line, line, check), { numRuns: 4_000, seed: 7 });
  expect(whole).toBeGreaterThan(100);
  expect(framed - whole).toBeGreaterThan(100);
});

test("a whole object is found unless its own names are ambiguous", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.jsonValue(), { minKeys: 1 }),
      (object) => {
        const texts = Object.entries(object).flatMap(([name, value]) =>
          typeof value === "string" ? [name, value] : [name],
        );
        const isPlain = texts.every((text) => text !== "key" && !JSON.stringify(text).includes("\\"));
        expect(frames(JSON.stringify(object))).toBe(isPlain);
      },
    ),
    { numRuns: 300, seed: 7 },
  );
});
