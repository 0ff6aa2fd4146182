import { describe, expect, test } from "vitest";
import { checkSchema } from "../../src/schema/check.ts";
import { compareSchemas } from "../../src/schema/compatibility.ts";

type Json = Record<string, unknown>;

function compare(before: Json, after: Json) {
  checkSchema(before);
  checkSchema(after);
  return compareSchemas(before, after);
}

const text = { type: "string" };
const base = (extra: Json = {}): Json => ({
  type: "object",
  properties: {
    email: { type: "string", format: "email" },
    address: { type: "object", properties: { zip: text } },
  },
  required: ["email"],
  ...extra,
});
const withProperties = (properties: Json, extra: Json = {}): Json => {
  const schema = base(extra);
  return { ...schema, properties: { ...(schema["properties"] as Json), ...properties } };
};

describe("applied to the existing action", () => {
  const cases: [string, Json, Json][] = [
    ["the same schema", base(), base()],
    [
      "the same in another order",
      { type: "object", required: ["a", "b"] },
      { required: ["b", "a"], type: "object" },
    ],
    ["an optional property", base(), withProperties({ name: text })],
    [
      "an optional property of a closed object",
      base({ additionalProperties: false }),
      withProperties({ name: text }, { additionalProperties: false }),
    ],
    ["properties where there were none", { type: "object" }, { type: "object", properties: { a: text } }],
    [
      "an optional property deeper down",
      base(),
      withProperties({ address: { type: "object", properties: { zip: text, town: text } } }),
    ],
    [
      "an optional property of items",
      { properties: { items: { items: { properties: { sku: text } } } } },
      {
        properties: { items: { items: { properties: { sku: text, qty: { type: "integer" } }, title: "t" } } },
      },
    ],
    [
      "an optional property in a definition",
      { properties: { a: { $ref: "#/definitions/a" } }, definitions: { a: { properties: {} } } },
      { properties: { a: { $ref: "#/definitions/a" } }, definitions: { a: { properties: { b: text } } } },
    ],
    [
      "an object of its own with required members",
      base(),
      withProperties({ shop: { required: ["id"], properties: { id: text } } }),
    ],
    [
      "annotations",
      base({ title: "a" }),
      base({ description: "b", examples: [1], default: {}, $comment: "c", readOnly: true }),
    ],
    [
      "the address of a document that does not use it",
      base({ $id: "http://e.com/1" }),
      base({ $id: "http://e.com/2" }),
    ],
    ["draft-07 named in another way", base(), base({ $schema: "http://json-schema.org/draft-07/schema#" })],
    ["unknown keywords", base({ "x-owner": "a" }), base({ nullable: true, foo: 1 })],
    ["new and unused definitions", base({ definitions: { a: text } }), base({ definitions: { b: text } })],
    ["what says the same as before", base(), base({ additionalProperties: true })],
    [
      "the order of an enum and of types",
      { enum: [1, 2], type: ["string", "null"] },
      { enum: [2, 1], type: ["null", "string"] },
    ],
    [
      "what a $ref makes ignored",
      { $ref: "#/definitions/a", maxLength: 1, definitions: { a: text } },
      { $ref: "#/definitions/a", definitions: { a: text } },
    ],
    [
      "a property with an inherited name",
      base(),
      JSON.parse(JSON.stringify(withProperties({ constructor: text }))) as Json,
    ],
  ];
  test.each(cases)("%s", (_, before, after) => {
    expect(compare(before, after)).toEqual([]);
  });
});

describe("reported as a break", () => {
  const cases: [string, Json, Json, string, string][] = [
    [
      "a new required property",
      base(),
      withProperties({ name: text }, { required: ["email", "name"] }),
      "/required",
      'The property "name" has become required.',
    ],
    [
      "a property become required",
      base(),
      base({ required: ["email", "address"] }),
      "/required",
      'The property "address" has become required.',
    ],
    [
      "a property no longer required",
      base(),
      base({ required: [] }),
      "/required",
      'The property "email" is no longer required.',
    ],
    [
      "the list of required gone",
      base(),
      JSON.parse(JSON.stringify(base({ required: undefined }))) as Json,
      "/required",
      "no longer required",
    ],
    [
      "a property gone",
      withProperties({ name: text }),
      base(),
      "/properties/name",
      'The property "name" is gone.',
    ],
    [
      "a property renamed",
      withProperties({ "a/b": text }),
      withProperties({ c: text }),
      "/properties/a~1b",
      "is gone",
    ],
    [
      "another type",
      base(),
      withProperties({ email: { type: "integer", format: "email" } }),
      "/properties/email/type",
      'type has changed from "string" to "integer".',
    ],
    [
      "a wider type",
      { type: "string" },
      { type: ["string", "null"] },
      "/type",
      'from "string" to ["string","null"]',
    ],
    [
      "a new limit",
      base(),
      withProperties({ email: { type: "string", format: "email", maxLength: 5 } }),
      "/properties/email/maxLength",
      "maxLength is new: 5.",
    ],
    ["a limit gone", { maxLength: 5 }, {}, "/maxLength", "maxLength is gone: 5."],
    ["a wider limit", { maxLength: 5 }, { maxLength: 6 }, "/maxLength", "maxLength has changed from 5 to 6."],
    [
      "a value less in an enum",
      { enum: [1, 2] },
      { enum: [1] },
      "/enum",
      "enum has changed from [1,2] to [1].",
    ],
    ["a value more in an enum", { enum: [1] }, { enum: [1, 2] }, "/enum", "enum has changed"],
    ["a format", { format: "email" }, { format: "uri" }, "/format", "format has changed"],
    [
      "an object closed",
      base(),
      base({ additionalProperties: false }),
      "/additionalProperties",
      "What is allowed here has changed.",
    ],
    [
      "an object opened",
      base({ additionalProperties: false }),
      base(),
      "/additionalProperties",
      "What is allowed here has changed.",
    ],
    [
      "items of another kind",
      { items: text },
      { items: { type: "number" } },
      "/items/type",
      "type has changed",
    ],
    ["items as a list", { items: text }, { items: [text] }, "/items", "items has changed"],
    ["a combination", { allOf: [text] }, { allOf: [text, { minLength: 1 }] }, "/allOf", "allOf has changed"],
    [
      "a property in a branch",
      { anyOf: [{ properties: {} }] },
      { anyOf: [{ properties: { a: text } }] },
      "/anyOf",
      "anyOf has changed",
    ],
    [
      "another $ref",
      { $ref: "#/definitions/a", definitions: { a: text, b: text } },
      { $ref: "#/definitions/b", definitions: { a: text, b: text } },
      "/$ref",
      "$ref has changed",
    ],
    [
      "a $ref in place of a schema",
      { properties: { a: text }, definitions: { a: text } },
      { properties: { a: { $ref: "#/definitions/a" } }, definitions: { a: text } },
      "/properties/a/type",
      "type is gone",
    ],
    [
      "a definition changed",
      { $ref: "#/definitions/a", definitions: { a: text } },
      { $ref: "#/definitions/a", definitions: { a: { type: "number" } } },
      "/definitions/a/type",
      "type has changed",
    ],
    [
      "a property forbidden",
      base(),
      withProperties({ name: false }),
      "/properties/name",
      "not allowed to be present",
    ],
    [
      "a property until now required without a schema",
      { required: ["a"] },
      { required: ["a"], properties: { a: text } },
      "/properties/a",
      "is new, and it is required.",
    ],
    [
      "a property taken out of additionalProperties",
      { additionalProperties: text },
      { additionalProperties: text, properties: { a: { type: "number" } } },
      "/properties/a",
      "until now it had to match additionalProperties",
    ],
    [
      "a property in a definition used in a choice",
      {
        properties: { a: { oneOf: [{ $ref: "#/definitions/a" }, { type: "null" }] } },
        definitions: { a: { properties: {} } },
      },
      {
        properties: { a: { oneOf: [{ $ref: "#/definitions/a" }, { type: "null" }] } },
        definitions: { a: { properties: { b: text } } },
      },
      "/definitions/a/properties/b",
      "inside a choice",
    ],
    [
      "a name that passes to another definition",
      { properties: { a: { $ref: "#n" } }, definitions: { a: { $id: "#n", type: "string" } } },
      { properties: { a: { $ref: "#n" } }, definitions: { b: { $id: "#n", type: "number" } } },
      "/definitions/a",
      "may now mean something else",
    ],
    [
      "an unknown keyword that a $ref uses",
      { properties: { a: { $ref: "#/parts/a" } }, parts: { a: text } },
      { properties: { a: { $ref: "#/parts/a" } }, parts: { a: { type: "number" } } },
      "/parts",
      "parts has changed",
    ],
    [
      "an inner $id",
      { properties: { a: { $id: "http://e.com/1" } } },
      { properties: { a: { $id: "http://e.com/2" } } },
      "/properties/a/$id",
      "$id has changed",
    ],
    [
      "a property that becomes true",
      { properties: { a: text } },
      { properties: { a: true } },
      "/properties/a/type",
      "type is gone",
    ],
    [
      "a property that becomes false",
      { properties: { a: text } },
      { properties: { a: false } },
      "/properties/a",
      "What is allowed here has changed.",
    ],
  ];
  test.each(cases)("%s", (_, before, after, pointer, message) => {
    const changes = compare(before, after);
    expect(changes.map((change) => change.pointer)).toContain(pointer);
    expect(changes.find((change) => change.pointer === pointer)?.message).toContain(message);
  });

  test("each break of several, in the document's order", () => {
    const after = withProperties(
      { email: { type: "integer" } },
      { required: ["email", "address"], minProperties: 1 },
    );
    expect(compare(base(), after).map(({ pointer }) => pointer)).toEqual([
      "/properties/email/type",
      "/properties/email/format",
      "/required",
      "/minProperties",
    ]);
  });
});
