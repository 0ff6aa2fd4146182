/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { describe, expect, test } from "vitest";
import { many, members } from "./makers.ts";
import { accepted } from "./refused.ts";

const failure = (schemata: unknown, value: unknown) => accepted(schemata).validate(value);
const messageFor = (schemata: unknown, value: unknown) => failure(schemata, value)?.message;

describe("a failure names the offending field", () => {
  const order = {
    type: "object",
    properties: {
      address: {
        type: "object",
        properties: { zip: { type: "string" }, "odd name": { type: "string" }, größe: { type: "number" } },
        required: ["zip"],
        additionalProperties: false,
      },
      items: { type: "array", items: { $ref: "#/definitions/item" } },
      tags: { type: "object", additionalProperties: { type: "string" } },
      pairs: { items: [{ type: "string" }, { items: { type: "integer" } }] },
    },
    definitions: { item: { type: "object", properties: { sku: { type: "string" } }, required: ["sku"] } },
  };
  const schema = accepted(order);

  const cases: [unknown, string, string, unknown][] = [
    [5, "", "must be an object", 5],
    [{ address: 1 }, "address", "must be an object", 1],
    [{ address: { zip: 12 } }, "address.zip", "must be a string", 12],
    [{ address: {} }, "address.zip", "is required", null],
    [{ address: { zip: "1", "odd name": null } }, 'address["odd name"]', "must be a string", null],
    [{ address: { zip: "1", größe: "x" } }, "address.größe", "must be a number", "x"],
    [{ address: { zip: "1", town: [1] } }, "address.town", "is not a known property", [1]],
    [{ address: { zip: "1", "a.b": 2 } }, 'address["a.b"]', "is not a known property", 2],
    [{ items: [{ sku: "a" }, { sku: 2 }] }, "items[1].sku", "must be a string", 2],
    [{ items: [{ sku: "a" }, {}] }, "items[1].sku", "is required", null],
    [{ items: { 0: { sku: 1 } } }, "items", "must be a list", { 0: { sku: 1 } }],
    [{ tags: { "a/b~c": 1 } }, 'tags["a/b~c"]', "must be a string", 1],
    [{ tags: { 7: 1 } }, 'tags["7"]', "must be a string", 1],
    [{ tags: { "": 1 } }, 'tags[""]', "must be a string", 1],
    [{ pairs: ["a", [1, 2, "3"]] }, "pairs[1][2]", "must be an integer", "3"],
  ];
  test.each(cases)("%j", (value, field, message, offending) => {
    expect(schema.validate(value)).toEqual({ field, message, value: offending });
  });
});

const patternMessage = (length: number) => messageFor({ pattern: `^${"é".repeat(length)}` }, "b")!;

test("an error truncates a long name, place and message", () => {
  const schema = accepted({ additionalProperties: { $ref: "#" }, not: { type: "string" } });
  const at = (...names: string[]) => {
    const value = names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), "x");
    return schema.validate(value)!.field;
  };
  expect(at("n".repeat(128))).toBe("n".repeat(128));
  expect(at(`b${"n".repeat(1_000_000)}e`)).toBe(`["b${"n".repeat(63)}…${"n".repeat(62)}e"]`);
  // Half a surrogate pair is no character.
  expect(at("😀".repeat(80)).isWellFormed()).toBe(true);
  expect(
    at("a", ...Array.from({ length: 14 }, () => "n".repeat(127)), "z".repeat(127), "z".repeat(126)),
  ).toHaveLength(2_048);
  const long = at("first", ...Array.from({ length: 60 }, () => "\u0001".repeat(127)), "last");
  expect(long).toMatch(/^first\["[^…]*….*"\]\.last$/u);
  expect(long.length).toBeLessThanOrEqual(2_048);

  expect(patternMessage(400)).toBe(`must match the pattern ^${"é".repeat(400)}`);
  expect(Buffer.byteLength(patternMessage(900))).toBeLessThanOrEqual(1_024);
  expect(patternMessage(900)).toMatch(/^must match the pattern \^é+…$/u);
});

/** A form that its `kind` tells apart. */
const kind = (name: string, properties: object): object => ({
  properties: { kind: { const: name }, ...properties },
  required: ["kind"],
});

describe("a failure says what is wrong", () => {
  const withText = { contains: { type: "string" } };
  const noneOfTheKind = "must hold at least one item of the kind asked for";
  const cases: [unknown, unknown, string][] = [
    [{ type: ["string", "null"] }, 1, "must be a string or null"],
    [{ type: ["string", "integer", "boolean"] }, [], "must be a string, an integer or true or false"],
    [{ type: "integer" }, 1.5, "must be an integer"],
    [{ type: "number" }, Infinity, "must be a number that a double can hold"],
    [{ enum: ["a", 1, { b: 2 }] }, "c", 'must be one of "a", 1, {"b":2}'],
    [{ enum: many(30, (index) => index) }, "c", "must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 20 others"],
    [{ const: { a: [1] } }, { a: [2] }, 'must be {"a":[1]}'],
    [{ minLength: 1 }, "", "must have at least 1 character"],
    [{ maxLength: 2 }, "abc", "must have at most 2 characters"],
    [{ pattern: "^a" }, "b", "must match the pattern ^a"],
    [{ format: "email" }, "x", "must be an email address"],
    [{ format: "uuid" }, "x", "must be a UUID"],
    [
      { format: "date-time" },
      "2026-01-31",
      "must be a date and time with a time zone, such as 2026-01-31T12:00:00Z",
    ],
    [{ format: "ipv4" }, "1.2.3.256", "must be an IPv4 address"],
    [{ format: "duration" }, "x", "must be of the format duration"],
    [{ minimum: 5 }, 4, "must be at least 5"],
    [{ maximum: 5 }, 6, "must be at most 5"],
    [{ exclusiveMinimum: 5 }, 5, "must be greater than 5"],
    [{ exclusiveMaximum: 5 }, 5, "must be less than 5"],
    [{ multipleOf: 0.01 }, 19.999, "must be a multiple of 0.01"],
    [{ minItems: 2 }, [1], "must have at least 2 items"],
    [{ maxItems: 1 }, [1, 2], "must have at most 1 item"],
    [{ items: [true], additionalItems: false }, [1, 2], "is not allowed"],
    [
      { uniqueItems: true },
      [1, { a: 1, b: 2 }, { b: 2, a: 1 }],
      "must not hold the same item twice (items 1 and 2)",
    ],
    [withText, [1], noneOfTheKind],
    [{ ...withText, items: [true] }, [], noneOfTheKind],
    [{ items: withText }, [["x"], []], noneOfTheKind],
    [{ minProperties: 1 }, {}, "must have at least 1 property"],
    [{ maxProperties: 1 }, { a: 1, b: 2 }, "must have at most 1 property"],
    [{ properties: { a: false } }, { a: 1 }, "is not allowed"],
    [{ dependencies: { a: ["b"] } }, { a: 1 }, 'is required when "a" is present'],
    [
      { propertyNames: { maxLength: 1 } },
      { ab: 1 },
      "is not a name a property may have here: it must have at most 1 character",
    ],
    [{ not: { type: "string" } }, "a", "must not be of this kind"],
    [{ if: { type: "string" }, then: { minLength: 2 } }, "a", "must have at least 2 characters"],
    [
      { oneOf: [{ type: "string" }, { minLength: 1 }] },
      "a",
      "must match only one of the allowed forms, but matches several",
    ],
    [{ anyOf: [{ minLength: 2 }, { pattern: "b" }] }, "a", "must match at least one of the allowed forms"],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, 1, "must be a string or null"],
    [{ anyOf: [{ type: "null" }, { type: "string", minLength: 2 }] }, "a", "must have at least 2 characters"],
  ];
  test.each(cases)("%j", (schemata, value, message) => {
    expect(messageFor(schemata, value)).toBe(message);
  });

  test("is about the closest of several forms", () => {
    const shapes = {
      oneOf: [
        {
          type: "object",
          properties: { kind: { const: "circle" }, r: { type: "number" } },
          required: ["kind", "r"],
        },
        { type: "string" },
      ],
    };
    expect(failure({ properties: { shape: shapes } }, { shape: { kind: "circle", r: "1" } })).toEqual({
      field: "shape.r",
      message: "must be a number",
      value: "1",
    });
  });

  test.each(["anyOf", "oneOf"])("is about the branch of %s whose kind is the value's", (keyword) => {
    const inline = [
      { type: "null" },
      kind("circle", { r: { type: "number" } }),
      kind("square", { side: { type: "number" } }),
    ];
    const definitions = { 0: inline[0], 1: inline[1], 2: inline[2] };
    const referring = [0, 1, 2].map((index) => ({ $ref: `#/definitions/${index}` }));
    for (const branches of [inline, referring]) {
      const schemata = { definitions, properties: { shape: { [keyword]: branches } } };
      expect(failure(schemata, { shape: { kind: "square", side: "1" } })).toEqual({
        field: "shape.side",
        message: "must be a number",
        value: "1",
      });
      expect(failure(schemata, { shape: { kind: "star" } })).toEqual({
        field: "shape.kind",
        message: 'must be one of "circle", "square"',
        value: "star",
      });
    }
  });
});

describe("values repeated in errors", () => {
  test("are whole up to 1 KiB of JSON, and then truncated", () => {
    const whole = "x".repeat(1_022);
    expect(failure({ type: "number" }, whole)?.value).toBe(whole);
    expect(failure({ type: "number" }, `${whole}x`)?.value).toBe(`${"x".repeat(1_021)}…`);
    expect(failure({ type: "number" }, { a: "y".repeat(5_000) })?.value).toBe(`{"a":"${"y".repeat(1_015)}…`);
    const cut = failure({ type: "number" }, "😀".repeat(5_000))?.value as string;
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(1_024);
    expect(cut).toMatch(/^(😀)+…$/u);
  });

  test("show infinite numbers as text", () => {
    expect(failure({ type: "number" }, JSON.parse("1e400"))?.value).toBe("1e999");
  });
});

describe("values JSON Schema and JavaScript see differently", () => {
  test.each([
    [19.99, 0.01, true],
    [0.3, 0.1, true],
    [1.1, 0.1, true],
    [0.0075, 0.0001, true],
    [0.00751, 0.0001, false],
    [9, 3, true],
    [10, 3, false],
    [-4.5, 1.5, true],
    [1e308, 0.123456789, false],
    [1e22, 10, true],
    [0, 5, true],
    [5e-324, 5e-324, true],
  ])("%d as a multiple of %d: %s", (value, multipleOf, is) => {
    expect(failure({ multipleOf }, value) === undefined).toBe(is);
  });

  test("have their length counted in characters", () => {
    expect(messageFor({ maxLength: 2 }, "😀😀")).toBeUndefined();
    expect(messageFor({ minLength: 3 }, "😀😀")).toBeDefined();
    expect(messageFor({ maxLength: 3 }, "😀😀a")).toBeUndefined();
  });

  test("are equal in any order of members, and types differ", () => {
    expect(messageFor({ enum: [{ a: 1, b: 2 }] }, { b: 2, a: 1 })).toBeUndefined();
    expect(messageFor({ enum: ["1", false] }, 1)).toBeDefined();
    expect(messageFor({ enum: [0] }, false)).toBeDefined();
    expect(messageFor({ enum: [{}] }, "\u0000{}")).toBeDefined();
    expect(messageFor({ enum: [null] }, null)).toBeUndefined();
    expect(messageFor({ enum: [0] }, -0)).toBeUndefined();
    expect(messageFor({ enum: [{ a: 0 }] }, { a: -0 })).toBeUndefined();
    expect(
      messageFor({ uniqueItems: true }, [1, true, "1", [1], { 0: 1 }, null, "null", JSON.parse("1e400")]),
    ).toBeUndefined();
    expect(messageFor({ uniqueItems: true }, [[{ a: 1 }], [{ a: 1 }]])).toBeDefined();
  });

  test("may have a member without a name, which may be required", () => {
    expect(failure({ required: [""] }, {})).toMatchObject({ field: '[""]', message: "is required" });
    expect(failure({ required: [""] }, { "": null })).toBeUndefined();
  });

  test("may have members that every JavaScript object inherits", () => {
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    for (const name of names) {
      const object = JSON.parse(`{${JSON.stringify(name)}:1}`) as unknown;
      expect(failure({ required: [name] }, {})).toMatchObject({ field: name, message: "is required" });
      expect(failure({ required: [name] }, object)).toBeUndefined();
      const typed = JSON.parse(
        `{"properties":{${JSON.stringify(name)}:{"type":"string"}},"additionalProperties":false}`,
      ) as unknown;
      expect(failure(typed, {})).toBeUndefined();
      expect(failure(typed, object)).toEqual({ field: name, message: "must be a string", value: 1 });
      const depending = JSON.parse(`{"dependencies":{${JSON.stringify(name)}:["other"]}}`) as unknown;
      expect(failure(depending, {})).toBeUndefined();
      expect(failure(depending, [1])).toBeUndefined();
      expect(failure(depending, object)).toBeDefined();
      expect(failure({ additionalProperties: false }, object)).toMatchObject({ field: name });
      expect(
        failure(
          { properties: { a: { $ref: "#/definitions/b" } }, definitions: { b: { enum: [object] } } },
          { a: object },
        ),
      ).toBeUndefined();
    }
  });
});

describe("wide schemas are compiled in parts with the same meaning", () => {
  const count = 200;
  const names = many(count, (index) => `p${index}`);
  const filled: Readonly<Record<string, unknown>> = members(count, () => 1);

  test.each(names.filter((_, index) => index % 37 === 0))("properties, as %s shows", (name) => {
    const schema = accepted({
      properties: members(count, () => ({ type: "integer" })),
      additionalProperties: false,
    });
    expect(schema.validate(filled)).toBeUndefined();
    expect(schema.validate({ ...filled, [name]: "x" })).toEqual({
      field: name,
      message: "must be an integer",
      value: "x",
    });
    expect(schema.validate({ ...filled, q: 1 })).toMatchObject({ field: "q" });
  });

  test("patternProperties, dependencies, allOf, anyOf, oneOf and items", () => {
    const patterns = accepted({
      patternProperties: members(count, () => ({ minimum: 0 })),
      additionalProperties: { type: "string" },
    });
    expect(patterns.validate({ p150x: -1 })).toMatchObject({ field: "p150x", message: "must be at least 0" });
    expect(patterns.validate({ q: -1 })).toMatchObject({ field: "q", message: "must be a string" });
    const dependencies = accepted({
      dependencies: members(count, (index) => (index % 2 === 0 ? ["z"] : { minProperties: 2 })),
    });
    expect(dependencies.validate({ p150: 1 })).toMatchObject({ field: "z" });
    expect(dependencies.validate({ p151: 1 })).toMatchObject({ message: "must have at least 2 properties" });
    expect(dependencies.validate({ p150: 1, z: 1 })).toBeUndefined();
    const listed = accepted({ dependencies: { z: names, y: ["p0"], x: { minProperties: 2 } } });
    expect(listed.validate({ ...filled, z: 1, y: 1, x: 1 })).toBeUndefined();
    const { p150: left, ...rest } = filled;
    expect(left).toBe(1);
    expect(listed.validate(rest)).toBeUndefined();
    expect(listed.validate({ ...rest, z: 1 })).toMatchObject({
      field: "p150",
      message: 'is required when "z" is present',
    });
    expect(listed.validate({ y: 1 })).toMatchObject({ field: "p0" });
    const all = accepted({ allOf: many(count, (index) => ({ maximum: index + 10 })) });
    expect(all.validate(10)).toBeUndefined();
    expect(all.validate(11)).toMatchObject({ message: "must be at most 10" });
    for (const keyword of ["anyOf", "oneOf"]) {
      const some = accepted({ [keyword]: many(count, (index) => ({ const: index })) });
      expect(some.validate(150)).toBeUndefined();
      expect(some.validate(count)).toBeDefined();
    }
    const tuple = accepted({ items: many(count, (index) => ({ const: index })), additionalItems: false });
    expect(tuple.validate(many(count, (index) => index))).toBeUndefined();
    expect(tuple.validate(many(count, (index) => (index === 150 ? -1 : index)))).toMatchObject({
      field: "[150]",
    });
  });
});
