import * as fc from "fast-check";
import { expect, test } from "vitest";
import { keysOfText, NO_KEY, orderKeyOf, pointerSteps } from "../../src/domain/order-key.ts";
import { valueAt } from "../../src/json/pointed.ts";

function keyOf(json: string, pointer = "/k"): number {
  return orderKeyOf(Buffer.from(json), pointerSteps(pointer));
}

test.each([
  ["1", "1.0"],
  ["1", "10e-1"],
  ["100", "1e2"],
  ["0", "-0"],
  ["0", "0.00e5"],
  ["-1.5", "-15E-1"],
  ["123456789012345678901234567890", "123456789012345678901234567890.00"],
  ['"a"', '"\\u0061"'],
  ['"/"', '"\\/"'],
])("%s and %s are one key", (one, other) => {
  expect(keyOf(`{"k":${one}}`)).toBe(keyOf(`{"k":${other}}`));
  expect(keyOf(`{"k":${one}}`)).not.toBe(NO_KEY);
});

test("other values are other keys", () => {
  const values = ["1", '"1"', "-1", "10", "0", "true", '"true"', "false", "null", '"null"', '""', "{}"];
  const large = ["9007199254740992", "9007199254740993", "1e400", "1e401"];
  const keys = [...values, ...large].map((value) => keyOf(`{"k":${value}}`));
  expect(new Set(keys).size).toBe(keys.length);
});

test("an object, a list and no value at all are no key", () => {
  for (const json of ['{"k":{}}', '{"k":[1]}', "{}", '{"l":1}', '{"a":{"k":1}}'])
    expect(keyOf(json)).toBe(NO_KEY);
  expect(keyOf('{"k":1}', "/k/x")).toBe(NO_KEY);
  expect(orderKeyOf(undefined, ["k"])).toBe(NO_KEY);
});

test("what is typed is a text and, where it is JSON, a value", () => {
  expect(keysOfText("42")).toEqual([keyOf('{"k":"42"}'), keyOf('{"k":42}')]);
  expect(keysOfText('"42"')).toContain(keyOf('{"k":"42"}'));
  expect(keysOfText("C-17")).toEqual([keyOf('{"k":"C-17"}')]);
  expect(keysOfText("{}")).toEqual([keyOf('{"k":"{}"}')]);
});

test("a number of a million digits takes no longer than a text", () => {
  const startMs = performance.now();
  for (const digit of ["0", "9", "10"]) {
    const many = digit.repeat(500_000);
    expect(keyOf(`{"k":1${many}1}`)).not.toBe(NO_KEY);
    expect(keyOf(`{"k":1e${many}1}`)).not.toBe(NO_KEY);
  }
  expect(performance.now() - startMs).toBeLessThan(2_000);
});

test("the value at a pointer is that of the parsed document", () => {
  const steps = fc.array(fc.constantFrom("a", "b", "0", "1", "~", "/", "ü", ""), { maxLength: 4 });
  const json = fc.json({ maxDepth: 4 });
  const named = fc.dictionary(
    fc.constantFrom("a", "b", "0", "~", "/", "ü", ""),
    fc.jsonValue({ maxDepth: 3 }),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        json,
        named.map((value) => JSON.stringify(value, null, 1)),
      ),
      steps,
      (text, path) => {
        let value: unknown = JSON.parse(text);
        for (const step of path) {
          const isOwn = typeof value === "object" && value !== null && Object.hasOwn(value, step);
          const isPlace = !Array.isArray(value) || /^(?:0|[1-9]\d*)$/.test(step);
          value = isOwn && isPlace ? (value as Record<string, unknown>)[step] : undefined;
        }
        const bytes = Buffer.from(text);
        const span = valueAt(bytes, path);
        const found: unknown = span && JSON.parse(bytes.toString("utf8", span.start, span.end));
        expect(found).toEqual(value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
      },
    ),
    { numRuns: 2_000 },
  );
});
