import * as fc from "fast-check";
import { expect, test } from "vitest";
import { neededTexts } from "../../src/schema/needed-texts.ts";
import { compileSchema } from "../../src/schema/validate/compile.ts";

const texts = fc.constantFrom("FR", "DE", "", ":x", "é");
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 6, arbitrary: texts },
    fc.integer(),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b"), tie("value")),
  ),
})).value;
const object = fc.dictionary(fc.constantFrom("a", "b"), value, { minKeys: 1 });

/** A schema that the value conforms to: how much it asks for is drawn. */
function schemaOf(one: unknown, draw: (most: number) => number): object {
  const kind = draw(5);
  if (kind === 0) return {};
  if (kind === 1) return { const: one };
  if (kind === 2) return { enum: [one, "other"] };
  if (kind === 3) return { allOf: [schemaOf(one, draw), schemaOf(one, draw)] };
  if (Array.isArray(one)) {
    return { type: "array", items: one.map((item) => schemaOf(item, draw)), minItems: draw(one.length) };
  }
  if (typeof one !== "object" || one === null) return { $ref: "#/definitions/any", const: "ignored" };
  const members = Object.entries(one);
  return {
    ...(draw(1) === 0 ? {} : { type: "object" }),
    required: members.map(([name]) => name).filter(() => draw(3) > 0),
    properties: Object.fromEntries(members.map(([name, member]) => [name, schemaOf(member, draw)])),
  };
}

test("whatever conforms has a text of each list", () => {
  let lists = 0;
  fc.assert(
    fc.property(object, fc.infiniteStream(fc.nat()), (payload, numbers) => {
      const draw = (most: number): number => numbers.next().value! % (most + 1);
      const schemata = { ...schemaOf(payload, draw), definitions: { any: {} } };
      expect(compileSchema(schemata).validate(payload)).toBeUndefined();
      const has = new Set(textsIn(payload));
      for (const list of neededTexts(schemata)) {
        lists += 1;
        expect(list.some((text) => has.has(text))).toBe(true);
      }
    }),
    { numRuns: 600, seed: 20261123 },
  );
  expect(lists).toBeGreaterThan(150);
});

function textsIn(one: unknown): readonly unknown[] {
  return typeof one === "object" && one !== null ? Object.values(one).flatMap(textsIn) : [one];
}

test.each<[string, object, readonly (readonly string[])[]]>([
  ["a member", { required: ["a"], properties: { a: { const: "FR" } } }, [["FR"]]],
  [
    "members of a member",
    {
      required: ["a"],
      properties: { a: { type: "object", required: ["b"], properties: { b: { enum: ["x", "y"] } } } },
    },
    [["x", "y"]],
  ],
  [
    "an item",
    { required: ["a"], properties: { a: { type: "array", minItems: 1, items: [{ const: "x" }] } } },
    [["x"]],
  ],
  ["no member that may be missing", { properties: { a: { const: "FR" } } }, []],
  [
    "nothing of a value that need not be an object",
    { required: ["a"], properties: { a: { required: ["b"], properties: { b: { const: "x" } } } } },
    [],
  ],
  [
    "nothing beside a reference",
    { required: ["a"], properties: { a: { $ref: "#/definitions/x", const: "x" } } },
    [],
  ],
  ["nothing of a list with a number in it", { required: ["a"], properties: { a: { enum: ["x", 1] } } }, []],
])("%s", (_, schemata, lists) => {
  expect(neededTexts(schemata as Record<string, unknown>)).toEqual(lists);
});
