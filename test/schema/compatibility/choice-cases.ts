/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { at, bothWays, everywhere, object, text, whole } from "./rule-cases.ts";
import type { Json } from "./random-schemas.ts";
import type { RuleCase } from "./rule-cases.ts";

const closed = { additionalProperties: false };
const none = { type: "null" };
const kind = (name: string, properties: Json = {}, rest: Json = {}): Json =>
  object({ kind: { const: name }, ...properties }, { required: ["kind"], ...rest });
const all: [string, string] = ["one more schema in allOf", "one schema less in allOf"];
const branch: [string, string] = ["a branch taken from anyOf or oneOf", "a branch added to anyOf or oneOf"];
const inBranch: [string, string] = ["a branch narrowed", "a branch widened"];
const then: [string, string] = ["a then or else narrowed", "a then or else widened"];
const definition: [string, string] = ["a definition narrowed", "a definition widened"];
const recursive: [string, string] = ["a recursive schema narrowed", "a recursive schema widened"];
const tree = (value: unknown, rest: Json = {}): Json =>
  object({ value, left: { $ref: "#/properties/p" }, right: { $ref: "#/properties/p" } }, rest);
const chain = (value: unknown): Json => ({
  ...at({ $ref: "#/definitions/one" }),
  definitions: {
    one: object({ value, next: { $ref: "#/definitions/other" } }),
    other: { type: "array", items: { anyOf: [{ $ref: "#/definitions/one" }, none] } },
  },
});

/** Changes of schemas that combine others, refer to others or to themselves. */
export const CHOICE_CASES: readonly RuleCase[] = [
  ...bothWays(...all, { allOf: [text] }, { allOf: [text, { minLength: 1 }] }, "/allOf/1/minLength"),
  ...bothWays(
    ...all,
    object({ a: text }),
    object({ a: text }, { allOf: [{ required: ["a"] }] }),
    "/allOf/0/required",
  ),
  ...bothWays(...branch, { anyOf: [text, none] }, { anyOf: [text] }, "/anyOf"),
  ...bothWays(...branch, { oneOf: [kind("a"), kind("b")] }, { oneOf: [kind("a")] }, "/oneOf"),
  [
    "a branch taken from anyOf or oneOf",
    at({ anyOf: [text, whole, none] }),
    at({ anyOf: [text, none] }),
    "/properties/p/anyOf",
  ],
  [
    "a branch added to anyOf or oneOf",
    at({ oneOf: [kind("a"), kind("b")] }),
    at({ oneOf: [kind("a"), kind("b"), kind("c")] }),
    "/properties/p/oneOf",
  ],
  [
    "an optional property added in a branch",
    at({ anyOf: [object({ a: text }), none] }),
    at({ anyOf: [object({ a: text, b: text }), none] }),
  ],
  [
    "an optional property added in a branch",
    at({ oneOf: [kind("a"), kind("b")] }),
    at({ oneOf: [kind("a", { x: text }), kind("b")] }),
  ],
  [
    "an optional property added in a branch",
    at({ oneOf: [kind("a", {}, closed), kind("b", {}, closed)] }),
    at({ oneOf: [kind("a", { x: text }, closed), kind("b", {}, closed)] }),
  ],
  [
    "an optional property added in a branch",
    at({ oneOf: [kind("b"), kind("a")] }),
    at({ oneOf: [kind("a", { x: text }), kind("b", { y: whole })] }),
  ],
  [
    "an optional property added in a branch",
    at({ allOf: [object({ a: text }), object({ b: text })] }),
    at({ allOf: [object({ a: text, c: text }), object({ b: text })] }),
  ],
  [
    "an optional property added in a branch",
    at({ if: kind("a"), then: object({ a: text }) }),
    at({ if: kind("a"), then: object({ a: text, b: text }) }),
  ],
  [
    "an optional property added in a branch",
    at({ oneOf: [object({ a: object({ x: text }) }), none] }),
    at({ oneOf: [object({ a: object({ x: text, y: text }) }), none] }),
  ],
  ...bothWays(
    ...inBranch,
    { anyOf: [object({ a: { enum: [1, 2] } }), none] },
    { anyOf: [object({ a: { enum: [1] } }), none] },
    "/anyOf/0/properties/a/enum",
  ),
  ...bothWays(
    ...inBranch,
    { oneOf: [kind("a", { x: { type: ["string", "null"] } }), kind("b")] },
    { oneOf: [kind("a", { x: text }), kind("b")] },
    "/oneOf/0/properties/x/type",
  ),
  ...bothWays(
    ...inBranch,
    { oneOf: [kind("a"), kind("b")] },
    { oneOf: [kind("a", { x: text }, { required: ["kind", "x"] }), kind("b")] },
    "/oneOf/0/required",
  ),
  [
    "branches of a oneOf that come to overlap",
    at({ oneOf: [text, whole] }),
    at({ oneOf: [text, whole, { const: 1 }] }),
    "/properties/p/oneOf",
  ],
  [
    "not narrowed",
    at({ ...text, not: { enum: ["a", "b"] } }),
    at({ ...text, not: { enum: ["a"] } }),
    "/properties/p/not",
  ],
  ["not widened", at({ not: none }), at({ not: { type: ["string", "null"] } }), "/properties/p/not"],
  [
    "not widened",
    at(object({ a: text, b: text })),
    at(object({ a: text, b: text }, { not: { required: ["a", "b"] } })),
    "/properties/p/not",
  ],
  ...bothWays(
    ...then,
    { if: text, then: {}, else: whole },
    { if: text, then: { minLength: 2 }, else: whole },
    "/then/minLength",
  ),
  ...bothWays(
    ...then,
    { if: text, else: { type: ["integer", "null"] } },
    { if: text, else: whole },
    "/else/type",
  ),
  [
    "the same said in another way",
    at({ allOf: [{ anyOf: [text, whole] }, { anyOf: [text, none] }] }),
    at(text),
  ],
  [
    "the same said in another way",
    at({ oneOf: [kind("a"), kind("b")] }),
    at({ anyOf: [kind("b"), kind("a")] }),
  ],
  [
    "the same said in another way",
    at({ anyOf: [object({ a: text }), object({ a: whole })] }),
    at({ anyOf: [object({ a: whole }), object({ a: text })] }),
  ],
  ...bothWays(
    ...definition,
    { allOf: [{ $ref: "#/definitions/x" }] },
    { allOf: [{ $ref: "#/definitions/y" }] },
  ).map(([rule, old, next]): RuleCase => {
    const definitions = { x: text, y: { ...text, maxLength: 3 } };
    return [rule, { ...old, definitions }, { ...next, definitions }, "/definitions/y/maxLength"];
  }),
  [
    "a definition narrowed",
    {
      ...object({ a: { $ref: "#/definitions/d" }, b: { $ref: "#/definitions/d" } }),
      definitions: { d: text },
    },
    {
      ...object({ a: { $ref: "#/definitions/d" }, b: { $ref: "#/definitions/d" } }),
      definitions: { d: { ...text, format: "email" } },
    },
    "/definitions/d/format",
  ],
  [
    "a definition widened",
    { ...at({ oneOf: [{ $ref: "#/definitions/d" }, none] }), definitions: { d: object({ a: whole }) } },
    {
      ...at({ oneOf: [{ $ref: "#/definitions/d" }, none] }),
      definitions: { d: object({ a: { type: "number" } }) },
    },
    "/definitions/d/properties/a/type",
  ],
  [
    "an optional property added to a recursive schema",
    at(tree(text)),
    at({ ...tree(text), properties: { ...(tree(text)["properties"] as Json), note: text } }),
  ],
  [
    "an optional property added to a recursive schema",
    object({ a: text, next: { $ref: "#" } }, closed),
    object({ a: text, b: text, next: { $ref: "#" } }, closed),
  ],
  [
    "an optional property added to a recursive schema",
    chain(text),
    { ...chain(text), properties: { p: { $ref: "#/definitions/one" }, q: text } },
  ],
  ["nothing", at(tree(text, { required: ["value"] })), at(tree(text, { required: ["value"] }))],
  ["nothing", chain(text), chain(text)],
  [
    recursive[0],
    at(tree({ type: ["string", "null"] })),
    at(tree(text)),
    "/properties/p/properties/value/type",
  ],
  [
    recursive[1],
    at(tree(text)),
    at(tree({ type: ["string", "null"] })),
    "/properties/p/properties/value/type",
  ],
  [
    recursive[0],
    chain(text),
    chain({ ...text, maxLength: 9 }),
    "/definitions/one/properties/value/maxLength",
  ],
  [recursive[1], chain({ enum: [1] }), chain({ enum: [1, 2] }), "/definitions/one/properties/value/enum"],
  [recursive[0], at(tree(text)), at(tree(text, { required: ["value"] })), "/properties/p/required"],
  ...everywhere("nothing", { oneOf: [kind("a"), kind("b"), none] }, { oneOf: [kind("a"), kind("b"), none] }),
];
