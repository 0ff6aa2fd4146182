import { describe, expect, test } from "vitest";
import { checkSchemaSteps, checkSchema } from "../../src/schema/check.ts";
import { runSync } from "../../src/runtime/yielding.ts";
import { compare } from "../../src/schema/compatibility/compare.ts";
import { sampleOf } from "../../src/schema/generate/sample.ts";
import { many, members, nested } from "./makers.ts";
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
    const reported = warnings(members(4_000, () => 1));
    expect(reported).toHaveLength(100);
    expect(reported[99]).toMatchObject({ pointer: "/p99" });
    expect([...checkSchemaSteps(members(4_000, () => 1))].length).toBeLessThan(200);
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

  test.each([
    ["a name that no property has", { additionalProperties: false }, true],
    ["a value that other properties cannot have", { additionalProperties: { type: "integer" } }, true],
    ["what other properties may have", {}, false],
    [
      "a name that a pattern may allow",
      { additionalProperties: false, patternProperties: { "^c": {} } },
      false,
    ],
  ])("of a filter are about %s of its action", (_, others, isWarned) => {
    const filter = { properties: { countyr: { const: "FR" } }, required: ["countyr"] };
    const schemata = { type: "object", properties: { country: { type: "string" } }, ...others };
    const checked = runSync(checkSchemaSteps(filter, "filter", { action: "a.b", schemata }));
    const pointers = checked.warnings.map(({ pointer }) => pointer);
    expect(pointers).toEqual(isWarned ? ["/properties/countyr"] : []);
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
  expect(compare({ properties: { a: { items: [] } } }, rest).length).toBeGreaterThan(0);
  expect(compare({ properties: { a: { items: { type: "string" } } } }, rest)).toEqual([]);
  const payload = sampleOf({ ...rest, required: ["a"] });
  expect(payload).toBeDefined();
  expect(accepted(rest).validate(payload)).toBeUndefined();
});

const A = (count: number): string => "a".repeat(count);
/** A schema of so many bytes. */
const described = (bytes: number): object => ({ description: A(bytes - 18) });

const denials = (levels: number): unknown => nested('{"not":', "}", levels - 1, "{}");
const numbers = (count: number): object => ({ enum: many(count, (index) => index) });

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

  test.each<[limit: string, within: unknown, beyond: unknown, message: string]>([
    ["64 levels", denials(64), denials(65), "deeper than 64 levels"],
    ["64 levels, by far", {}, denials(100_000), "deeper than 64 levels"],
    ["256 KiB", described(262_144), described(262_145), "at most 262,144 bytes as JSON, not 262,145"],
    [
      "5,000 schemas",
      { properties: members(4_999, () => ({ type: "string" })) },
      { properties: members(5_000, () => true) },
      "at most 5,000 schemas",
    ],
    ["also in definitions", {}, { definitions: members(5_000, () => true) }, "at most 5,000 schemas"],
    ["1,000 values of an enum", numbers(1_000), numbers(1_001), "at most 1,000 values"],
    [
      "1,024 characters of a pattern",
      { pattern: A(1_024) },
      { pattern: A(1_025) },
      "at most 1,024 characters",
    ],
    ["also of names", {}, { patternProperties: { [A(1_025)]: true } }, "at most 1,024 characters"],
  ])("%s", (_, within, beyond, message) => {
    expect(() => checkSchema(within)).not.toThrow();
    expect(refused(beyond).message).toContain(message);
  });

  test("64 KiB of a filter", () => {
    expect(() => checkSchema(described(65_536), "filter")).not.toThrow();
    expect(() => checkSchema(described(65_537), "filter")).toThrow(
      "filter: must have at most 65,536 bytes as JSON, not 65,537",
    );
  });
});
