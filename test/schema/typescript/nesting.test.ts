/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { expect, test } from "vitest";
import { readSchema } from "../../../src/schema/read.ts";
import { declarationsFor } from "../../../src/schema/typescript/declarations.ts";
import { printType } from "../../../src/schema/typescript/print.ts";
import { limitUnions, typesIn, type TypeTree } from "../../../src/schema/typescript/type-tree.ts";
import { typeOfPayload } from "../../../src/schema/typescript/types.ts";

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

/** The same tree, which counts how often the parts of a union or an intersection are looked at. */
function counted(tree: TypeTree, seen: () => void): TypeTree {
  if (tree.kind !== "union" && tree.kind !== "intersection") return tree;
  const parts = tree.parts.map((part) => counted(part, seen));
  return {
    kind: tree.kind,
    get parts() {
      seen();
      return parts;
    },
  };
}

function depthOf(tree: TypeTree): number {
  return 1 + Math.max(0, ...typesIn(tree).map(depthOf));
}

test("nested conditions are measured once each, and printed a few times each", () => {
  const { root } = readSchema(conditions);
  const tree = typeOfPayload(root);
  expect(depthOf(tree)).toBeGreaterThan(DEPTH);
  let looks = 0;
  const watched = counted(tree, () => looks++);
  const narrowed = limitUnions(new Map([[root, watched]])).get(root)!;
  // Two types a level, looked at to be measured and to be rebuilt.
  expect(looks).toBeLessThanOrEqual(DEPTH * 10);
  looks = 0;
  const text = printType(
    counted(narrowed, () => looks++),
    () => "",
  );
  expect(text).toContain("name0");
  expect(looks).toBeLessThanOrEqual(DEPTH * DEPTH * 4);
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
