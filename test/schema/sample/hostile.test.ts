import { expect, test } from "vitest";
import { checkSchema } from "../../../src/schema/check.ts";
import { sampleOf } from "../../../src/schema/generate/sample.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
import { cpuMs } from "../../support/cpu-time.ts";
import { chain, many, members } from "../makers.ts";
import { holding } from "./schemas.ts";

// Schemas that evreg accepts, made to have a generator run on for ever or fill the memory. Steps are counted, so the bound
// in seconds is generous; without it most of these would take minutes.

const node = { $ref: "#/definitions/node" };
/** A tree that must branch 50-fold at each level above its leaves. */
const wideTree = {
  anyOf: [{ type: "array", minItems: 50, items: node }, { type: "integer" }],
};
/** Every level demands two of the next, and there are forty. */
const doubled = chain(39, { type: "integer" }, (items) => ({ type: "array", minItems: 2, items }));
/** Eight of ten alternatives, level by level, lead nowhere. */
const mostlyDead = chain(12, true, (next) => ({
  type: "object",
  required: ["x"],
  properties: { x: { anyOf: [...many(8, () => ({ type: "string", minLength: 2, maxLength: 1 })), next] } },
}));

const HOSTILE: readonly (readonly [name: string, schema: Record<string, unknown>])[] = [
  ["a list of 100 million", holding({ type: "array", minItems: 1e8 })],
  ["a list of 100 million, unlike each other", holding({ type: "array", minItems: 1e8, uniqueItems: true })],
  ["a text of 300 million characters", holding({ type: "string", minLength: 3e8 })],
  ["such a text by a pattern", holding({ type: "string", pattern: "^[ab]+$", minLength: 3e8 })],
  ["100 million properties", { type: "object", minProperties: 1e8 }],
  ["100 million properties that have a rule", { minProperties: 1e8, propertyNames: { maxLength: 2 } }],
  [
    "more values than there are",
    holding({ type: "array", items: { type: "boolean" }, uniqueItems: true, minItems: 3 }),
  ],
  [
    "a tree with no leaves",
    holding(node, { node: { type: "object", required: ["n"], properties: { n: node } } }),
  ],
  ["a tree that branches without end", holding(node, { node: { type: "array", minItems: 9, items: node } })],
  ["2 to the 39th leaves", holding({ $ref: "#/definitions/d0" }, doubled)],
  [
    "repetitions within repetitions",
    holding({ type: "string", pattern: "^((a{20}){20}){2}$", maxLength: 3 }),
  ],
  ["no character fits", holding({ type: "string", pattern: "^[^\\s\\S]$" })],
  [
    "no number fits",
    holding({
      type: "number",
      multipleOf: 1e-300,
      exclusiveMinimum: 1,
      exclusiveMaximum: 1.0000000000000002,
    }),
  ],
  ["256 ways, none right", holding({ oneOf: many(256, () => ({ type: "integer" })) })],
  [
    "1,000 required names, none allowed",
    { required: many(1_000, (index) => `p${index}`), additionalProperties: false },
  ],
  [
    "dependencies round and round to nothing",
    { required: ["a"], dependencies: { a: ["b"], b: ["c"], c: ["a", "d"] }, properties: { d: false } },
  ],
];

test.each(HOSTILE)("%s: ends without a payload", (_, schemata) => {
  checkSchema(schemata);
  const started = cpuMs();
  expect(sampleOf(schemata)).toBeUndefined();
  expect(cpuMs() - started).toBeLessThan(10_000);
});

const HARD: readonly (readonly [name: string, schema: Record<string, unknown>])[] = [
  ["a tree that must branch 50-fold", holding(node, { node: wideTree })],
  ["twelve levels of dead ends", holding({ $ref: "#/definitions/d0" }, mostlyDead)],
  [
    "900 properties, all required",
    {
      required: many(900, (index) => `p${index}`),
      properties: members(900, () => ({ type: "integer" })),
    },
  ],
  ["dependencies round and round", { required: ["a"], dependencies: { a: ["b"], b: ["c"], c: ["a"] } }],
  [
    "a list of ten unlike each other",
    holding({
      type: "array",
      items: { type: "string", pattern: "^[a-z]{4}$" },
      uniqueItems: true,
      minItems: 10,
    }),
  ],
  [
    "30 levels",
    many(30, () => 0).reduce<Record<string, unknown>>(
      (inner) => ({ required: ["a"], properties: { a: inner } }),
      {},
    ),
  ],
];

test.each(HARD)("%s: gives a payload that conforms", (_, schemata) => {
  const started = cpuMs();
  const payload = sampleOf(schemata);
  expect(cpuMs() - started).toBeLessThan(10_000);
  expect(compileSchema(schemata).validate(payload)).toBeUndefined();
});
