/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { describe, expect, test } from "vitest";
import { chain } from "./makers.ts";
import { accepted, refused } from "./refused.ts";

const fails = (schemata: unknown, value: unknown) => accepted(schemata).validate(value) !== undefined;

describe("a $ref", () => {
  const text = { type: "string" };
  const definitions = { t: text };
  const inner = { $id: "http://e.com/a/", allOf: [{ $ref: "b" }], definitions: { b: { $id: "b", ...text } } };
  /** How it is written, and what else the document of the property has. */
  const found: [string, string, object][] = [
    ["into definitions", "#/definitions/t", { definitions }],
    ["into $defs", "#/$defs/t", { $defs: definitions }],
    ["into an unknown keyword", "#/components/t", { components: definitions }],
    ["deep into an unknown keyword", "#/x/0/t", { x: [{ t: { $ref: "#/x/1" } }, text] }],
    ["to another property", "#/properties/b", { properties: { a: { $ref: "#/properties/b" }, b: text } }],
    ["with escapes", "#/definitions/a~1b~0c%25%20%22", { definitions: { 'a/b~c% "': text } }],
    ["by name", "#text", { definitions: { t: { $id: "#text", ...text } } }],
    ["by the document's address", "https://e.com/s#/definitions/t", { $id: "https://e.com/s", definitions }],
    ["by a relative address", "s#/definitions/t", { $id: "https://e.com/d/s", definitions }],
    [
      "by an inner address",
      "t.json",
      { $id: "https://e.com/s", definitions: { t: { $id: "t.json", ...text } } },
    ],
    [
      "by an address with a name",
      "http://e.com/x#n",
      { definitions: { t: { $id: "http://e.com/x#n", ...text } } },
    ],
    [
      "by a name inside another address",
      "n.json#n",
      {
        $id: "http://e.com/s",
        definitions: { t: { $id: "n.json", definitions: { u: { $id: "#n", ...text } } } },
      },
    ],
    ["by a URN", "urn:uuid:1#/definitions/t", { $id: "urn:uuid:1", definitions }],
    ["through others", "#/x", { x: { $ref: "#/y" }, y: { $ref: "#/definitions/t" }, definitions }],
    ["from where the base address is another", "#/properties/b", { properties: { a: inner, b: text } }],
  ];
  test.each(found)("%s is followed", (_, $ref, rest) => {
    const schemata = { properties: { a: { $ref } }, ...rest };
    expect(accepted(schemata).validate({ a: "x" })).toBeUndefined();
    expect(accepted(schemata).validate({ a: 1 })).toEqual({
      field: "a",
      message: "must be a string",
      value: 1,
    });
  });

  test("at the root is followed, with its definitions next to it", () => {
    const schemata = { $ref: "#/definitions/t", definitions: { t: { required: ["a"] } } };
    expect(accepted(schemata).validate({})).toMatchObject({ field: "a", message: "is required" });
  });

  test("to true or false is followed", () => {
    expect(fails({ $ref: "#/definitions/t", definitions: { t: true } }, 1)).toBe(false);
    expect(fails({ $ref: "#/definitions/t", definitions: { t: false } }, 1)).toBe(true);
  });

  test("next to an $id is followed, and the $id is ignored", () => {
    const schemata = {
      $id: "http://e.com/s",
      properties: { a: { $id: "http://other.org/", $ref: "t.json" } },
      definitions: { t: { $id: "t.json", type: "string" } },
    };
    expect(fails(schemata, { a: 1 })).toBe(true);
  });

  const file = { properties: { a: { $ref: "other.json#/definitions/a" } } };
  const lost: [string, unknown, string, string][] = [
    ["elsewhere", { $ref: "http://example.com/schema" }, "schemata.$ref", "never fetched"],
    ["to a file", file, "schemata.properties.a.$ref", "never fetched"],
    [
      "to the meta-schema",
      { $ref: "http://json-schema.org/draft-07/schema#" },
      "schemata.$ref",
      "never fetched",
    ],
    [
      "that nothing uses",
      { definitions: { a: { $ref: "x" } } },
      "schemata.definitions.a.$ref",
      "never fetched",
    ],
    ["to nothing", { $ref: "#/definitions/a" }, "schemata.$ref", "does not exist"],
    ["to an inherited name", { $ref: "#/constructor" }, "schemata.$ref", "does not exist"],
    ["to no schema", { $ref: "#/title", title: "x" }, "schemata.$ref", "not a schema"],
    ["to a broken schema", { $ref: "#/x", x: { type: "y" } }, "schemata.x.type", "must be one of"],
    ["to an unknown name", { $ref: "#foo" }, "schemata.$ref", "no $id"],
    ["with a bad escape", { $ref: "#/%zz" }, "schemata.$ref", "percent"],
    ["that is no address", { $ref: "http://[" }, "schemata.$ref", "not an address"],
    [
      "to an address used twice",
      { definitions: { a: { $id: "#x" }, b: { $id: "#x" } } },
      "schemata.definitions.b.$id",
      "another schema",
    ],
  ];
  test.each(lost)("%s is refused", (_, schemata, field, message) => {
    const refusal = refused(schemata);
    expect(refusal.field).toBe(field);
    expect(refusal.message).toContain(message);
  });
});

describe("recursion", () => {
  const endless: [string, unknown][] = [
    ["to itself", { $ref: "#" }],
    ["through allOf", { allOf: [{ $ref: "#" }] }],
    ["through not", { not: { $ref: "#" } }],
    ["through if", { if: { $ref: "#" }, then: true }],
    ["through dependencies", { dependencies: { a: { $ref: "#" } } }],
    [
      "in a circle",
      {
        properties: { x: { $ref: "#/definitions/a" } },
        definitions: {
          a: { anyOf: [{ $ref: "#/definitions/b" }] },
          b: { oneOf: [{ $ref: "#/definitions/a" }] },
        },
      },
    ],
  ];
  test.each(endless)("%s without going deeper is refused", (_, schemata) => {
    expect(refused(schemata).message).toContain("never end");
  });

  test("that goes deeper is accepted", () => {
    const tree = {
      type: "object",
      properties: {
        value: { type: "number" },
        children: { type: "array", items: { $ref: "#" } },
        named: { additionalProperties: { $ref: "#" } },
      },
      required: ["value"],
    };
    const schema = accepted(tree);
    expect(
      schema.validate({ value: 1, children: [{ value: 2 }, { value: 3, named: { a: { value: 4 } } }] }),
    ).toBeUndefined();
    expect(
      schema.validate({ value: 1, children: [{ value: 2 }, { value: 3, named: { "a b": {} } }] }),
    ).toMatchObject({
      field: 'children[1].named["a b"].value',
    });
  });

  test("through more definitions than a stack has frames to spare is accepted", () => {
    const first = { items: { $ref: "#/definitions/d0" } };
    const schemata = { ...first, definitions: chain(2_400, first, (items) => ({ items })) };
    expect(accepted(schemata).validate([[[]]])).toBeUndefined();
  });

  test("across definitions is accepted", () => {
    const schemata = {
      $ref: "#/definitions/expression",
      definitions: {
        expression: { oneOf: [{ $ref: "#/definitions/literal" }, { $ref: "#/definitions/sum" }] },
        literal: { type: "number" },
        sum: {
          type: "object",
          properties: {
            left: { $ref: "#/definitions/expression" },
            right: { $ref: "#/definitions/expression" },
          },
          required: ["left", "right"],
        },
      },
    };
    const schema = accepted(schemata);
    expect(schema.validate({ left: 1, right: { left: 2, right: 3 } })).toBeUndefined();
    expect(schema.validate({ left: 1, right: { left: 2 } })).toMatchObject({
      field: "right.right",
      message: "is required",
    });
  });
});
