/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { describe, expect, test } from "vitest";
import { toDraft7 } from "../../../src/import/draft7.ts";
import { type Dialect, SourceDocument, UnsupportedSchema } from "../../../src/import/source.ts";

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
    if (error instanceof UnsupportedSchema) return `${error.pointer}: ${error.message}`;
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
    ["a tuple", { prefixItems: [{}, true], items: false }, { items: [{}, true], additionalItems: false }],
    ["a tuple with more", { prefixItems: [{}] }, { items: [{}] }],
    ["one schema for all items", { items: { type: "null" } }, { items: { type: "null" } }],
    ["names that need others", { dependentRequired: { a: ["b"] } }, { dependencies: { a: ["b"] } }],
    [
      "names that need a schema",
      { dependentSchemas: { a: { minProperties: 3 } } },
      { dependencies: { a: { minProperties: 3 } } },
    ],
    [
      "keywords beside a reference",
      { $ref: "#/kept/text", maxLength: 3, allOf: [{ minLength: 1 }] },
      { maxLength: 3, allOf: [text, { minLength: 1 }], definitions: { text: KEPT.text } },
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
      "a schema with an address, which its references count from",
      { $id: "https://shop.example/a", $defs: { b: true }, not: { $ref: "#/$defs/b" } },
      { not: { $ref: "#/definitions/b" }, definitions: { b: true } },
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
    ["an open object, said so", { allOf: [{}], unevaluatedProperties: true }, { allOf: [{}] }],
    [
      "a closed object",
      { properties: { a: {} }, unevaluatedProperties: { type: "null" } },
      { properties: { a: {} }, additionalProperties: { type: "null" } },
    ],
    [
      "one closed already",
      { allOf: [{}], additionalProperties: {}, unevaluatedProperties: false },
      { allOf: [{}], additionalProperties: {} },
    ],
  ])("%s", (_, schema, expected) => {
    expect(translated(schema)).toEqual({ schemata: expected ?? schema, notes: [] });
  });

  test("a member named __proto__ is an ordinary one", () => {
    const schema = JSON.parse(
      '{"properties":{"__proto__":{"type":"null"}},"dependentRequired":{"__proto__":["a"]}}',
    ) as object;
    expect(JSON.stringify(translated(schema).schemata)).toBe(
      '{"properties":{"__proto__":{"type":"null"}},"dependencies":{"__proto__":["a"]}}',
    );
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["a dynamic reference", { $dynamicRef: "#a" }, "/schema/$dynamicRef: $dynamicRef has no counterpart"],
    [
      "another document",
      { $ref: "text.yaml#/a" },
      '/schema/$ref: $ref "text.yaml#/a" leads out of this document',
    ],
    ["a name", { not: { $ref: "#text" } }, '/schema/not/$ref: $ref "#text" leads to a name'],
    [
      "nowhere",
      { $ref: "#/kept/none" },
      '/schema/$ref: $ref "#/kept/none" leads to a place that is not there',
    ],
    ["the document", { $ref: "#" }, '/schema/$ref: $ref "#" leads to the document as a whole'],
    ["a circle", { $ref: "#/kept/loop" }, "/schema: $ref leads back to itself"],
    ["a text", { $ref: "#/kept/text/type" }, "/kept/text/type: must be a schema"],
    ["a list of items", { items: [{}] }, "/schema/items: items must be one schema; in 2020-12 a list"],
    ["another dialect", { $schema: "http://json-schema.org/draft-04/schema#" }, "/schema/$schema: $schema"],
    ["more than a few that fit", { contains: {}, minContains: 2 }, "/schema/minContains: minContains is not"],
    ["at most so many", { contains: {}, maxContains: 2 }, "/schema/maxContains: maxContains is not"],
    [
      "names that need others and a schema",
      { dependentRequired: { a: ["b"] }, dependentSchemas: { a: {} } },
      "/schema/dependentSchemas: dependentSchemas is not translated beside dependentRequired",
    ],
    [
      "a closed object whose members others name, too",
      { oneOf: [{ properties: { a: {} } }, { properties: { b: {} } }], unevaluatedProperties: false },
      "/schema/unevaluatedProperties: unevaluatedProperties is not translated beside oneOf",
    ],
    [
      "a list closed by what is evaluated",
      { prefixItems: [{}], unevaluatedItems: false },
      "/schema/unevaluatedItems: unevaluatedItems is not translated; beside prefixItems alone, write items instead",
    ],
  ])("%s is refused", (_, schema, start) => {
    expect(refusal(schema).slice(0, start.length)).toBe(start);
  });

  test("what checks nothing is left out and reported", () => {
    const schema = {
      properties: {
        a: { xml: {}, nullable: true, requird: [], additionalItems: false, title: null },
      },
    };
    const { schemata, notes } = translated(schema);
    expect(schemata).toEqual({ properties: { a: {} } });
    const at = "/schema/properties/a";
    expect(notes).toEqual([
      `${at}/xml: left out: xml checks nothing`,
      `${at}/nullable: left out: nullable checks nothing; to allow null, write "null" into the list of types`,
      `${at}/requird: left out: requird checks nothing; did you mean required?`,
      `${at}/additionalItems: left out: additionalItems checks nothing`,
      `${at}/title: left out: title is empty`,
    ]);
  });
});

test("draft-07 is unchanged, but for what it ignores", () => {
  const schema = {
    items: [{ type: "null" }],
    additionalItems: { dependencies: { a: ["b"], c: { $ref: "#/kept/text", maxLength: 3 } } },
    unevaluatedProperties: false,
    definitions: { unused: {} },
  };
  expect(translated(schema, "draft-07")).toEqual({
    schemata: {
      items: [{ type: "null" }],
      additionalItems: { dependencies: { a: ["b"], c: text } },
      definitions: { text: KEPT.text },
    },
    notes: [
      "/schema/additionalItems/dependencies/c/maxLength: left out: draft-07 ignores maxLength beside $ref",
      "/schema/unevaluatedProperties: left out: unevaluatedProperties checks nothing",
    ],
  });
});

test("a schema that names its dialect is read in that dialect", () => {
  const schema = { $schema: "http://json-schema.org/draft-07/schema#", items: [{}] };
  expect(translated(schema)).toEqual({ schemata: { items: [{}] }, notes: [] });
});

test("a document made to grow without end is refused early", () => {
  const kept = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, at) => [`s${at}`, { allOf: [{ $ref: `#/kept/s${at + 1}` }] }]),
  );
  const document = { schema: { not: { $ref: "#/kept/s0" } }, kept };
  const translate = () => toDraft7(new SourceDocument(document, "2020-12"), "/schema");
  expect(translate).toThrow("needs more than 5,000 schemas");
});
