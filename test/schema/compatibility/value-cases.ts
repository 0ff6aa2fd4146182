/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { at, atProperty, bothWays, everywhere, object, rule, text, whole } from "./rule-cases.ts";
import type { RuleCase } from "./rule-cases.ts";

const number = { type: "number" };
const textOrNull = { type: ["string", "null"] };
const array = (rest: object): object => ({ type: "array", ...rest });
const pattern = (of: string, rest: object = {}): object => ({ ...text, pattern: of, ...rest });
const format = (of: string): object => ({ ...text, format: of });

/** Changes of what one value may be. */
export const VALUE_CASES: readonly RuleCase[] = [
  ...everywhere("nothing", [text, text]),
  ...rule("nothing", [{ type: "object" }, { type: "object" }]),
  ...atProperty(
    "nothing",
    [{ not: { pattern: "x" } }, { not: { pattern: "x" } }],
    [
      { contains: { if: text, then: { format: "email" } } },
      { contains: { if: text, then: { format: "email" } } },
    ],
  ),
  ...rule(
    "annotations and unknown keywords",
    [object({ p: text }, { title: "a" }), object({ p: text }, { description: "b", examples: [1] })],
    [
      { ...at(text), $id: "http://e.com/1" },
      { ...at(text), $id: "http://e.com/2" },
    ],
    [
      { ...at(text), definitions: { a: text } },
      { ...at(text), definitions: { b: whole } },
    ],
  ),
  ...atProperty(
    "annotations and unknown keywords",
    [
      { ...text, "x-owner": "a" },
      { ...text, nullable: true, readOnly: true },
    ],
    [format("money"), text],
  ),
  ...atProperty(
    "the same said in another way",
    [{ enum: [1, 2], type: "integer" }, { enum: [2, 1] }],
    [textOrNull, { anyOf: [text, { type: "null" }] }],
    [textOrNull, { oneOf: [{ type: "null" }, text] }],
    [{ const: 1 }, { enum: [1] }],
    [{ ...text, maxLength: 3 }, { allOf: [text, { maxLength: 3 }] }],
    [whole, { type: "number", multipleOf: 1 }],
    [
      { ...whole, exclusiveMinimum: 0 },
      { ...whole, minimum: 1 },
    ],
    [pattern("^[a-c]$"), pattern("^[abc]$")],
    [{ type: "boolean" }, { enum: [true, false] }],
    [
      { ...whole, minimum: 4, maximum: 4 },
      { ...number, minimum: 4, maximum: 4 },
    ],
    [{ ...number, minimum: 0.5, maximum: 0.5 }, { const: 0.5 }],
    [
      { enum: ["a", "b", "c", "d", "e", null] },
      { oneOf: [...["a", "b", "c", "d", "e"].map((value) => ({ const: value })), { type: "null" }] },
    ],
    [{ not: { not: text } }, text],
    [{ ...text, maximum: 5 }, text],
    [{ if: text, then: { minLength: 1 } }, { anyOf: [{ not: text }, { minLength: 1 }] }],
  ),
  ...rule(
    "the same said in another way",
    [at(text), { ...at({ $ref: "#/definitions/t" }), definitions: { t: text } }],
    [{ properties: { p: text } }, object({ p: text })],
  ),
  ...everywhere("a type taken away", [textOrNull, text, "/type"], [number, whole, "/type"]),
  ...everywhere("a type added", [text, textOrNull, "/type"], [whole, number, "/type"]),
  ...everywhere("another type", [text, whole, "/type"], [{ type: "object" }, { type: "array" }, "/type"]),
  ...everywhere("a schema where there was none", [{}, text, "/type"]),
  ...atProperty("a schema where there was none", [true, { enum: [1, 2] }, "/enum"]),
  ...everywhere("a schema taken away", [text, {}, "/type"]),
  ...atProperty("a schema taken away", [{ maxLength: 3 }, true, "/maxLength"]),
  ...atProperty("a property forbidden", [text, false, ""], [{}, false, ""]),
  ...everywhere("a value taken from an enum", [{ enum: ["a", "b"] }, { enum: ["a"] }, "/enum"]),
  ...atProperty("a value taken from an enum", [{ enum: [1, null, { a: 1 }] }, { enum: [1, null] }, "/enum"]),
  ...everywhere("a value added to an enum", [{ enum: ["a"] }, { enum: ["a", "b"] }, "/enum"]),
  ...atProperty("a value added to an enum", [{ const: 1 }, { enum: [1, 2] }, "/const"]),
  ...everywhere("another const", [{ const: "a" }, { const: "b" }, "/const"]),
  ...atProperty("another const", [{ const: [1] }, { const: [1, 2] }, "/const"]),
  ...bothWays(
    "a bound of numbers tightened",
    "a bound of numbers loosened",
    [number, { ...number, minimum: 0 }, "/minimum"],
    [{ ...whole, maximum: 9 }, { ...whole, maximum: 8 }, "/maximum"],
    [{ ...number, minimum: 0 }, { ...number, exclusiveMinimum: 0 }, "/exclusiveMinimum"],
    [{ ...number, exclusiveMaximum: 1 }, { ...number, maximum: 0.99 }, "/maximum"],
    [{ ...whole, minimum: -5, maximum: 5 }, { ...whole, minimum: -5, maximum: 4 }, "/maximum"],
  ),
  ...bothWays(
    "a multipleOf tightened",
    "a multipleOf loosened",
    [whole, { ...whole, multipleOf: 5 }, "/multipleOf"],
    [{ ...number, multipleOf: 0.01 }, { ...number, multipleOf: 0.1 }, "/multipleOf"],
  ),
  ...bothWays(
    "a bound of a text's length tightened",
    "a bound of a text's length loosened",
    [text, { ...text, minLength: 1 }, "/minLength"],
    [{ ...text, maxLength: 80 }, { ...text, maxLength: 40 }, "/maxLength"],
    [pattern("^[a-z]+$"), pattern("^[a-z]+$", { maxLength: 4 }), "/maxLength"],
  ),
  ...bothWays(
    "a pattern narrowed",
    "a pattern widened",
    [text, pattern("^A-[0-9]+$"), "/pattern"],
    [pattern("^[a-z0-9]+$"), pattern("^[a-z]+$"), "/pattern"],
    [pattern("^[0-9]{2,4}$"), pattern("^[0-9]{2,3}$"), "/pattern"],
    [pattern("a"), pattern("^a"), "/pattern"],
  ),
  ...everywhere("a format added", [text, format("email"), "/format"]),
  ...atProperty(
    "a format added",
    [whole, { ...whole, format: "int32" }],
    [whole, { ...whole, format: "int64" }],
  ),
  ...everywhere("a format removed", [format("uuid"), text, "/format"]),
  ...bothWays("a format that takes less", "a format that takes more", [
    { ...whole, format: "int64" },
    { ...whole, format: "int32" },
    "/format",
  ]),
  ...everywhere("another format", [format("date"), format("date-time"), "/format"]),
  ...atProperty(
    "another format",
    [format("email"), format("hostname")],
    [format("ipv4"), format("email"), "/format"],
  ),
  ...bothWays(
    "a bound of a list's length tightened",
    "a bound of a list's length loosened",
    [array({}), array({ minItems: 1 }), "/minItems"],
    [array({ maxItems: 3 }), array({ maxItems: 2 }), "/maxItems"],
  ),
  ...bothWays(
    "uniqueItems added",
    "uniqueItems removed",
    [array({}), array({ uniqueItems: true }), "/uniqueItems"],
    [array({ items: text }), array({ items: text, uniqueItems: true }), "/uniqueItems"],
  ),
  ...bothWays(
    "items narrowed",
    "items widened",
    [array({ items: textOrNull }), array({ items: text }), "/items/type"],
    [array({ items: { enum: [1, 2] } }), array({ items: { enum: [1] } }), "/items/enum"],
    [array({}), array({ items: text }), "/items/type"],
    [array({ items: text }), array({ items: false }), "/items"],
  ),
  ...bothWays(
    "a place of a tuple narrowed",
    "a place of a tuple widened",
    [array({ items: [textOrNull, whole] }), array({ items: [text, whole] }), "/items/0/type"],
    [array({ items: [text, { enum: [1, 2] }] }), array({ items: [text, { enum: [1] }] }), "/items/1/enum"],
  ),
  ...atProperty("a place of a tuple narrowed", [
    array({ items: [text] }),
    array({ items: [text, text] }),
    "/items/1/type",
  ]),
  ...[{}, { additionalItems: whole }].flatMap((rest) =>
    atProperty("items after a tuple ruled out", [
      array({ items: [text], ...rest }),
      array({ items: [text], additionalItems: false }),
      "/additionalItems",
    ]),
  ),
  ...bothWays(
    "contains added",
    "contains removed",
    [array({}), array({ contains: text }), "/contains"],
    [
      array({ items: { enum: [1, 2] } }),
      array({ items: { enum: [1, 2] }, contains: { const: 1 } }),
      "/contains",
    ],
  ),
  ...atProperty("another contains", [
    array({ contains: textOrNull }),
    array({ contains: text }),
    "/contains",
  ]),
];
