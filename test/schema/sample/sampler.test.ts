import { describe, expect, test } from "vitest";
import { lengthOf, someOf } from "../../faults/length.ts";
import { checkSchema } from "../../../src/schema/check.ts";
import { sampleOf } from "../../../src/schema/generate/sample.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
import { githubTypes } from "../../support/github.ts";
import { holding, SCHEMAS, text, tree, whole } from "./schemas.ts";

describe("every sample conforms", () => {
  test.each(SCHEMAS)("%s", (_, schemata) => {
    checkSchema(schemata);
    const payload = sampleOf(schemata);
    expect(payload).toBeTypeOf("object");
    expect(compileSchema(schemata).validate(JSON.parse(JSON.stringify(payload)))).toBeUndefined();
  });
});

test("event types of GitHub have samples, which conform", { timeout: 120_000 }, () => {
  const types = githubTypes();
  expect(types).toHaveLength(58);
  for (const { name, schemata } of someOf(types, lengthOf("schema/sample/sampler")["event types"])) {
    const payload = sampleOf(schemata);
    expect(payload, name).toBeTypeOf("object");
    expect(compileSchema(schemata).validate(payload), name).toBeUndefined();
    // Not the least that conforms: what is optional is there as well.
    expect(JSON.stringify(payload).length, name).toBeGreaterThan(500);
  }
});

test.each([
  [
    "what is optional is there, and an item in a list",
    { type: "object", properties: { a: text, b: whole, c: { type: "array", items: text } } },
    { a: "text", b: 1, c: ["text"] },
  ],
  [
    "a value has none of its own kind within it",
    holding({ $ref: "#/definitions/tree" }, { tree }),
    { a: { children: [] } },
  ],
  ["a map has a member", holding({ additionalProperties: whole }), { a: { member0: 1 } }],
  ["a constant comes before all else", holding({ const: 7, examples: [8] }), { a: 7 }],
  [
    "an example that conforms",
    holding({ type: "string", pattern: "^\\d+$", examples: ["no", "12"] }),
    { a: "12" },
  ],
  ["a default", holding({ type: "integer", default: 12 }), { a: 12 }],
  ["the first of those listed", holding({ enum: ["b", "a"] }), { a: "b" }],
  [
    "what is optional is left out where it does not conform",
    { properties: { a: text }, not: { required: ["a"] } },
    {},
  ],
  ["another value than the usual one", { ...holding(text), not: holding({ const: "text" }) }, { a: "" }],
])("a sample is a usual payload: %s", (_, schemata, expected) => {
  expect(sampleOf(schemata)).toEqual(expected);
});

test.each([
  ["a contradiction", holding({ allOf: [{ type: "string" }, { type: "integer" }] })],
  [
    "what is not looked for",
    {
      required: ["a"],
      properties: { a: { enum: [1, 2] } },
      not: { properties: { a: { maximum: 2 } } },
    },
  ],
])("%s has no sample", (_, schemata) => {
  expect(sampleOf(schemata)).toBeUndefined();
});
