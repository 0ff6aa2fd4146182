import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { batchBodySteps, parsePayload, parsePublishBody } from "../../src/domain/publish-body.ts";
import { runSync } from "../../src/runtime/yielding.ts";
import { cpuMs } from "../support/cpu-time.ts";
import { refusal } from "./refusal.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);
const limits = { payloadBytes: 1_000 };

const parseBatch = (source: Uint8Array, within = limits) => runSync(batchBodySteps(source, within));
const stepsOf = (source: Uint8Array): number => [...batchBodySteps(source, limits)].length;
const batch = (...items: string[]): Uint8Array => bytes(`{"events":[${items.join()}]}`);
const fill = (size: number): string => `{"a":"${"x".repeat(size - 8)}"}`;
const nested = (levels: number): string => '{"a":'.repeat(levels - 1) + "{}" + "}".repeat(levels - 1);

/** What a single publish, or a line of NDJSON, and an item of a batch have in common. */
const WAYS: [string, (text: string) => NewEvent][] = [
  ["a single publish", (text) => parsePublishBody(bytes(text), limits)],
  [
    "an item of a batch",
    (text) => {
      const [first, second, third] = parseBatch(
        bytes(`{"events":[{"action":"a","payload":{}}, ${text} ,{"action":"c","payload":{"z":1}}]}`),
      );
      expect(first).toMatchObject({ action: "a" });
      expect(third).toMatchObject({ action: "c" });
      if (second instanceof EvregError) throw second;
      return second!;
    },
  ],
];

describe.each(WAYS)("%s", (_, parse) => {
  test("keeps the payload's bytes", () => {
    const payload = '{ "10":1,\t"2": 12345678901234567890, "x":1.50, "y":1e400, "é":"\\u00e9" }';
    const event = parse(`{ "payload" : ${payload} , "action":"user.cre\\u0061ted" }`);
    expect(event.action).toBe("user.created");
    expect(event.payload.text()).toBe(payload);
    expect("idempotency_key" in event).toBe(false);
  });

  test("takes an idempotency key", () => {
    const event = parse('{"action":"a","payload":{},"idempotency_key":"order 1"}');
    expect(event.idempotency_key).toBe("order 1");
  });

  const refused: [string, string, string, unknown][] = [
    ["[]", "body", "must be an object with action and payload", null],
    [
      `{"action":"${"x".repeat(129)}","payload":{}}`,
      "action",
      "at most 128 characters",
      `${"x".repeat(128)}…`,
    ],
    ['{"action":"a","payload":[1]}', "payload", "must be an object", [1]],
    ['{"action":"a","payload":{},"rowid":1}', "rowid", "the service assigns it", null],
    ['{"action":"a","payload":{},"paylaod":{}}', "paylaod", "is not a known member", null],
  ];
  test.each(refused)("refuses %.60s", (text, field, message, value) => {
    const error = refusal(() => parse(text));
    expect(error.code).toBe("invalid");
    expect(error.details["field"]).toBe(field);
    expect(error.message).toContain(message);
    expect(error.details["value"]).toEqual(value);
  });

  test("refuses a repeated member", () => {
    expect(refusal(() => parse('{"action":"a","payload":{},"payload":{"b":1}}')).code).toBe("malformed");
  });
});

describe("a batch", () => {
  const item = '{"action":"a","payload":{}}';

  test.each([
    ["[]", "body"],
    ["{}", "events"],
    ['{"events":{}}', "events"],
    ['{"events":[{}],"atomic":true}', "atomic"],
    ['{"items":[]}', "items"],
  ])("of a wrong form is refused: %s", (text, field) => {
    const error = refusal(() => parseBatch(bytes(text)));
    expect(error.code).toBe("invalid");
    expect(error.details["field"]).toBe(field);
  });

  test.each([
    '{"events":[{"action":"a","payload":{}}',
    '{"events":[{"action":"a","payload":{,}}]}',
    "",
    "{]",
  ])("that is not JSON is refused as a whole: %s", (text) => {
    expect(refusal(() => parseBatch(bytes(text))).code).toBe("malformed");
  });

  test.each(['{"events":[],"events":[]}', '{"events":[],"\\ud800":1}'])(
    "with an error outside its items is refused as a whole: %s",
    (text) => {
      expect(refusal(() => parseBatch(bytes(text))).code).toBe("malformed");
    },
  );

  test("reports each invalid item in its place and keeps the others", () => {
    const deep = "[".repeat(400) + "]".repeat(400);
    const items = [
      item,
      "7",
      '{"action":"a","payload":{"x":1,"x":2}}',
      '{"action":"b","payload":{"ok":"\\u0041"}}',
      `{"action":"a","payload":{"deep":${deep}}}`,
      '{"action":"a","payload":{"s":"\\udc00"}}',
      `{"action":"a","payload":{"s":"${"x".repeat(2_000)}"}}`,
    ];
    const results = parseBatch(bytes(`{"events":[\n${items.join(",\n")}\n]}`));
    expect(results.map((result) => (result instanceof EvregError ? result.code : result.action))).toEqual([
      "a",
      "invalid",
      "malformed",
      "b",
      "malformed",
      "malformed",
      "too_large",
    ]);
    expect((results[2] as EvregError).details).toMatchObject({ line: 4, reason: "duplicate_key" });
    expect((results[4] as EvregError).message).toContain("nested deeper than 64 levels");
  });

  test("places every error in the whole body, at a cost that does not grow with the items before it", () => {
    const before = '{"action":"a","payload":{"p":"é';
    const bad = `${before}${"x".repeat(15_900)}","a":1,"a":2}}`;
    const source = batch(...Array<string>(1_000).fill(`\n${bad}`));
    const beganMs = cpuMs();
    const results = parseBatch(source, { payloadBytes: 20_000 });
    expect(cpuMs() - beganMs).toBeLessThan(5_000);
    const column = bad.indexOf('"a":2') + 1;
    const byteOf = (index: number): number =>
      '{"events":['.length + index * (Buffer.byteLength(bad) + 2) + 1 + column;
    expect(results.map((result) => (result as EvregError).details)).toEqual(
      results.map((_, index) => ({ line: index + 2, column, byte: byteOf(index), reason: "duplicate_key" })),
    );
  });

  test("is read in steps: before each item, and within one", () => {
    expect(stepsOf(batch(...Array<string>(100).fill(item)))).toBe(100);
    const bad = '{"action":"a","payload":{"a":1,"a":2}}';
    expect(stepsOf(batch(...Array<string>(100).fill(bad)))).toBe(100);
    const numbers = Array<number>(2_000_000).fill(1).join();
    expect(stepsOf(batch(`{"action":"a","payload":{"n":[${numbers}]}}`))).toBeGreaterThan(10);
  });

  test("may pause during its scan while others are read", () => {
    const numbers = Array<number>(500_000).fill(1).join();
    const source = batch(`{"action":"a","payload":{"n":[${numbers}]}}`, '{"action":"b","payload":{}}');
    const steps = batchBodySteps(source, { payloadBytes: 2_000_000 });
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) {
      parsePublishBody(bytes('{"action":"c","payload":{"x":1,"y":2}}'), limits);
    }
    expect(step.value).toMatchObject([{ action: "a" }, { action: "b" }]);
  });

  test("does not look into a payload that is too large, nor an item with a repeated member", () => {
    const wide = `{${Array.from({ length: 250_000 }, (_, index) => `"m${index}":0`).join()}}`;
    const twice = `{"action":"a","payload":{},"payload":{},"payload":${wide}}`;
    const second = `{"action":"a","payload":{},"payload":${wide}}`;
    const action = `{"action":"a","action":${wide},"payload":{}}`;
    const results = parseBatch(batch(`{"action":"a","payload":${wide}}`, twice, second, action));
    expect(results.map((result) => (result as EvregError).code)).toEqual([
      "too_large",
      "malformed",
      "malformed",
      "malformed",
    ]);
    expect((results[1] as EvregError).message).toContain('"payload" is in this object twice');
    expect((results[2] as EvregError).message).toContain('"payload" is in this object twice');
    expect((results[3] as EvregError).message).toContain('"action" is in this object twice');
  });

  test("reads an item with very many members in linear time", () => {
    const wide = `{${Array.from({ length: 100_000 }, (_, index) => `"m${index}":0`).join()}}`;
    const [error] = parseBatch(batch(wide));
    expect((error as EvregError).details["field"]).toBe("m0");
  });

  test("gives the same result, whether its items are read together or, after an error, one by one", () => {
    const members = fc.uniqueArray(
      fc.constantFrom(
        '"action":"a"',
        '"action":"a.\\u0062"',
        '"\\u0061ction":"c"',
        '"action":7',
        '"payload":{}',
        '"payload":{"x":[1,{"y":"\\ud83d\\ude00"}]}',
        '"payload" : { "z" : "é" }',
        '"payload":{"x":1,"x":2}',
        '"payload":{"s":"\\ud800"}',
        `"payload":${nested(64)}`,
        `"payload":${nested(65)}`,
        `"payload":${fill(1_001)}`,
        `"payload":{${Array.from({ length: 2_100 }, (_, index) => `"${index}":0`).join()}}`,
        '"idempotency_key":"k"',
        '"idempotency_key":""',
        '"rowid":1',
      ),
      { minLength: 1, maxLength: 4 },
    );
    const anItem = fc.oneof(
      { weight: 4, arbitrary: members.map((some) => `{${some.join()}}`) },
      { weight: 4, arbitrary: fc.constantFrom(item, '{"payload":{"n":1},"action":"b"}') },
      { weight: 1, arbitrary: fc.constantFrom("7", "[]", '[[{"a":1}]]', "{}") },
    );
    const bad = '{"action":"a","payload":{"t":1,"t":2}}';
    fc.assert(
      fc.property(fc.array(anItem, { minLength: 1, maxLength: 6 }), (items) => {
        const together = parseBatch(batch(...items));
        const apart = parseBatch(batch(...items, bad));
        expect(apart.slice(0, -1).map(shownResult)).toEqual(together.map(shownResult));
      }),
      { numRuns: 400, seed: 19 },
    );
  });
});

/** All that a caller gets to see of it. */
function shownResult(result: NewEvent | EvregError): unknown {
  if (result instanceof EvregError) return result.body();
  return { ...result, payload: result.payload.text() };
}

test("a payload alone is an object within the limits, and keeps its bytes without the space around it", () => {
  expect(parsePayload(bytes(' {"b":1, "a":2}\n'), limits).text()).toBe('{"b":1, "a":2}');
  const refused = (text: string) => refusal(() => parsePayload(bytes(text), limits)).code;
  expect(["[]", "{", nested(65), fill(1_001)].map(refused)).toEqual([
    "invalid",
    "malformed",
    "malformed",
    "too_large",
  ]);
});
