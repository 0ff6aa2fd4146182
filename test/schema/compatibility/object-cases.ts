/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { at, bothWays, everywhere, object, text, whole } from "./rule-cases.ts";
import type { RuleCase } from "./rule-cases.ts";

const closed = { additionalProperties: false };
const others: [string, string] = [
  "the values of other members narrowed",
  "the values of other members widened",
];
const counts: [string, string] = [
  "a bound of the number of members tightened",
  "a bound of the number of members loosened",
];
const namePatterns: [string, string] = ["a pattern of names narrowed", "a pattern of names widened"];
const names: [string, string] = ["propertyNames narrowed", "propertyNames widened"];
const dependency: [string, string] = ["a dependency added", "a dependency removed"];

/** The old schema mentions `x` only at the member `foo`, and only in a branch. */
const MENTIONING = [{ properties: { foo: { properties: { x: { type: "number" } } } } }, true];
const MANY_PATTERNS = Object.fromEntries(["^a", "^b", "^c", "^d", "^e"].map((pattern) => [pattern, text]));

/** Schemas that allow no value, none of them by plain `false`. */
const NOTHING: readonly unknown[] = [
  { not: {} },
  { not: true },
  { allOf: [text, false] },
  { anyOf: [false, { not: {} }] },
  { $ref: "#/definitions/no" },
  { type: "string", minLength: 2, maxLength: 1 },
  { allOf: [text, whole] },
  { type: "object", required: ["c"], properties: { c: { allOf: [text, whole] } } },
  { enum: ["a", 1], type: "boolean" },
];

/** Changes of what the members of an object may be. */
export const OBJECT_CASES: readonly RuleCase[] = [
  ...everywhere(
    "an optional property added to an open object",
    object({ a: text }),
    object({ a: text, b: text }),
  ),
  ["an optional property added to an open object", { type: "object" }, object({ b: { enum: [1] } })],
  [
    "an optional property added to an open object",
    object({ a: text }),
    object({ a: text, b: object({ c: text }, { required: ["c"] }) }),
  ],
  [
    "an optional property added to an open object",
    object({ a: text }, { required: ["a"] }),
    object({ a: text, b: { $ref: "#" } }, { required: ["a"] }),
  ],
  [
    "an optional property added to an open object",
    object({ a: text }, { minProperties: 1 }),
    object({ a: text, b: text }, { minProperties: 1 }),
  ],
  [
    "an optional property added to an open object",
    object({ a: text }, { dependencies: { a: ["c"] } }),
    object({ a: text, b: text }, { dependencies: { a: ["c"] } }),
  ],
  ...everywhere(
    "an optional property added to a closed object",
    object({ a: text }, closed),
    object({ a: text, b: text }, closed),
  ),
  ["an optional property added to a closed object", object({}, closed), object({ b: whole }, closed)],
  [
    "an optional property added to a closed object",
    object({ a: object({ x: text }, closed) }, { ...closed, required: ["a"] }),
    object({ a: object({ x: text, y: text }, closed) }, { ...closed, required: ["a"] }),
  ],
  [
    "an optional property added to a closed object",
    object({ a: text }, { ...closed, patternProperties: { "^x-": text } }),
    object({ a: text, b: whole }, { ...closed, patternProperties: { "^x-": text } }),
  ],
  [
    "an optional property added that additionalProperties or a pattern allows",
    object({}, { additionalProperties: text }),
    object({ b: text }, { additionalProperties: text }),
  ],
  [
    "an optional property added that additionalProperties or a pattern allows",
    object({}, { patternProperties: { "^b": text } }),
    object({ b: text }, { patternProperties: { "^b": text } }),
  ],
  [
    "a property added that additionalProperties or a pattern rules out",
    object({}, { additionalProperties: text }),
    object({ b: whole }, { additionalProperties: text }),
    "/properties/b/type",
  ],
  [
    "a property added that additionalProperties or a pattern rules out",
    object({}, { patternProperties: { "^b": text } }),
    object({ b: whole }, { patternProperties: { "^b$": whole, "^b.": text } }),
    "/patternProperties/^b$/type",
  ],
  ...everywhere(
    "a required property added",
    object({ a: text }),
    object({ a: text, b: text }, { required: ["b"] }),
    "/required",
  ),
  [
    "a required property added",
    object({ a: text }, closed),
    object({ a: text, b: text }, { ...closed, required: ["b"] }),
    "/required",
  ],
  [
    "a required property added",
    object({ a: text }, { required: ["a"] }),
    object({ a: text }, { required: ["a", "b"] }),
    "/required",
  ],
  [
    "a property that may not be present added",
    object({ a: text }),
    object({ a: text, b: false }),
    "/properties/b",
  ],
  ...NOTHING.map((nothing): RuleCase => [
    "a property that may not be present added",
    object({ a: text }),
    { ...object({ a: text, b: nothing }), definitions: { no: false } },
  ]),
  [
    "a property that may not be present added",
    object({ a: text }),
    object({ a: text, b: false }, { patternProperties: { "^b": text } }),
  ],
  [
    "an optional property added to an open object",
    object({ a: text }),
    object({ a: text, b: { not: { type: ["string", "array"] } } }),
  ],
  ...everywhere(
    "a property that becomes required",
    object({ a: text }),
    object({ a: text }, { required: ["a"] }),
    "/required",
  ),
  [
    "a property that becomes required",
    object({ a: text, b: text }, { required: ["a"] }),
    object({ a: text, b: text }, { required: ["b", "a"] }),
    "/required",
  ],
  ...everywhere(
    "a property no longer required",
    object({ a: text }, { required: ["a"] }),
    object({ a: text }),
    "/required",
  ),
  [
    "a property no longer required",
    object({ a: text, b: text }, { required: ["a", "b"] }),
    object({ a: text, b: text }, { required: ["b"] }),
    "/required",
  ],
  ["a property no longer required", object({}, { required: ["a"] }), object({}), "/required"],
  ...everywhere(
    "a property removed from an open object",
    object({ a: text, b: text }),
    object({ a: text }),
    "/properties/b",
  ),
  [
    "a property removed from an open object",
    object({ a: text, b: {} }),
    object({ a: text }),
    "/properties/b",
  ],
  ...everywhere(
    "a property removed from a closed object",
    object({ a: text, b: text }, closed),
    object({ a: text }, closed),
    "/properties/b",
  ),
  [
    "a property removed from a closed object",
    object({ a: text, b: {} }, closed),
    object({ a: text }, closed),
    "/properties/b",
  ],
  [
    "a property renamed in a closed object",
    object({ "a/b": text }, closed),
    object({ c: text }, closed),
    "/properties/a~1b",
  ],
  ...everywhere(
    "an open object closed",
    object({ a: text }),
    object({ a: text }, closed),
    "/additionalProperties",
  ),
  ["an open object closed", { type: "object" }, object({ a: text }, closed), "/additionalProperties"],
  ...everywhere("a closed object opened", object({ a: text }, closed), object({ a: text })),
  [
    "a closed object opened",
    object({ a: text }, closed),
    object({ a: text }, { additionalProperties: text }),
  ],
  ...bothWays(
    ...others,
    object({}, { additionalProperties: { type: ["string", "null"] } }),
    object({}, { additionalProperties: text }),
    "/additionalProperties/type",
  ),
  ...bothWays(
    ...others,
    object({ a: text }),
    object({ a: text }, { additionalProperties: whole }),
    "/additionalProperties/type",
  ),
  ...bothWays(...counts, object({ a: text }), object({ a: text }, { minProperties: 1 }), "/minProperties"),
  ...bothWays(
    ...counts,
    { type: "object", maxProperties: 3 },
    { type: "object", maxProperties: 2 },
    "/maxProperties",
  ),
  ...bothWays(
    ...namePatterns,
    object({}, { patternProperties: { "^x-": { type: ["string", "null"] } } }),
    object({}, { patternProperties: { "^x-": text } }),
    "/patternProperties/^x-/type",
  ),
  ...bothWays(
    "a pattern of names added to an open object",
    "a pattern of names removed from an open object",
    object({}),
    object({}, { patternProperties: { "^x-": text } }),
    "/patternProperties/^x-/type",
  ),
  ...bothWays(
    "a pattern of names added to an open object",
    "a pattern of names removed from an open object",
    object({ a: text }),
    object({ a: text }, { patternProperties: { "^b$": whole } }),
    "/patternProperties/^b$/type",
  ),
  [
    "a pattern of names narrowed",
    object({ "x-a": text }),
    object({ "x-a": text }, { patternProperties: { "^x-": { maxLength: 3 } } }),
    "/patternProperties/^x-/maxLength",
  ],
  ...bothWays(
    "propertyNames added to an open object",
    "propertyNames removed from an object",
    { type: "object" },
    { type: "object", propertyNames: { maxLength: 5 } },
    "/propertyNames/maxLength",
  ),
  ...bothWays(
    "propertyNames added to an open object",
    "propertyNames removed from an object",
    object({ a: text }),
    object({ a: text }, { propertyNames: { pattern: "^[a-z]+$" } }),
    "/propertyNames/pattern",
  ),
  ...bothWays(
    ...names,
    { type: "object", propertyNames: { enum: ["a", "b"] } },
    { type: "object", propertyNames: { enum: ["a"] } },
    "/propertyNames",
  ),
  ...bothWays(
    ...names,
    { type: "object", propertyNames: { pattern: "^[a-z0-9]+$" } },
    { type: "object", propertyNames: { pattern: "^[a-z]+$" } },
    "/propertyNames/pattern",
  ),
  ...bothWays(
    ...dependency,
    object({ a: text, b: text }),
    object({ a: text, b: text }, { dependencies: { a: ["b"] } }),
    "/dependencies/a",
  ),
  ...bothWays(
    ...dependency,
    object({ a: text, b: text }),
    object({ a: text, b: text }, { dependencies: { a: { required: ["b"] } } }),
    "/dependencies/a/required",
  ),
  [
    "the same said in another way",
    object({ a: text }, { dependencies: { a: ["b"] } }),
    object({ a: text }, { dependencies: { a: { required: ["b"] } } }),
  ],
  [
    "the same said in another way",
    object({ a: text }, { dependencies: { b: { required: ["c"] } } }),
    object({ a: text }, { if: { required: ["b"] }, then: { required: ["c"] } }),
  ],
  [
    "the same said in another way",
    object({ a: text }, closed),
    object({ a: text }, { propertyNames: { enum: ["a"] } }),
  ],
  [
    "an optional property added to an open object",
    at({ if: { required: ["a"] }, then: { required: ["b"] } }),
    at({ if: { required: ["a"] }, then: { required: ["b"] }, properties: { c: text } }),
  ],
  [
    "the values of other members narrowed",
    { type: "object", additionalProperties: { type: "object" }, anyOf: MENTIONING },
    { type: "object", additionalProperties: object({ x: text }), anyOf: MENTIONING },
    "/additionalProperties/properties/x/type",
  ],
  [
    "items narrowed",
    at({
      type: "array",
      items: { type: "object" },
      anyOf: [{ items: [true, true, object({ x: whole })] }, true],
    }),
    at({
      type: "array",
      items: object({ x: text }),
      anyOf: [{ items: [true, true, object({ x: whole })] }, true],
    }),
    "/properties/p/items/properties/x/type",
  ],
  [
    "an open object closed",
    object({}, { patternProperties: MANY_PATTERNS }),
    object({}, { patternProperties: MANY_PATTERNS, additionalProperties: false }),
    "/additionalProperties",
  ],
  [
    "an optional property added to a closed object",
    object({}, { patternProperties: MANY_PATTERNS, additionalProperties: false }),
    object({ x: text }, { patternProperties: MANY_PATTERNS, additionalProperties: false }),
  ],
];
