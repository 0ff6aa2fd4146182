/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { expect, test } from "vitest";
import { declarationsFor } from "../../../src/schema/typescript/declarations.ts";

// Schemas may be nested 64 deep: work that doubles with each level would never end.

const DEPTH = 60;

function nested(depth: number, around: (inner: object, level: number) => object): object {
  const innermost = { type: ["string", "object"] };
  return Array.from({ length: depth }).reduce<object>((inner, _, level) => around(inner, level), innermost);
}

const conditions = nested(DEPTH, (inner, level) => ({
  if: { required: [`name${level}`] },
  then: inner,
  else: { properties: { a: {} } },
}));

test("nested conditions are printed in time", () => {
  const { source } = declarationsFor([{ name: "x", schemata: conditions, about: [] }], []);
  expect(source).toContain("name0");
  expect(source.length).toBeLessThan(100_000);
});

test("other names have the type unknown where exact types would double with each level", () => {
  const schemata = nested(30, (a) => ({ properties: { a }, additionalProperties: { type: "null" } }));
  const { source } = declarationsFor([{ name: "x", schemata, about: [] }], []);
  expect(source).toContain("[key: string]: unknown;");
  expect(source).toMatch(/\[key: string\]:\s+(?:\| )?null\s+\| string/);
  expect(source.length).toBeLessThan(50_000);
});

test("lists of lists of alternatives are printed in time", () => {
  const lists = nested(20, (inner, level) => ({
    anyOf: [{ type: "array", items: inner }, { const: `a text that fills half a line, of level ${level}` }],
  }));
  const schemata = { properties: { a: lists } };
  const { source } = declarationsFor([{ name: "x", schemata, about: [] }], []);
  expect(source).toContain("of level 19");
});
