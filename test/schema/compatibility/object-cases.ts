/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { at, atProperty, bothWays, everywhere, object, rule, text, whole } from "./rule-cases.ts";
import type { Change, RuleCase } from "./rule-cases.ts";
import type { Json } from "./random-schemas.ts";

const closed = { additionalProperties: false };
const NONE = object({});
const A = object({ a: text });
const AB = object({ a: text, b: text });
const INNER = object({ x: text }, closed);
const WIDER = object({ x: text, y: text }, closed);
const textOrNull = { type: ["string", "null"] };
const ifHas = (name: string, then: string): Json => ({
  if: { required: [name] },
  then: { required: [then] },
});

/** The old schema mentions `x` only at the member `foo`, and only in a branch. */
const MENTIONING = [{ properties: { foo: { properties: { x: { type: "number" } } } } }, true];
const MANY_PATTERNS = Object.fromEntries(["^a", "^b", "^c", "^d", "^e"].map((pattern) => [pattern, text]));
const IN_A_BRANCH = [{ items: [true, true, object({ x: whole })] }, true];

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

/** Objects to which properties are added, with what else they have. */
function grown(rest: Json, added: Json, properties: Json = { a: text }): readonly [Json, Json] {
  return [object(properties, rest), object({ ...properties, ...added }, rest)];
}

/** An object before and after something more is said of it. */
function said(before: Json, more: Json, place?: string): Change {
  return [before, { ...before, ...more }, place];
}

/** Changes of what the members of an object may be. */
export const OBJECT_CASES: readonly RuleCase[] = [
  ...everywhere("an optional property added to an open object", grown({}, { b: text })),
  ...rule(
    "an optional property added to an open object",
    [{ type: "object" }, object({ b: { enum: [1] } })],
    grown({}, { b: object({ c: text }, { required: ["c"] }) }),
    grown({ required: ["a"] }, { b: { $ref: "#" } }),
    grown({ minProperties: 1 }, { b: text }),
    grown({ dependencies: { a: ["c"] } }, { b: text }),
    grown({}, { b: { not: { type: ["string", "array"] } } }),
    [at(ifHas("a", "b")), at({ ...ifHas("a", "b"), properties: { c: text } })],
  ),
  ...everywhere("an optional property added to a closed object", grown(closed, { b: text })),
  ...rule(
    "an optional property added to a closed object",
    grown(closed, { b: whole }, {}),
    [
      object({ a: INNER }, { ...closed, required: ["a"] }),
      object({ a: WIDER }, { ...closed, required: ["a"] }),
    ],
    grown({ ...closed, patternProperties: { "^x-": text } }, { b: whole }),
    grown({ ...closed, patternProperties: MANY_PATTERNS }, { x: text }, {}),
  ),
  ...rule(
    "an optional property added that additionalProperties or a pattern allows",
    grown({ additionalProperties: text }, { b: text }, {}),
    grown({ patternProperties: { "^b": text } }, { b: text }, {}),
  ),
  ...rule(
    "a property added that additionalProperties or a pattern rules out",
    [...grown({ additionalProperties: text }, { b: whole }, {}), "/properties/b/type"],
    [
      object({}, { patternProperties: { "^b": text } }),
      object({ b: whole }, { patternProperties: { "^b$": whole, "^b.": text } }),
    ],
  ),
  ...everywhere("a required property added", [A, { ...AB, required: ["b"] }, "/required"]),
  ...rule(
    "a required property added",
    [{ ...A, ...closed }, { ...AB, ...closed, required: ["b"] }, "/required"],
    said({ ...A, required: ["a"] }, { required: ["a", "b"] }, "/required"),
  ),
  ...rule(
    "a property that may not be present added",
    [...grown({}, { b: false }), "/properties/b"],
    ...NOTHING.map((b): Change => [A, { ...object({ a: text, b }), definitions: { no: false } }]),
    [A, object({ a: text, b: false }, { patternProperties: { "^b": text } })],
  ),
  ...everywhere("a property that becomes required", said(A, { required: ["a"] }, "/required")),
  ...rule(
    "a property that becomes required",
    said({ ...AB, required: ["a"] }, { required: ["b", "a"] }, "/required"),
  ),
  ...everywhere("a property no longer required", [{ ...A, required: ["a"] }, A, "/required"]),
  ...rule(
    "a property no longer required",
    said({ ...AB, required: ["a", "b"] }, { required: ["b"] }, "/required"),
    [{ ...NONE, required: ["a"] }, NONE, "/required"],
  ),
  ...everywhere("a property removed from an open object", [AB, A, "/properties/b"]),
  ...rule("a property removed from an open object", [object({ a: text, b: {} }), A, "/properties/b"]),
  ...everywhere("a property removed from a closed object", [
    { ...AB, ...closed },
    { ...A, ...closed },
    "/properties/b",
  ]),
  ...rule("a property removed from a closed object", [
    object({ a: text, b: {} }, closed),
    { ...A, ...closed },
    "/properties/b",
  ]),
  ...rule("a property renamed in a closed object", [
    object({ "a/b": text }, closed),
    object({ c: text }, closed),
    "/properties/a~1b",
  ]),
  ...everywhere("an open object closed", said(A, closed, "/additionalProperties")),
  ...rule(
    "an open object closed",
    [{ type: "object" }, { ...A, ...closed }, "/additionalProperties"],
    said({ ...NONE, patternProperties: MANY_PATTERNS }, closed, "/additionalProperties"),
  ),
  ...everywhere("a closed object opened", [{ ...A, ...closed }, A]),
  ...rule("a closed object opened", [
    { ...A, ...closed },
    { ...A, additionalProperties: text },
  ]),
  ...bothWays(
    "the values of other members narrowed",
    "the values of other members widened",
    said(
      { ...NONE, additionalProperties: textOrNull },
      { additionalProperties: text },
      "/additionalProperties/type",
    ),
    said(A, { additionalProperties: whole }, "/additionalProperties/type"),
  ),
  ...rule("the values of other members narrowed", [
    { type: "object", additionalProperties: { type: "object" }, anyOf: MENTIONING },
    { type: "object", additionalProperties: object({ x: text }), anyOf: MENTIONING },
    "/additionalProperties/properties/x/type",
  ]),
  ...bothWays(
    "a bound of the number of members tightened",
    "a bound of the number of members loosened",
    said(A, { minProperties: 1 }, "/minProperties"),
    said({ type: "object", maxProperties: 3 }, { maxProperties: 2 }, "/maxProperties"),
  ),
  ...bothWays(
    "a pattern of names narrowed",
    "a pattern of names widened",
    said(
      { ...NONE, patternProperties: { "^x-": textOrNull } },
      { patternProperties: { "^x-": text } },
      "/patternProperties/^x-/type",
    ),
  ),
  ...rule(
    "a pattern of names narrowed",
    said(
      object({ "x-a": text }),
      { patternProperties: { "^x-": { maxLength: 3 } } },
      "/patternProperties/^x-/maxLength",
    ),
  ),
  ...bothWays(
    "a pattern of names added to an open object",
    "a pattern of names removed from an open object",
    said(NONE, { patternProperties: { "^x-": text } }, "/patternProperties/^x-/type"),
    said(A, { patternProperties: { "^b$": whole } }, "/patternProperties/^b$/type"),
  ),
  ...bothWays(
    "propertyNames added to an open object",
    "propertyNames removed from an object",
    said({ type: "object" }, { propertyNames: { maxLength: 5 } }, "/propertyNames/maxLength"),
    said(A, { propertyNames: { pattern: "^[a-z]+$" } }, "/propertyNames/pattern"),
  ),
  ...bothWays(
    "propertyNames narrowed",
    "propertyNames widened",
    [
      { type: "object", propertyNames: { enum: ["a", "b"] } },
      { type: "object", propertyNames: { enum: ["a"] } },
      "/propertyNames/enum",
    ],
    [
      { type: "object", propertyNames: { pattern: "^[a-z0-9]+$" } },
      { type: "object", propertyNames: { pattern: "^[a-z]+$" } },
      "/propertyNames/pattern",
    ],
  ),
  ...bothWays(
    "a dependency added",
    "a dependency removed",
    said(AB, { dependencies: { a: ["b"] } }, "/dependencies/a"),
    said(AB, { dependencies: { a: { required: ["b"] } } }, "/dependencies/a/required"),
  ),
  ...rule(
    "the same said in another way",
    said({ ...A, dependencies: { a: ["b"] } }, { dependencies: { a: { required: ["b"] } } }),
    [
      { ...A, dependencies: { b: { required: ["c"] } } },
      { ...A, ...ifHas("b", "c") },
    ],
  ),
  ...atProperty("items narrowed", [
    { type: "array", items: { type: "object" }, anyOf: IN_A_BRANCH },
    { type: "array", items: object({ x: text }), anyOf: IN_A_BRANCH },
    "/items/properties/x/type",
  ]),
];
