/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { describe, expect, test } from "vitest";
import { toDraft7 } from "../../../src/import/draft7.ts";
import { type Dialect, SourceDocument, UnsupportedMessage } from "../../../src/import/source.ts";

/** Of the schema at `/schema`, in a document with others to refer to. */
function translated(schema: unknown, dialect: Dialect = "2020-12") {
  const document = { schema, kept: KEPT };
  const { schemata, notes } = toDraft7(new SourceDocument(document, dialect), "/schema");
  return { schemata, notes: notes.map(({ pointer, message }) => `${pointer}: ${message}`) };
}

function refusal(schema: unknown): string {
  try {
    translated(schema);
  } catch (error) {
    if (error instanceof UnsupportedMessage) return `${error.pointer}: ${error.message}`;
    throw error;
  }
  return "";
}

const KEPT = {
  text: { type: "string" },
  "odd/name %": { type: "null" },
  tree: { properties: { under: { $ref: "#/kept/tree" } } },
  loop: { $ref: "#/kept/pool" },
  pool: { $ref: "#/kept/loop" },
};
const text = { $ref: "#/definitions/text" };

describe("2020-12", () => {
  test.each<[string, Record<string, unknown>, unknown]>([
    ["one schema for all items", { items: { type: "null" } }, undefined],
    [
      "names that need others",
      { dependencies: { a: ["b"], c: { $ref: "#/schema" } } },
      { dependencies: { a: ["b"], c: { $ref: "#" } } },
    ],
    [
      "keywords beside a reference",
      { $ref: "#/kept/text", maxLength: 3, allOf: [{ minLength: 1 }] },
      { maxLength: 3, allOf: [{ minLength: 1 }, text], definitions: { text: KEPT.text } },
    ],
    [
      "words beside a reference",
      { $ref: "#/kept/text", title: "A text" },
      { ...text, title: "A text", definitions: { text: KEPT.text } },
    ],
    ["a reference alone", { $ref: "#/kept/text" }, KEPT.text],
    ["one that leads back", { $ref: "#/kept/tree" }, { properties: { under: { $ref: "#" } } }],
    [
      "an odd name",
      { not: { $ref: "#/kept/odd~1name%20%25" } },
      { not: { $ref: "#/definitions/odd_name_" }, definitions: { odd_name_: { type: "null" } } },
    ],
    [
      "a schema with an address",
      { $id: "https://shop.example/a", not: { $ref: "#/kept/text" } },
      { not: text, definitions: { text: KEPT.text } },
    ],
    ["values, whatever they look like", { const: { $ref: "#/x", $id: "y" }, default: { xml: 1 } }, undefined],
    [
      "properties named like keywords",
      { properties: { xml: {}, $ref: {}, items: { type: "null" } } },
      undefined,
    ],
    ["types with null", { type: ["string", "null"] }, undefined],
    ["an extension", { "x-internal": { $ref: "#/nowhere" } }, undefined],
    ["an example", { example: 3 }, { examples: [3] }],
  ])("%s", (_, schema, expected) => {
    expect(translated(schema)).toEqual({ schemata: expected ?? schema, notes: [] });
  });

  test("a member named __proto__ is an ordinary one", () => {
    const schema = JSON.parse(
      '{"properties":{"__proto__":{"type":"null"}},"dependencies":{"__proto__":["a"]}}',
    ) as object;
    expect(JSON.stringify(translated(schema).schemata)).toBe(JSON.stringify(schema));
  });

  test.each<[string, Record<string, unknown>, string]>([
    [
      "another document",
      { $ref: "text.yaml#/a" },
      '/schema/$ref: $ref "text.yaml#/a" is no pointer into this',
    ],
    ["a name", { not: { $ref: "#text" } }, '/schema/not/$ref: $ref "#text" is no pointer into this'],
    [
      "nowhere",
      { $ref: "#/kept/none" },
      '/schema/$ref: $ref "#/kept/none" leads to a place that is not there',
    ],
    ["the document", { $ref: "#" }, '/schema/$ref: $ref "#" is no pointer into this document'],
    ["a circle", { $ref: "#/kept/loop" }, "/schema: $ref leads back to itself"],
    [
      "another dialect",
      { $schema: "http://json-schema.org/draft-07/schema#" },
      "/schema/$schema: the schemas of this document are read as 2020-12; write this one so",
    ],
    ["a dynamic reference", { $dynamicRef: "#a" }, "/schema/$dynamicRef: $dynamicRef is not translated; use"],
    ["a tuple", { not: { prefixItems: [{}] } }, "/schema/not/prefixItems: prefixItems is not translated; "],
    ["at most so many", { contains: {}, maxContains: 2 }, "/schema/maxContains: maxContains is not"],
    [
      "a closed object",
      { properties: { a: {} }, unevaluatedProperties: false },
      "/schema/unevaluatedProperties: unevaluatedProperties is not translated; write additionalProperties",
    ],
  ])("%s is refused", (_, schema, start) => {
    expect(refusal(schema).slice(0, start.length)).toBe(start);
  });

  test("what checks nothing is left out and reported", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      properties: { a: { xml: {}, nullable: true, requird: [], title: null } },
    };
    const { schemata, notes } = translated(schema);
    expect(schemata).toEqual({ properties: { a: {} } });
    const at = "/schema/properties/a";
    expect(notes).toEqual([
      `${at}/xml: left out: "xml" is not a keyword of draft-07 and checks nothing`,
      `${at}/nullable: left out: nullable is not part of JSON Schema and checks nothing; to allow null, write "null" into the list of types`,
      `${at}/requird: left out: "requird" is not a keyword of draft-07 and checks nothing; did you mean required?`,
      `${at}/title: left out: title is empty`,
    ]);
  });
});

test("draft-07 is unchanged, but for what checks nothing", () => {
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    items: [{ type: "null" }],
    additionalItems: { dependencies: { a: ["b"], c: { $ref: "#/kept/text", maxLength: 3 } } },
    unevaluatedProperties: false,
    definitions: { unused: {} },
  };
  expect(translated(schema, "draft-07")).toEqual({
    schemata: {
      items: [{ type: "null" }],
      additionalItems: { dependencies: { a: ["b"], c: { ...text, maxLength: 3 } } },
      definitions: { text: KEPT.text },
    },
    notes: [
      '/schema/unevaluatedProperties: left out: "unevaluatedProperties" is not a keyword of draft-07 and checks nothing',
    ],
  });
});

test("places of a translated schema are found in its source", () => {
  const schema = { not: { $ref: "#/kept/text", allOf: [{ $ref: "#/kept/odd~1name%20%25" }] } };
  const { sourceOf } = toDraft7(new SourceDocument({ schema, kept: KEPT }, "2020-12"), "/schema");
  expect(sourceOf(["not", "allOf", 0])).toBe("/schema/not/allOf/0");
  expect(sourceOf(["definitions", "odd_name_", "type"])).toBe("/kept/odd~1name %/type");
});
