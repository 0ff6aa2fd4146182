import { expect, test } from "vitest";
import { keysOfText, NO_KEY, orderKeysOf, WHOLE_KEY } from "../../src/domain/order-key.ts";
import { pointerSteps } from "../../src/json/field-path.ts";

function keyOf(json: string, pointer = "/k"): number {
  return orderKeysOf(Buffer.from(json), [pointerSteps(pointer)])[0]!;
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
  const keys = values.map((value) => keyOf(`{"k":${value}}`));
  expect(new Set(keys).size).toBe(keys.length);
});

test("numbers that a double does not tell apart are one key", () => {
  const pairs = [
    ["9007199254740992", "9007199254740993"],
    ["1e400", "1e401"],
  ];
  for (const [one, other] of pairs) expect(keyOf(`{"k":${one}}`)).toBe(keyOf(`{"k":${other}}`));
  expect(keyOf('{"k":9007199254740991}')).not.toBe(keyOf('{"k":9007199254740990}'));
});

const STORED = [
  4005698503539645, 4811231334174669, 3636527331045176, 2158303626297282, 1945545023187686, 8624686990770044,
];

test("keys are the numbers that files already hold", () => {
  const stored = ["42", "-1.5", "0", "1e21", '"a"', "true"].map((value) => keyOf(`{"k":${value}}`));
  expect(stored).toEqual(STORED);
});

test("an object, a list and no value at all are no key", () => {
  for (const json of ['{"k":{}}', '{"k":[1]}', "{}", '{"l":1}', '{"a":{"k":1}}'])
    expect(keyOf(json)).toBe(NO_KEY);
  expect(keyOf('{"k":1}', "/k/x")).toBe(NO_KEY);
  expect(orderKeysOf(undefined, [["k"]])).toEqual([NO_KEY]);
});

test("each of several pointers has its own key", () => {
  const json = '{"k":1,"a":{"b":"x"}}';
  const pointers = ["/k", "/a/b", "/none", ""];
  expect(orderKeysOf(Buffer.from(json), pointers.map(pointerSteps))).toEqual([
    keyOf(json, "/k"),
    keyOf(json, "/a/b"),
    NO_KEY,
    WHOLE_KEY,
  ]);
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

test("a pointer leads to own members and places of a list only", () => {
  const json = '{"a/b":{"m~n":["x",{"":7}]},"__proto__":"own","length":1}';
  expect(keysOfText("x")).toEqual([keyOf(json, "/a~1b/m~0n/0")]);
  expect(keysOfText("7")[1]).toBe(keyOf(json, "/a~1b/m~0n/1/"));
  expect(keysOfText("own")).toEqual([keyOf(json, "/__proto__")]);
  for (const pointer of ["/a~1b/m~0n/length", "/a~1b/m~0n/00", "/a~1b/m~0n/2", "/toString", "/length/x"]) {
    expect.soft(keyOf(json, pointer), pointer).toBe(NO_KEY);
  }
});
