import { expect, test } from "vitest";
import { compare } from "../../../src/schema/compatibility/compare.ts";
import { githubTypes } from "../../support/github.ts";
import type { Json } from "./random-schemas.ts";
import { at, object, text, whole } from "./rule-cases.ts";

test("a break has its place, both sides, who breaks, a payload and a way out", () => {
  const old = object({ id: text, total: { type: "number", minimum: 0 } }, { required: ["id"] });
  const next = object({ id: text, total: { type: "number", minimum: 1 } }, { required: ["id", "email"] });
  expect(compare(old, next)).toEqual([
    {
      side: "producer",
      pointer: "/required",
      field: "email",
      was: ["id"],
      is: ["id", "email"],
      change: 'The property "email" has become required.',
      message: 'The property "email" has become required. A producer that does not send it is refused.',
      remedy: 'Add "email" as an optional property.',
      certainty: "proven",
      example: { id: "text" },
    },
    {
      side: "producer",
      pointer: "/properties/total/minimum",
      field: "total",
      was: 0,
      is: 1,
      change: "total must be at least 1; before, it had to be at least 0.",
      message:
        "total must be at least 1; before, it had to be at least 0. A producer that keeps to the old schema is refused.",
      remedy: "Leave minimum as it is, and add an optional property for what is new.",
      certainty: "proven",
      example: { id: "text", total: 0 },
    },
  ]);
});

test("with a schema that evreg does not take any more, nothing is called safe", () => {
  const chained = Object.fromEntries(
    Array.from({ length: 1_500 }, (_, index) => [index, { $ref: `#/definitions/${index + 1}` }]),
  );
  const old = { ...object({ id: { $ref: "#/definitions/0" } }), definitions: { ...chained, 1500: text } };
  const breaks = compare(old, object({ id: text }));
  expect(breaks.map(({ side, certainty }) => [side, certainty])).toEqual([
    ["producer", "cannot_prove"],
    ["consumer", "cannot_prove"],
  ]);
  expect(breaks[0]!.change).toMatch(
    /^The old schema is one that evreg does not take any more: .*1,000 references/,
  );
});

test("the field of a break is its place in payloads, through references, lists and names", () => {
  const members = {
    lines: { items: { $ref: "#/definitions/line" } },
    labels: { propertyNames: { minLength: 1 } },
  };
  const old = { ...object(members), definitions: { line: object({ sku: text }) } };
  const next = {
    ...object({ ...members, labels: { propertyNames: { minLength: 2 } } }),
    definitions: { line: object({ sku: { type: "integer" } }) },
  };
  const breaks = compare(old, next);
  expect(Object.fromEntries(breaks.map(({ pointer, field }) => [pointer, field]))).toEqual({
    "/properties/labels/propertyNames/minLength": "labels",
    "/definitions/line/properties/sku/type": "lines[0].sku",
  });
});

test("for a member that became required, the way out is to remove it from the list again", () => {
  const properties = { id: text, email: text };
  const old = object(properties, { required: ["id"] });
  const next = object(properties, { required: ["id", "email"] });
  expect(compare(old, next)).toMatchObject([
    { pointer: "/required", remedy: 'Leave "email" out of required.' },
  ]);
});

const listed = (count: number): Json => ({
  enum: Array.from({ length: count }, (_, index) => `value ${index}`),
});

test.each([
  ["texts", Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`p${index}`, text])), "unlisted"],
  ["anything", { a: {} }, "unlisted"],
  ["listed values", { a: listed(80) }, "unlisted"],
  ["of the name that is tried first", { unlisted: text }, "unlisted1"],
])("a member that is not listed shows that an object was closed whose others are %s", (_, members, name) => {
  const open = object({ id: text, ...members }, { required: ["id"] });
  const breaks = compare(open, { ...open, additionalProperties: false });
  expect(breaks).toMatchObject([{ pointer: "/additionalProperties", certainty: "proven" }]);
  expect(breaks[0]?.example).toEqual({ id: "text", [name]: "text" });
});

const limited = { ...text, maxLength: 5 };
const closed = { additionalProperties: false };
const [one, oneOrTwo] = [{ not: { const: 1 } }, { not: { enum: [1, 2] } }];

/** Of the schema at a property. */
const AT_P: readonly (readonly [what: string, old: unknown, next: unknown, message: string])[] = [
  ["a type", text, whole, "p must be an integer; before, it had to be a string."],
  [
    "a misspelt format",
    { ...text, format: "emial" },
    { ...text, format: "email" },
    "p must be an email address, which is new.",
  ],
  ["another choice", one, oneOrTwo, "The not rule for p has changed."],
  ["a choice gone", one, {}, "The not rule for p was removed."],
  ["a new bound", text, limited, "p must have at most 5 characters, which is new."],
  ["a bound gone", limited, text, "p no longer has to have at most 5 characters."],
  ["a property gone deeper down", object({ b: text }), object({ c: text }), 'The property "b" of p is gone.'],
  ["a closed object", object({}), object({}, closed), "p no longer allows properties"],
  ["an item", { type: "array", items: text }, { type: "array", items: whole }, "p[0] must be an integer"],
  ["a property forbidden", text, false, "p is not allowed any more."],
];
const aAndB = object({ a: text, b: text });
const MESSAGES = [
  ...AT_P.map(([what, old, next, message]) => [what, at(old), at(next), message] as const),
  [
    "a new choice",
    aAndB,
    { ...aAndB, oneOf: [{ required: ["a"] }, { required: ["b"] }] },
    "The oneOf rule for the payload is new.",
  ],
  [
    "a bound of the payload gone",
    object({}, { minProperties: 2 }),
    object({}),
    "The payload no longer has to have at least 2 properties.",
  ],
  ["a property gone", aAndB, object({ a: text }), 'The property "b" is gone.'],
] as const;

test.each(MESSAGES)("%s is described in a sentence", (_, old, next, message) => {
  const breaks = compare(old, next);
  expect(breaks[0]?.message).toContain(message);
  expect(breaks[0]?.message).toMatch(/ A (producer|consumer) .*\.$/);
});

const listOf = (rest: Json): Json => at({ type: "array", ...rest });
const either = (b: Json): Json => ({
  ...object({}),
  oneOf: [{ required: ["a"] }, object({ b }, { required: ["b"] })],
});

const arrays = { contains: { type: "array" } };
const x = (inner: object): Json => at({ type: "object", ...inner });
const noSeven = { not: { required: ["a"], properties: { a: { const: 7 } } } };
const aAndNull = { a: "text", b: null };
const [strict, loose] = [either({ type: "boolean" }), either({ type: ["boolean", "null"] })];

// Breaks whose payload is not the first that comes to mind.
test.each<[string, Json, Json, string, unknown]>([
  [
    "the last of many values",
    at(listed(61)),
    at(listed(60)),
    "producer /properties/p/enum",
    { p: "value 60" },
  ],
  ["two branches that come to overlap in one value", strict, loose, "producer /oneOf", aAndNull],
  ["two branches that no longer overlap", loose, strict, "consumer /oneOf", aAndNull],
  [
    "an item twice that the list must contain",
    listOf(arrays),
    listOf({ ...arrays, uniqueItems: true }),
    "producer /properties/p/uniqueItems",
    { p: [[], []] },
  ],
  ["what is newly ruled out", x({}), x(noSeven), "producer /properties/p/not", { p: { a: 7 } }],
])("a payload shows %s", (_, old, next, place, example) => {
  const shown = compare(old, next).find(({ side, pointer }) => `${side} ${pointer}` === place);
  expect(shown).toMatchObject({ certainty: "proven", example });
});

test("what cannot be decided is reported as that", () => {
  const old = at({ ...text, format: "uri", minLength: 40 });
  const next = at({ ...text, format: "uri", minLength: 40, pattern: "^[^ ]+$" });
  const breaks = compare(old, next, { mode: "producer" });
  expect(breaks).toMatchObject([{ pointer: "/properties/p/pattern", certainty: "cannot_prove" }]);
  expect(breaks[0]).not.toHaveProperty("example");
  expect(breaks[0]?.message).toContain(
    "It cannot be proven that all a producer may send today is still accepted.",
  );
});

test("with too few steps the answer is that it cannot be proven, and the same each time", () => {
  const [old, next] = [at(text), at({ anyOf: [text, { type: "null" }] })];
  const verdict = compare(old, next, { steps: 5 });
  expect(verdict).toMatchObject([
    {
      side: "producer",
      pointer: "",
      certainty: "cannot_prove",
      message: expect.stringContaining("too many steps"),
    },
    { side: "consumer", pointer: "", certainty: "cannot_prove" },
  ]);
  expect(compare(old, next, { steps: 5 })).toEqual(verdict);
  for (const { remedy } of verdict) expect(remedy).not.toContain("smaller steps");
  expect(compare(old, next).map(({ side }) => side)).toEqual(["consumer"]);
});

const choices = (shift: number): Json =>
  at({
    allOf: Array.from({ length: 12 }, (_, i) => ({
      anyOf: Array.from({ length: 6 }, (__, j) => object({ [`a${i}`]: { const: j + shift } })),
    })),
  });

const wide = (count: number, type: Json): Json =>
  object(Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, type])));

const messages = (count: number): string[] =>
  compare(wide(count, text), wide(count, { type: "integer" })).map(({ message }) => message);

test("of very many breaks the first hundred of each side are listed, and the rest counted", () => {
  expect(messages(100)).toHaveLength(200);
  const told = messages(103);
  expect(told).toHaveLength(202);
  expect([told[100], told[201]]).toEqual([
    "3 more places break producers; the first 100 are listed.",
    "3 more places break consumers; the first 100 are listed.",
  ]);
  expect(messages(101)[100]).toBe("1 more place breaks producers; the first 100 are listed.");
});

test("schemas made to take for ever end with the step budget", () => {
  expect(
    compare(choices(0), choices(1), { steps: 300_000 }).map(({ certainty, pointer }) => ({
      certainty,
      pointer,
    })),
  ).toEqual([
    { certainty: "cannot_prove", pointer: "" },
    { certainty: "cannot_prove", pointer: "" },
  ]);
});

test("the largest schema fits into the step budget, whatever is changed in it", () => {
  const { schemata } = githubTypes().find(({ name }) => name === "github.pull_request")!;
  const next = structuredClone(schemata) as { definitions: Record<string, { properties: Json }> };
  next.definitions["user"]!.properties["login"] = { type: "integer" };
  const breaks = compare(schemata, next);
  expect(breaks.map(({ side, pointer }) => `${side} ${pointer}`)).toEqual([
    "producer /definitions/user/properties/login/type",
    "consumer /definitions/user/properties/login/type",
  ]);
});

test("a payload too long to read is left out of the answer, and the proof remains", () => {
  const names = Array.from({ length: 500 }, (_, index) => `property-${index}`);
  const old = object(Object.fromEntries(names.map((name) => [name, text])), { required: names });
  const breaks = compare(old, { ...old, required: [...names, "more"] });
  expect(breaks).toMatchObject([{ certainty: "proven", is: expect.stringMatching(/…$/) }]);
  expect(breaks[0]).not.toHaveProperty("example");
});

test("names that mean something to JavaScript are ordinary names", () => {
  const own = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}') as Json;
  const other = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"integer"}}}') as Json;
  expect(compare(own, other).map(({ side, certainty }) => `${side} ${certainty}`)).toEqual([
    "producer proven",
    "consumer proven",
  ]);
  expect(compare(object({}), object({ constructor: text, toString: text }))).toEqual([]);
});
