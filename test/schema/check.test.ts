import { describe, expect, test } from "vitest";
import { checkSchemaSteps, checkSchema } from "../../src/schema/check.ts";
import { compare } from "../../src/schema/compatibility/compare.ts";
import { Sampler } from "../../src/schema/generate/generator.ts";
import { accepted, refused } from "./refused.ts";

const warnings = (schemata: unknown) => checkSchema(schemata).warnings;

describe("an invalid draft-07 schema", () => {
  const cases: [unknown, string, string][] = [
    [true, "schemata", "must be a JSON Schema object"],
    [null, "schemata", "must be a JSON Schema object"],
    [[], "schemata", "must be a JSON Schema object"],
    ["{}", "schemata", "must be a JSON Schema object"],
    [{ type: "strin" }, "schemata.type", 'must be one of "array"'],
    [{ type: 5 }, "schemata.type", "must"],
    [{ type: [] }, "schemata.type", "must match"],
    [{ properties: { zip: { minLength: -1 } } }, "schemata.properties.zip.minLength", "at least 0"],
    [
      { properties: { "odd name": { minLength: "1" } } },
      'schemata.properties["odd name"].minLength',
      "an integer",
    ],
    [{ items: [{ required: "a" }] }, "schemata.items[0].required", "must be a list"],
    [{ required: ["a", "a"] }, "schemata.required", "the same item twice"],
    [{ properties: [] }, "schemata.properties", "must be an object"],
    [{ properties: { a: 5 } }, "schemata.properties.a", "must be a schema"],
    [{ allOf: [] }, "schemata.allOf", "at least 1 item"],
    [{ allOf: { a: {} } }, "schemata.allOf", "must be a list"],
    [{ multipleOf: 0 }, "schemata.multipleOf", "greater than 0"],
    [{ enum: "a" }, "schemata.enum", "must be a list"],
    [{ $defs: { a: { type: "x" } } }, "schemata.$defs.a.type", "must be one of"],
    [
      JSON.parse('{"properties":{"__proto__":{"type":"x"}}}'),
      "schemata.properties.__proto__.type",
      "must be one of",
    ],
  ];
  test.each(cases)("%j", (schemata, field, message) => {
    const refusal = refused(schemata);
    expect(refusal.field).toBe(field);
    expect(refusal.message).toContain(message);
  });
});

describe("other dialects", () => {
  test.each([
    ["https://json-schema.org/draft/2020-12/schema"],
    ["https://json-schema.org/draft/2019-09/schema"],
    ["http://json-schema.org/draft-04/schema#"],
    ["http://json-schema.org/schema#"],
    ["http://example.com/draft-07/schema#"],
  ])("$schema %s is refused", ($schema) => {
    expect(refused({ $schema })).toMatchObject({ field: "schemata.$schema" });
    expect(refused({ properties: { a: { $schema } } }).field).toBe("schemata.properties.a.$schema");
  });

  test.each(["http", "https"])("draft-07 itself is accepted as %s, with and without #", (scheme) => {
    expect(warnings({ $schema: `${scheme}://json-schema.org/draft-07/schema` })).toEqual([]);
    expect(warnings({ $schema: `${scheme}://json-schema.org/draft-07/schema#` })).toEqual([]);
  });

  test("$async checks nothing", () => {
    expect(warnings({ $async: true }).map(({ pointer }) => pointer)).toEqual(["/$async"]);
    expect(accepted({ $async: true, required: ["a"] }).validate({})).toMatchObject({ field: "a" });
  });

  test("$data is refused, wherever it stands", () => {
    expect(refused({ properties: { a: { maximum: { $data: "1/b" } } } }).field).toBe(
      "schemata.properties.a.maximum.$data",
    );
    expect(refused({ const: { $data: "/a" } }).message).toContain("cannot take its values from the payload");
  });

  test("a property may be called $data, $async or $ref", () => {
    const schema = accepted({
      properties: { $data: { type: "string" }, $async: { type: "string" }, $ref: { type: "string" } },
    });
    expect(schema.validate({ $data: "a", $async: "b", $ref: "c" })).toBeUndefined();
    expect(schema.validate({ $ref: 1 })).toMatchObject({ field: "$ref", message: "must be a string" });
  });
});

describe("warnings", () => {
  test("are the first 100", () => {
    const reported = warnings(many(4_000, () => 1));
    expect(reported).toHaveLength(100);
    expect(reported[99]).toMatchObject({ pointer: "/p99" });
    expect([...checkSchemaSteps(many(4_000, () => 1))].length).toBeLessThan(200);
  });

  test("name the keyword that was probably meant", () => {
    expect(warnings({ requried: ["a"], properties: { "a/b": { minlength: 1, foo: {} } } })).toEqual([
      {
        pointer: "/requried",
        message: '"requried" is not a keyword of draft-07 and checks nothing; did you mean required?',
      },
      {
        pointer: "/properties/a~1b/minlength",
        message: '"minlength" is not a keyword of draft-07 and checks nothing; did you mean minLength?',
      },
      { pointer: "/properties/a~1b/foo", message: '"foo" is not a keyword of draft-07 and checks nothing' },
    ]);
  });

  test("say that an unknown format checks nothing", () => {
    expect(warnings({ format: "emial" })).toEqual([
      {
        pointer: "/format",
        message: 'the format "emial" is not known and checks nothing; did you mean email?',
      },
    ]);
    expect(accepted({ format: "emial" }).validate("x")).toBeUndefined();
  });

  test("say that nullable checks nothing in draft-07", () => {
    expect(warnings({ type: "string", nullable: true })).toEqual([
      { pointer: "/type", message: expect.stringContaining("every payload is an object") as string },
      {
        pointer: "/nullable",
        message: expect.stringContaining('write "null" into the list of types') as string,
      },
    ]);
    expect(accepted({ type: "string", nullable: true }).validate(null)).toMatchObject({
      message: "must be a string",
    });
  });

  test("say that what is next to a $ref is ignored", () => {
    const schemata = {
      properties: { a: { $ref: "#/definitions/text", maxLength: 2, description: "fine" } },
      definitions: { text: { type: "string" } },
    };
    expect(warnings(schemata).map(({ pointer }) => pointer)).toEqual(["/properties/a/maxLength"]);
    expect(accepted(schemata).validate({ a: "long" })).toBeUndefined();
    expect(accepted(schemata).validate({ a: 1 })).toMatchObject({ field: "a" });
  });

  test("are not given for annotations, definitions, extensions marked with x- and known formats", () => {
    const schemata = {
      $id: "https://example.com/user",
      $comment: "c",
      title: "t",
      description: "d",
      default: {},
      examples: [1],
      readOnly: true,
      writeOnly: false,
      contentEncoding: "base64",
      contentMediaType: "text/plain",
      "x-owner": "billing",
      definitions: { a: true },
      $defs: { b: {} },
      properties: Object.fromEntries(
        ["email", "uuid", "date-time", "date", "time", "ipv4", "ipv6", "uri", "hostname", "regex"].map(
          (format) => [format, { format }],
        ),
      ),
    };
    expect(warnings(schemata)).toEqual([]);
  });
});

test("what draft-07 only recommends is not required", () => {
  expect(accepted({ properties: { a: { enum: [] } } }).validate({ a: 1 })?.message).toContain(
    "there are none",
  );
  expect(accepted({ properties: { a: { enum: [1, 1] } } }).validate({ a: 1 })).toBeUndefined();
  expect(accepted({ properties: { a: { items: [] } } }).validate({ a: [1] })).toBeUndefined();
  const rest = { properties: { a: { items: [], additionalItems: { type: "string" } } } };
  expect(accepted(rest).validate({ a: ["x"] })).toBeUndefined();
  expect(accepted(rest).validate({ a: ["x", 1] })).toMatchObject({ field: "a[1]" });
  expect(compare({ properties: { a: { items: [] } } }, rest).breaks.length).toBeGreaterThan(0);
  expect(compare({ properties: { a: { items: { type: "string" } } } }, rest).breaks).toEqual([]);
  const { payload } = new Sampler({ ...rest, required: ["a"] }).sample(1, 0);
  expect(payload).toBeDefined();
  expect(accepted(rest).validate(payload)).toBeUndefined();
});

describe("limits", () => {
  test("holds no number that no double can hold, as it would be stored as null", () => {
    for (const [text, field] of [
      ['{"properties":{"n":{"maximum":1e400}}}', "schemata.properties.n.maximum"],
      ['{"properties":{"n":{"enum":[1,-1e400]}}}', "schemata.properties.n.enum[1]"],
      ['{"const":{"a":1e400}}', "schemata.const.a"],
    ] as const) {
      expect(refused(JSON.parse(text))).toEqual({
        field,
        message: "must be a number that a double can hold, up to 1.79e308",
      });
    }
  });

  test("64 levels", () => {
    expect(() => checkSchema(nested(64))).not.toThrow();
    expect(refused(nested(65)).message).toContain("deeper than 64 levels");
    expect(refused(nested(100_000)).message).toContain("deeper than 64 levels");
  });

  test("256 KiB", () => {
    expect(() => checkSchema({ description: "x".repeat(262_144 - 18) })).not.toThrow();
    expect(refused({ description: "x".repeat(262_144 - 17) }).message).toContain(
      "at most 262,144 bytes as JSON, not 262,145",
    );
  });

  test("64 KiB of a filter", () => {
    expect(() => checkSchema({ title: "x".repeat(65_536 - 12) }, "filter")).not.toThrow();
    expect(() => checkSchema({ title: "x".repeat(65_536 - 11) }, "filter")).toThrow(
      "filter: must have at most 65,536 bytes as JSON, not 65,537",
    );
  });

  test("5,000 schemas", () => {
    expect(() => checkSchema({ properties: many(4_999, () => ({ type: "string" })) })).not.toThrow();
    expect(refused({ properties: many(5_000, () => true) }).message).toContain("at most 5,000 schemas");
    expect(refused({ definitions: many(5_000, () => true) }).message).toContain("at most 5,000 schemas");
  });

  test("1,000 values of an enum", () => {
    expect(() => checkSchema({ enum: Array.from({ length: 1_000 }, (_, index) => index) })).not.toThrow();
    expect(refused({ enum: Array.from({ length: 1_001 }, (_, index) => index) })).toMatchObject({
      field: "schemata.enum",
    });
  });

  test("1,024 characters of a pattern", () => {
    expect(() => checkSchema({ pattern: "a".repeat(1_024) })).not.toThrow();
    expect(refused({ pattern: "a".repeat(1_025) })).toMatchObject({ field: "schemata.pattern" });
    expect(refused({ patternProperties: { ["a".repeat(1_025)]: true } }).message).toContain(
      "at most 1,024 characters",
    );
  });

  test("256 branches of a oneOf and places of a list of items", () => {
    expect(() => checkSchema({ oneOf: Array(256).fill(true) })).not.toThrow();
    expect(refused({ oneOf: Array(257).fill(true) }).message).toContain("at most 256 schemas");
    expect(refused({ items: Array(257).fill(true) }).message).toContain("at most 256 schemas");
  });
});

const nested = (levels: number): unknown => {
  let schema: unknown = {};
  for (let level = 1; level < levels; level++) schema = { not: schema };
  return schema;
};
const many = (count: number, of: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, of(index)]));

test.each([
  [undefined, "schemata.properties.a.type"],
  ["schemata", "schemata.properties.a.type"],
  ["filter", "filter.properties.a.type"],
] as const)("a place is given from the member that contains the schema: %s", (member, field) => {
  const check = (): unknown => checkSchema({ properties: { a: { type: "strin" } } }, member);
  expect(check).toThrow(expect.objectContaining({ details: expect.objectContaining({ field }) }));
  expect(check).toThrow(new RegExp(`^${field}: must be one of`));
});
