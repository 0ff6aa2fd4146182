import { describe, expect, test } from "vitest";
import { budget, VALIDATION_STEPS } from "../../src/schema/limits.ts";
import { compileSchema } from "../../src/schema/validate/compile.ts";
import { lengthOf, rounds, someOf } from "../faults/length.ts";
import { cpuMs } from "../support/cpu-time.ts";
import { githubTypes } from "../support/github.ts";
import { many, members } from "./makers.ts";
import { accepted } from "./refused.ts";

// One publish must not hold up the others: what takes the whole budget takes about a quarter of a second. A busy machine
// may take several times as long, so the bound here is generous; without the counting each of these took 2 to 20 seconds.

const BOUND_MS = 1_000;

/** A schema run `times` × `times` on the same value. */
const squared = (schema: unknown, times: number) => ({
  definitions: {
    once: schema,
    often: { allOf: many(times, () => ({ $ref: "#/definitions/once" })) },
    moreOften: { allOf: many(times, () => ({ $ref: "#/definitions/often" })) },
  },
  allOf: [{ $ref: "#/definitions/moreOften" }],
});

const of = (schemata: unknown, value: unknown) => accepted(schemata).validate(value);
const share = () => (VALIDATION_STEPS - budget.left) / VALIDATION_STEPS;
const longName = "~".repeat(500_000);

test.each<[string, unknown, unknown]>([
  [
    "the size of a large object, asked for again and again",
    squared({ minProperties: 2, maxProperties: 1_000_000 }, 180),
    members(80_000),
  ],
  ["the same without references", { allOf: many(900, () => ({ minProperties: 1 })) }, members(80_000)],
  [
    "a large constant against a larger object",
    squared({ not: { const: members(3_000) } }, 45),
    members(20_000),
  ],
  [
    "a large constant that is the payload up to its last member",
    squared({ not: { const: { ...members(3_000), p2999: null } } }, 45),
    members(3_000),
  ],
  [
    "unique items of 80,000 objects",
    { items: { allOf: many(300, () => ({ uniqueItems: true, minItems: 1 })) } },
    [many(80_000, (index) => ({ a: index }))],
  ],
  [
    "a list without what it must contain, which must not hold the item",
    { allOf: many(100, () => ({ not: { contains: false } })) },
    Array(500_000).fill(1),
  ],
  [
    "multiples of very small numbers",
    { allOf: many(20, () => ({ items: { multipleOf: 1e-300 } })) },
    Array(100_000).fill(1.1e308),
  ],
  [
    "errors under a very long name",
    { additionalProperties: { items: { anyOf: [{ type: "string" }, { type: "number" }] } } },
    { [longName]: Array(250_000).fill(1) },
  ],
  [
    "errors under a very long name that a pattern finds",
    { patternProperties: { "~": { items: { anyOf: [{ type: "string" }, { type: "number" }] } } } },
    { [longName]: Array(250_000).fill(1) },
  ],
  [
    "references under a very long name",
    {
      definitions: { number: { allOf: [{ type: "number" }] } },
      additionalProperties: { items: { allOf: many(30, () => ({ $ref: "#/definitions/number" })) } },
    },
    { [longName]: Array(250_000).fill(1) },
  ],
  [
    "the size of a large object, which no branch allows",
    { anyOf: many(900, () => ({ minProperties: 90_000 })) },
    members(80_000),
  ],
  [
    "names that no branch finds",
    {
      definitions: { all: { required: [...many(3_000, (index) => `p${index}`), "none"] } },
      anyOf: many(900, () => ({ $ref: "#/definitions/all" })),
    },
    members(3_000),
  ],
  [
    "members that no branch allows",
    { anyOf: many(400, () => ({ properties: { p79999: false } })) },
    members(80_000),
  ],
  [
    "names on which nothing depends",
    { items: { allOf: [{ dependencies: members(4_000, () => ["none"]) }, { anyOf: [false, { not: {} }] }] } },
    many(50_000, () => ({})),
  ],
  [
    "a name that lacks another, behind which thousands depend",
    {
      definitions: { all: { dependencies: members(8_000, () => ["none"]) } },
      anyOf: many(4_000, () => ({ $ref: "#/definitions/all" })),
    },
    { p0: 1 },
  ],
  [
    "a list that no branch allows",
    { anyOf: many(400, () => ({ items: [true, { type: "string" }], additionalItems: true })) },
    Array(500_000).fill(1),
  ],
  [
    "the same one level down, where branches are told apart",
    { properties: { k: { oneOf: many(250, (index) => ({ items: { enum: [index, "none"] } })) } } },
    { k: Array(100_000).fill(-1) },
  ],
])("%s", (_, schemata, payload) => {
  const schema = accepted(schemata);
  const started = cpuMs();
  schema.validate(payload);
  expect(cpuMs() - started).toBeLessThan(BOUND_MS);
});

test("a schema that lists thousands of names is not copied to each of its references", () => {
  const names = many(80, (index) => `p${index}`);
  const dependent = { dependencies: members(30, () => names) };
  const started = cpuMs();
  const schema = accepted(squared(dependent, 20));
  expect(schema.validate(members(100))).toBeUndefined();
  expect(schema.validate({ p0: 1 })).toMatchObject({ message: 'is required when "p0" is present' });
  expect(cpuMs() - started).toBeLessThan(BOUND_MS);
});

describe("every step counts, also where the first keyword fails", () => {
  test.each<[string, unknown, unknown, number]>([
    ["names of members", squared({ propertyNames: { minLength: 1 } }, 3), members(1_000), 24_000],
    ["other members", squared({ additionalProperties: { type: "number" } }, 3), members(1_000), 27_000],
    [
      "members no pattern fits",
      { patternProperties: members(10, () => false) },
      { ...members(1_000, () => 1) },
      40,
    ],
    ["contained items", { contains: { type: "string" } }, Array(1_000).fill(1), 2_000],
    ["contained items of a kind there is none of", { contains: { not: {} } }, Array(1_000).fill(1), 2_000],
    [
      "alternatives that fail",
      { items: { anyOf: [false, { const: 2 }, true] } },
      Array(1_000).fill(1),
      4_000,
    ],
    ["names listed", { required: many(1_000, (index) => `p${index}`) }, members(1_000), 1_000],
    [
      "names depended on",
      { dependencies: { p0: many(1_000, (index) => `p${index}`) } },
      members(1_000),
      1_000,
    ],
  ])("%s", (_, schemata, payload, steps) => {
    accepted(schemata).validate(payload);
    expect(VALIDATION_STEPS - budget.left).toBeGreaterThanOrEqual(steps);
  });
});

describe("ordinary payloads use a small part of the budget", () => {
  const { "event types": types } = lengthOf("schema/budget");

  test(`every payload GitHub has recorded of ${types} event types takes less than a hundredth`, () => {
    let checked = 0;
    for (const { schemata, payloads } of someOf(githubTypes(), types)) {
      const schema = compileSchema(schemata);
      for (const payload of payloads) {
        schema.validate(payload);
        expect(share()).toBeLessThan(0.01);
        checked++;
      }
    }
    expect(checked).toBeGreaterThanOrEqual(rounds(types, 329));
  });

  test.each<[unknown, number]>([
    [{ type: "object" }, 0.001],
    [{ type: "object", properties: { p1: { type: "integer" } }, required: ["p1"] }, 0.001],
    [{ minProperties: 1, additionalProperties: { type: "integer", minimum: 0 } }, 0.1],
    [{ propertyNames: { pattern: "^p[0-9]+$" }, additionalProperties: { type: "integer" } }, 0.25],
  ])("80,000 members, held to %j", (schemata, most) => {
    const payload = members(80_000);
    expect(JSON.stringify(payload).length).toBeGreaterThan(1_000_000);
    expect(accepted(schemata).validate(payload)).toBeUndefined();
    expect(share()).toBeLessThan(most);
  });
});

test("a list checked twice for unique items gives the same answer twice", () => {
  const schemata = { allOf: [{ not: { uniqueItems: true } }, { uniqueItems: true }] };
  expect(of(schemata, [1, 2, 1])?.message).toBe("must not hold the same item twice (items 0 and 2)");
  expect(of(schemata, [1, 2])?.message).toBe("must not be of this kind");
});

test("many objects with other names each, of a schema with many properties, are counted", () => {
  const schema = accepted({ items: { properties: members(60, () => ({ type: "string" })) } });
  expect(schema.validate(many(6_000, (index) => ({ [`k${index}`]: 0 })))).toBeUndefined();
  expect(VALIDATION_STEPS - budget.left).toBeGreaterThan(6_000);
});

test("no more faults are looked for than are asked for", () => {
  const schema = accepted({ required: many(5_000, (index) => `p${index}`), dependencies: { a: ["p0"] } });
  expect(schema.validate({ a: 1 }, VALIDATION_STEPS, 20)?.others).toHaveLength(19);
  expect(VALIDATION_STEPS - budget.left).toBeLessThan(100);
});

test("a check ends within the given steps, with a result or without", () => {
  const validator = accepted({ items: { not: { type: "string" } } });
  const long = many(10_000, (index) => index);
  expect(validator.conforms(long, VALIDATION_STEPS)).toBe(true);
  expect(validator.conforms([...long, "x"], VALIDATION_STEPS)).toBe(false);
  expect(validator.conforms(long, 100)).toBeUndefined();
  // The next check has all its steps again.
  expect(validator.conforms([1], 100)).toBe(true);
  expect(validator.validate(long)).toBeUndefined();
});
