/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { at, bothWays, everywhere, object, text, whole } from "./rule-cases.ts";
import type { RuleCase } from "./rule-cases.ts";

const tightened = (what: string): [string, string] => [
  `a bound of ${what} tightened`,
  `a bound of ${what} loosened`,
];
const numbers = tightened("numbers");
const lengths = tightened("a text's length");
const lists = tightened("a list's length");
const multiple: [string, string] = ["a multipleOf tightened", "a multipleOf loosened"];
const patterns: [string, string] = ["a pattern narrowed", "a pattern widened"];
const items: [string, string] = ["items narrowed", "items widened"];
const places: [string, string] = ["a place of a tuple narrowed", "a place of a tuple widened"];
const contains: [string, string] = ["contains added or narrowed", "contains removed or widened"];
const array = (rest: object): object => ({ type: "array", ...rest });

/** Changes of what one value may be. */
export const VALUE_CASES: readonly RuleCase[] = [
  ...everywhere("nothing", text, text),
  ["nothing", { type: "object" }, { type: "object" }],
  ["nothing", at({ not: { pattern: "x" } }), at({ not: { pattern: "x" } })],
  [
    "nothing",
    at({ contains: { if: text, then: { format: "email" } } }),
    at({ contains: { if: text, then: { format: "email" } } }),
  ],
  [
    "annotations and unknown keywords",
    object({ p: text }, { title: "a" }),
    object({ p: text }, { description: "b", examples: [1] }),
  ],
  [
    "annotations and unknown keywords",
    at({ ...text, "x-owner": "a" }),
    at({ ...text, nullable: true, readOnly: true }),
  ],
  ["annotations and unknown keywords", at({ ...text, format: "money" }), at(text)],
  [
    "annotations and unknown keywords",
    { ...at(text), $id: "http://e.com/1" },
    { ...at(text), $id: "http://e.com/2" },
  ],
  [
    "annotations and unknown keywords",
    { ...at(text), definitions: { a: text } },
    { ...at(text), definitions: { b: whole } },
  ],
  ["the same said in another way", at({ enum: [1, 2], type: "integer" }), at({ enum: [2, 1] })],
  ["the same said in another way", at({ type: ["string", "null"] }), at({ anyOf: [text, { type: "null" }] })],
  ["the same said in another way", at({ type: ["string", "null"] }), at({ oneOf: [{ type: "null" }, text] })],
  ["the same said in another way", at({ const: 1 }), at({ enum: [1] })],
  [
    "the same said in another way",
    at(text),
    { ...at({ $ref: "#/definitions/t" }), definitions: { t: text } },
  ],
  ["the same said in another way", at({ ...text, maxLength: 3 }), at({ allOf: [text, { maxLength: 3 }] })],
  ["the same said in another way", at(whole), at({ type: "number", multipleOf: 1 })],
  ["the same said in another way", at({ ...whole, exclusiveMinimum: 0 }), at({ ...whole, minimum: 1 })],
  ["the same said in another way", at({ ...text, pattern: "^[a-c]$" }), at({ ...text, pattern: "^[abc]$" })],
  ["the same said in another way", at({ type: "boolean" }), at({ enum: [true, false] })],
  [
    "the same said in another way",
    at({ ...whole, minimum: 4, maximum: 4 }),
    at({ type: "number", minimum: 4, maximum: 4 }),
  ],
  ["the same said in another way", at({ type: "number", minimum: 0.5, maximum: 0.5 }), at({ const: 0.5 })],
  [
    "the same said in another way",
    at({ enum: ["a", "b", "c", "d", "e", null] }),
    at({ oneOf: [...["a", "b", "c", "d", "e"].map((value) => ({ const: value })), { type: "null" }] }),
  ],
  ["the same said in another way", at({ not: { not: text } }), at(text)],
  ["the same said in another way", { properties: { p: text } }, object({ p: text })],
  ["the same said in another way", at({ ...text, maximum: 5 }), at(text)],
  [
    "the same said in another way",
    at({ if: text, then: { minLength: 1 } }),
    at({ anyOf: [{ not: text }, { minLength: 1 }] }),
  ],
  ...everywhere("a type taken away", { type: ["string", "null"] }, text, "/type"),
  ...everywhere("a type taken away", { type: "number" }, whole, "/type"),
  ...everywhere("a type added", text, { type: ["string", "null"] }, "/type"),
  ...everywhere("a type added", whole, { type: "number" }, "/type"),
  ...everywhere("another type", text, whole, "/type"),
  ...everywhere("another type", { type: "object" }, { type: "array" }, "/type"),
  ...everywhere("a schema where there was none", {}, text, "/type"),
  ["a schema where there was none", at(true), at({ enum: [1, 2] }), "/properties/p/enum"],
  ...everywhere("a schema taken away", text, {}, "/type"),
  ["a schema taken away", at({ maxLength: 3 }), at(true), "/properties/p/maxLength"],
  ["a property forbidden", at(text), at(false), "/properties/p"],
  ["a property forbidden", object({ p: {} }), object({ p: false }), "/properties/p"],
  ...everywhere("a value taken from an enum", { enum: ["a", "b"] }, { enum: ["a"] }, "/enum"),
  [
    "a value taken from an enum",
    at({ enum: [1, null, { a: 1 }] }),
    at({ enum: [1, null] }),
    "/properties/p/enum",
  ],
  ...everywhere("a value added to an enum", { enum: ["a"] }, { enum: ["a", "b"] }, "/enum"),
  ["a value added to an enum", at({ const: 1 }), at({ enum: [1, 2] }), "/properties/p/const"],
  ...everywhere("another const", { const: "a" }, { const: "b" }, "/const"),
  ["another const", at({ const: [1] }), at({ const: [1, 2] }), "/properties/p/const"],
  ...bothWays(...numbers, { type: "number" }, { type: "number", minimum: 0 }, "/minimum"),
  ...bothWays(...numbers, { ...whole, maximum: 9 }, { ...whole, maximum: 8 }, "/maximum"),
  ...bothWays(
    ...numbers,
    { type: "number", minimum: 0 },
    { type: "number", exclusiveMinimum: 0 },
    "/exclusiveMinimum",
  ),
  ...bothWays(
    ...numbers,
    { type: "number", exclusiveMaximum: 1 },
    { type: "number", maximum: 0.99 },
    "/maximum",
  ),
  ...bothWays(
    ...numbers,
    { ...whole, minimum: -5, maximum: 5 },
    { ...whole, minimum: -5, maximum: 4 },
    "/maximum",
  ),
  ...bothWays(...multiple, whole, { ...whole, multipleOf: 5 }, "/multipleOf"),
  ...bothWays(
    ...multiple,
    { type: "number", multipleOf: 0.01 },
    { type: "number", multipleOf: 0.1 },
    "/multipleOf",
  ),
  ...bothWays(...lengths, text, { ...text, minLength: 1 }, "/minLength"),
  ...bothWays(...lengths, { ...text, maxLength: 80 }, { ...text, maxLength: 40 }, "/maxLength"),
  ...bothWays(
    ...lengths,
    { ...text, pattern: "^[a-z]+$" },
    { ...text, pattern: "^[a-z]+$", maxLength: 4 },
    "/maxLength",
  ),
  ...bothWays(...patterns, text, { ...text, pattern: "^A-[0-9]+$" }, "/pattern"),
  ...bothWays(...patterns, { ...text, pattern: "^[a-z0-9]+$" }, { ...text, pattern: "^[a-z]+$" }, "/pattern"),
  ...bothWays(
    ...patterns,
    { ...text, pattern: "^[0-9]{2,4}$" },
    { ...text, pattern: "^[0-9]{2,3}$" },
    "/pattern",
  ),
  ...bothWays(...patterns, { ...text, pattern: "a" }, { ...text, pattern: "^a" }, "/pattern"),
  ...everywhere("a format added", text, { ...text, format: "email" }, "/format"),
  ["a format added", at({ type: "integer" }), at({ type: "integer", format: "int32" })],
  ["a format added", at({ type: "integer" }), at({ type: "integer", format: "int64" })],
  ...everywhere("a format removed", { ...text, format: "uuid" }, text, "/format"),
  ...bothWays(
    "a format that takes less",
    "a format that takes more",
    { ...whole, format: "int64" },
    { ...whole, format: "int32" },
    "/format",
  ),
  ["another format", at({ ...text, format: "email" }), at({ ...text, format: "hostname" })],
  ...everywhere("another format", { ...text, format: "date" }, { ...text, format: "date-time" }, "/format"),
  [
    "another format",
    at({ ...text, format: "ipv4" }),
    at({ ...text, format: "email" }),
    "/properties/p/format",
  ],
  ...bothWays(...lists, array({}), array({ minItems: 1 }), "/minItems"),
  ...bothWays(...lists, array({ maxItems: 3 }), array({ maxItems: 2 }), "/maxItems"),
  ...bothWays(
    "uniqueItems added",
    "uniqueItems removed",
    array({}),
    array({ uniqueItems: true }),
    "/uniqueItems",
  ),
  ...bothWays(
    "uniqueItems added",
    "uniqueItems removed",
    array({ items: text }),
    array({ items: text, uniqueItems: true }),
    "/uniqueItems",
  ),
  ...bothWays(
    ...items,
    array({ items: { type: ["string", "null"] } }),
    array({ items: text }),
    "/items/type",
  ),
  ...bothWays(...items, array({ items: { enum: [1, 2] } }), array({ items: { enum: [1] } }), "/items/enum"),
  ...bothWays(...items, array({}), array({ items: text }), "/items/type"),
  ...bothWays(...items, array({ items: text }), array({ items: false }), "/items"),
  ...bothWays(
    ...places,
    array({ items: [{ type: ["string", "null"] }, whole] }),
    array({ items: [text, whole] }),
    "/items/0/type",
  ),
  ...bothWays(
    ...places,
    array({ items: [text, { enum: [1, 2] }] }),
    array({ items: [text, { enum: [1] }] }),
    "/items/1/enum",
  ),
  [
    "a place of a tuple narrowed",
    at(array({ items: [text] })),
    at(array({ items: [text, text] })),
    "/properties/p/items/1/type",
  ],
  [
    "items after a tuple ruled out",
    at(array({ items: [text] })),
    at(array({ items: [text], additionalItems: false })),
    "/properties/p/additionalItems",
  ],
  [
    "items after a tuple ruled out",
    at(array({ items: [text], additionalItems: whole })),
    at(array({ items: [text], additionalItems: false })),
    "/properties/p/additionalItems",
  ],
  ...bothWays(...contains, array({}), array({ contains: text }), "/contains"),
  ...bothWays(
    ...contains,
    array({ contains: { type: ["string", "null"] } }),
    array({ contains: text }),
    "/contains",
  ),
  ...bothWays(
    ...contains,
    array({ items: { enum: [1, 2] } }),
    array({ items: { enum: [1, 2] }, contains: { const: 1 } }),
    "/contains",
  ),
];
