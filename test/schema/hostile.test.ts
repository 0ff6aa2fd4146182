/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { budget, VALIDATION_STEPS } from "../../src/schema/limits.ts";
import { lengthOf, someOf } from "../faults/length.ts";
import { cpuMs } from "../support/cpu-time.ts";
import { chain, many, members, nested } from "./makers.ts";
import { accepted, refused } from "./refused.ts";

// Schemas and payloads made to stall, to overflow the stack or to break out. Work is bounded by counting, so most of these
// look at the count. For those that stall, the bound of processor time is generous: the defect would take minutes.

const LONGEST_MS = 15_000;
let beganMs = 0;
beforeEach(() => {
  beganMs = cpuMs();
});
afterEach(() => expect(cpuMs() - beganMs).toBeLessThan(LONGEST_MS));

const TOO_MANY = {
  field: "",
  message: "takes more than 10,000,000 steps to check against its schema",
  value: null,
};

describe("schemas that multiply", () => {
  test("a chain of double references stops at the step limit", () => {
    const last = { type: "object", minProperties: 0 };
    const definitions = chain(30, last, (next) => ({ allOf: [next, next] }));
    const schemata = { $ref: "#/definitions/d0", definitions };
    expect(accepted(schemata).validate({})).toEqual(TOO_MANY);
  });

  test.each([
    ["allOf", (schema: unknown) => ({ allOf: [schema, schema] })],
    [
      "anyOf",
      (schema: unknown) => ({ anyOf: [{ allOf: [schema, false] }, { allOf: [schema, false] }, schema] }),
    ],
    ["oneOf", (schema: unknown) => ({ oneOf: [schema, schema] })],
    ["not", (schema: unknown) => ({ allOf: [{ not: { not: schema } }, schema] })],
    ["if", (schema: unknown) => ({ if: schema, then: schema })],
  ])("a recursive %s that doubles at each level of the payload stops at the step limit", (_, twice) => {
    const schema = accepted({ properties: { a: twice({ $ref: "#" }) } });
    const deep = nested('{"a":', "}", 63);
    expect(schema.validate(deep)).toEqual(TOO_MANY);
    // The same again, and a small payload after it, are not touched by what went before.
    expect(schema.validate(deep)).toEqual(TOO_MANY);
    expect(accepted({ properties: { a: { $ref: "#" } } }).validate(deep)).toBeUndefined();
  });

  test("a list of 8,000 dependent names is compiled in linear time", () => {
    const names = many(8_000, (index) => `p${index}`);
    const schema = accepted({ dependencies: { a: names } });
    expect(schema.validate({ a: 1, ...members(7_999, () => 1) })).toMatchObject({ field: "p7999" });
    expect(schema.validate({ a: 1, ...members(8_000, () => 1) })).toBeUndefined();
  });

  test("a thousand schemas check a list of a million", () => {
    const schema = accepted({ allOf: many(450, () => ({ items: { type: "number" } })) });
    expect(schema.validate(Array(1_000_000).fill(1))).toEqual(TOO_MANY);
  });

  test("a large payload of an ordinary schema is nowhere near the limit", () => {
    const item = {
      type: "object",
      properties: members(10, () => ({ type: "integer" })),
      required: ["p0"],
      additionalProperties: false,
    };
    const schema = accepted({ type: "array", items: item });
    const payload = many(20_000, () => members(10, (index) => index));
    expect(JSON.stringify(payload).length).toBeGreaterThan(1_000_000);
    expect(schema.validate(payload)).toBeUndefined();
    expect(VALIDATION_STEPS - budget.left).toBeLessThan(VALIDATION_STEPS / 10);
  });
});

describe("texts that backtrack", () => {
  test("are checked in linear time by patterns", () => {
    for (const [pattern, text] of [
      ["^(a+)+$", `${"a".repeat(500_000)}!`],
      ["(x+x+)+y", "x".repeat(500_000)],
      ["^(\\w+\\s?)*$", `${"word ".repeat(100_000)}!`],
      ["(.*)*(.*)*=", "a".repeat(500_000)],
    ] as const) {
      expect(accepted({ pattern }).validate(text)).toMatchObject({
        message: `must match the pattern ${pattern}`,
      });
    }
  });

  test("count a step for every character that a pattern reads", () => {
    const schema = accepted({ allOf: many(20, (index) => ({ pattern: `^a*(?:a|b{0,${index}})$` })) });
    expect(schema.validate("a".repeat(1_000_000))).toEqual(TOO_MANY);
  });

  test("count a step for every character of a format", () => {
    const schema = accepted({ allOf: many(20, () => ({ format: "url" })) });
    expect(schema.validate(`http://a.bc/${"a".repeat(1_000_000)}`)).toEqual(TOO_MANY);
  });

  test("count for lengths only where they must", () => {
    const schema = accepted({ allOf: many(900, () => ({ minLength: 1, maxLength: 10_000_000 })) });
    expect(schema.validate("😀".repeat(250_000))).toBeUndefined();
    expect(VALIDATION_STEPS - budget.left).toBeLessThan(10_000);
    const counting = accepted({ allOf: many(900, () => ({ minLength: 310_000 })) });
    expect(counting.validate("😀".repeat(250_000) + "a".repeat(100_000))).toEqual(TOO_MANY);
  });
});

describe("comparisons of many with many", () => {
  test("uniqueItems on 20,000 objects", () => {
    const items = many(20_000, (index) => ({ id: index, tags: ["a", "b"], of: { b: 1, a: index % 7 } }));
    const schema = accepted({ uniqueItems: true });
    expect(schema.validate(items)).toBeUndefined();
    expect(schema.validate([...items, items[12_345]])).toMatchObject({
      message: "must not hold the same item twice (items 12345 and 20000)",
    });
  });

  test("an enum of 1,000 objects against 50,000", () => {
    const schema = accepted({ items: { enum: many(1_000, (index) => ({ a: index, b: [index] })) } });
    expect(
      schema.validate(many(50_000, (index) => ({ b: [index % 1_000], a: index % 1_000 }))),
    ).toBeUndefined();
  });

  test("contains with a match only at the end", () => {
    const schema = accepted({ contains: { const: "x" } });
    expect(schema.validate([...Array<number>(500_000).fill(1), "x"])).toBeUndefined();
  });
});

describe("depth and width", () => {
  test("a payload as deep as allowed passes every kind of recursion and the widest schemas", () => {
    const leaf = { type: ["string", "number", "object", "array"], minProperties: 0, maxLength: 9 };
    const schemas: Record<string, unknown> = {
      properties: { properties: { ...members(400, () => leaf), a: { $ref: "#" } } },
      additional: { additionalProperties: { $ref: "#" }, allOf: many(300, () => leaf) },
      patterns: { patternProperties: { ...members(200, () => leaf), "^a$": { $ref: "#" } } },
      anyOf: {
        anyOf: [...many(200, () => ({ type: "string", maxLength: 0 })), { properties: { a: { $ref: "#" } } }],
      },
      oneOf: {
        oneOf: [...many(100, () => ({ type: "string", maxLength: 0 })), { properties: { a: { $ref: "#" } } }],
      },
      chain: {
        properties: { a: { $ref: "#/definitions/d0" } },
        definitions: chain(10, { properties: { a: { $ref: "#/definitions/d0" } } }),
      },
    };
    const deep = nested('{"a":', "}", 64);
    for (const [name, schemata] of Object.entries(schemas)) {
      const schema = accepted(schemata);
      // Called from deep down a stack, as a handler may be.
      expect([name, atDepth(1_000, () => schema.validate(deep))]).toEqual([name, undefined]);
    }
    expect(
      accepted({ items: { $ref: "#" }, uniqueItems: true }).validate(nested("[", "]", 64)),
    ).toBeUndefined();
  });

  test("references that take more stack than there is stop as steps do", () => {
    const definitions = chain(450, { properties: { a: { $ref: "#" } } });
    const schema = accepted({ $ref: "#/definitions/d0", definitions });
    expect(schema.validate({ a: { a: {} } })).toBeUndefined();
    expect(schema.validate(nested('{"a":', "}", 64))).toEqual(TOO_MANY);
    expect(budget.left).toBeLessThan(0);
  });

  test("a longer chain is refused with the schema", () => {
    const forwards = chain(1_000, {}, (next) => next);
    const backwards = Object.fromEntries(Object.entries(forwards).toReversed());
    for (const definitions of [forwards, backwards]) {
      const { message } = refused({ definitions, $ref: "#/definitions/d0" });
      expect(message).toContain("chains more than 1,000");
    }
  });

  test("many patterns are counted with what they lead to", () => {
    const inner = {
      properties: { in: { pattern: "^(x|y)$" } },
      patternProperties: { "^p": { type: "null" } },
    };
    const schema = accepted({
      patternProperties: Object.fromEntries(many(600, (index) => [`^p${index}$`, { type: "number" }])),
      additionalProperties: inner,
    });
    expect(
      schema.validate({ p0: 1, p599: 2, p600: { in: "x", p: null }, other: { in: "y" } }),
    ).toBeUndefined();
    expect(schema.validate({ p599: {} })).toMatchObject({ field: "p599", message: "must be a number" });
    expect(schema.validate({ other: { in: "z" } })).toMatchObject({ field: "other.in" });
    expect(schema.validate({ p0: 1, p600: { in: "x", p7: 1 } })).toMatchObject({ field: "p600.p7" });
    const closed = accepted({
      patternProperties: Object.fromEntries(many(600, (index) => [`^p${index}$`, true])),
      additionalProperties: false,
    });
    expect(closed.validate({ p7: 1, p599: 1 })).toBeUndefined();
    expect(closed.validate({ p7: 1, p600: 1 })).toMatchObject({ field: "p600" });
  });

  test("a long chain without recursion, and the widest schemas, compile and run", () => {
    const long = accepted({ $ref: "#/definitions/d0", definitions: chain(450, { type: "string" }) });
    expect(long.validate(1)).toEqual({ field: "", message: "must be a string", value: 1 });
    const leaf = { type: ["string", "null"], minLength: 1, maxLength: 9 };
    const wide = [
      { properties: members(990, () => leaf) },
      { patternProperties: members(990, () => leaf) },
      { dependencies: members(990, () => leaf) },
      { allOf: many(990, () => leaf) },
      { anyOf: many(990, () => leaf) },
      { oneOf: many(256, () => leaf) },
      { items: many(256, () => leaf) },
      { required: many(4_000, (index) => `r${index}`) },
    ];
    for (const schemata of someOf(wide, lengthOf("schema/hostile")["wide schemas"])) {
      const schema = atDepth(1_000, () => accepted(schemata));
      schema.validate({ p1: "a" });
      schema.validate(["a"]);
      schema.validate("zzz");
    }
  });
});

describe("code in a schema", () => {
  test.each([
    '"];globalThis.broken=1;//',
    "'+(globalThis.broken=1)+'",
    "\u2028globalThis.broken=1",
    "`${globalThis.broken=1}`",
    "*/globalThis.broken=1/*",
    "\\",
  ])("is impossible: names and values stay data: %j", (text) => {
    const schemata = {
      $id: `https://example.com/${encodeURIComponent(text)}`,
      title: text,
      properties: { [text]: { const: text }, other: { enum: [text, { [text]: 1 }] } },
      required: [text],
      dependencies: { [text]: [text] },
      propertyNames: { enum: [text, "other"] },
      additionalProperties: { $ref: "#/definitions/x" },
      definitions: { x: { default: text, format: text } },
      [text]: true,
    };
    const schema = accepted(schemata);
    expect(schema.validate({ [text]: text, other: text })).toBeUndefined();
    expect(schema.validate({ [text]: 1 })?.field).toBe(`[${JSON.stringify(text)}]`);
    expect(schema.validate({})?.message).toBe("is required");
    const usual = accepted({ title: text, properties: { [text]: { const: text } }, required: [text] });
    expect(usual.validate({ [text]: text })).toBeUndefined();
    expect(usual.validate({ [text]: 1 })).toBeDefined();
    expect("broken" in globalThis).toBe(false);
  });
});

/** Calls from so many frames down. */
function atDepth<T>(frames: number, run: () => T): T {
  return frames === 0 ? run() : atDepth(frames - 1, run);
}
