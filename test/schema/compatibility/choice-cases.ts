/* oxlint-disable unicorn/no-thenable -- "then" is a keyword of JSON Schema */
import { at, atProperty, bothWays, everywhere, object, rule, text, whole } from "./rule-cases.ts";
import type { Json } from "./random-schemas.ts";
import type { RuleCase } from "./rule-cases.ts";

const closed = { additionalProperties: false };
const none = { type: "null" };
const textOrNull = { type: ["string", "null"] };
const kind = (name: string, properties: Json = {}, rest: Json = {}): Json =>
  object({ kind: { const: name }, ...properties }, { required: ["kind"], ...rest });
const tree = (value: unknown, rest: Json = {}): Json =>
  object({ value, left: { $ref: "#/properties/p" }, right: { $ref: "#/properties/p" } }, rest);
const chain = (value: unknown): Json => ({
  ...at({ $ref: "#/definitions/one" }),
  definitions: {
    one: object({ value, next: { $ref: "#/definitions/other" } }),
    other: { type: "array", items: { anyOf: [{ $ref: "#/definitions/one" }, none] } },
  },
});
/** A document with these properties and a definition that they refer to. */
const defined = (d: Json, properties: Json): Json => ({ ...object(properties), definitions: { d } });
const DEFINED = { $ref: "#/definitions/d" };
const referring = (name: "x" | "y"): Json => ({
  ...at({ allOf: [{ $ref: `#/definitions/${name}` }] }),
  definitions: { x: text, y: { ...text, maxLength: 3 } },
});
const any = (...anyOf: readonly unknown[]): Json => ({ anyOf });
const one = (...oneOf: readonly unknown[]): Json => ({ oneOf });
const [A, B] = [object({ a: text }), object({ b: text })];
const AB = object({ a: text, b: text });
const [KIND_A, KIND_B] = [kind("a"), kind("b")];
const KINDS = one(KIND_A, KIND_B);
const [CLOSED_A, CLOSED_B] = [kind("a", {}, closed), kind("b", {}, closed)];

/** Changes of schemas that combine others, refer to others or to themselves. */
export const CHOICE_CASES: readonly RuleCase[] = [
  ...bothWays(
    "one more schema in allOf",
    "one schema less in allOf",
    [{ allOf: [text] }, { allOf: [text, { minLength: 1 }] }, "/allOf/1/minLength"],
    [A, { ...A, allOf: [{ required: ["a"] }] }, "/allOf/0/required"],
  ),
  ...bothWays(
    "a branch taken from anyOf or oneOf",
    "a branch added to anyOf or oneOf",
    [any(text, none), any(text), "/anyOf"],
    [KINDS, one(KIND_A), "/oneOf"],
  ),
  ...atProperty("a branch taken from anyOf or oneOf", [any(text, whole, none), any(text, none), "/anyOf"]),
  ...atProperty("a branch added to anyOf or oneOf", [KINDS, one(KIND_A, KIND_B, kind("c")), "/oneOf"]),
  ...atProperty(
    "an optional property added in a branch",
    [any(A, none), any(AB, none)],
    [KINDS, one(kind("a", { x: text }), KIND_B)],
    [one(CLOSED_A, CLOSED_B), one(kind("a", { x: text }, closed), CLOSED_B)],
    [one(KIND_B, KIND_A), one(kind("a", { x: text }), kind("b", { y: whole }))],
    [{ allOf: [A, B] }, { allOf: [object({ a: text, c: text }), B] }],
    [
      { if: KIND_A, then: A },
      { if: KIND_A, then: AB },
    ],
    [one(object({ a: object({ x: text }) }), none), one(object({ a: object({ x: text, y: text }) }), none)],
  ),
  ...bothWays(
    "a branch narrowed",
    "a branch widened",
    [
      any(object({ a: { enum: [1, 2] } }), none),
      any(object({ a: { enum: [1] } }), none),
      "/anyOf/0/properties/a/enum",
    ],
    [
      one(kind("a", { x: textOrNull }), KIND_B),
      one(kind("a", { x: text }), KIND_B),
      "/oneOf/0/properties/x/type",
    ],
    [KINDS, one(kind("a", { x: text }, { required: ["kind", "x"] }), KIND_B), "/oneOf/0/required"],
  ),
  ...atProperty("branches of a oneOf that come to overlap", [
    one(text, whole),
    one(text, whole, { const: 1 }),
    "/oneOf",
  ]),
  ...atProperty("not narrowed", [
    { ...text, not: { enum: ["a", "b"] } },
    { ...text, not: { enum: ["a"] } },
    "/not",
  ]),
  ...atProperty(
    "not widened",
    [{ not: none }, { not: textOrNull }, "/not"],
    [AB, { ...AB, not: { required: ["a", "b"] } }, "/not"],
  ),
  ...bothWays(
    "a then or else narrowed",
    "a then or else widened",
    [
      { if: text, then: {}, else: whole },
      { if: text, then: { minLength: 2 }, else: whole },
      "/then/minLength",
    ],
    [{ if: text, else: { type: ["integer", "null"] } }, { if: text, else: whole }, "/else/type"],
  ),
  ...atProperty(
    "the same said in another way",
    [{ allOf: [any(text, whole), any(text, none)] }, text],
    [KINDS, any(KIND_B, KIND_A)],
    [any(A, object({ a: whole })), any(object({ a: whole }), A)],
  ),
  ...rule(
    "a definition narrowed",
    [referring("x"), referring("y"), "/definitions/y/maxLength"],
    [
      defined(text, { a: DEFINED, b: DEFINED }),
      defined({ ...text, format: "email" }, { a: DEFINED, b: DEFINED }),
      "/definitions/d/format",
    ],
  ),
  ...rule(
    "a definition widened",
    [referring("y"), referring("x"), "/definitions/y/maxLength"],
    [
      defined(object({ a: whole }), { p: one(DEFINED, none) }),
      defined(object({ a: { type: "number" } }), { p: one(DEFINED, none) }),
      "/definitions/d/properties/a/type",
    ],
  ),
  ...rule(
    "an optional property added to a recursive schema",
    [
      at(tree(text)),
      at({ ...tree(text), properties: { ...(tree(text)["properties"] as Json), note: text } }),
    ],
    [
      object({ a: text, next: { $ref: "#" } }, closed),
      object({ a: text, b: text, next: { $ref: "#" } }, closed),
    ],
    [chain(text), { ...chain(text), properties: { p: { $ref: "#/definitions/one" }, q: text } }],
  ),
  ...rule(
    "nothing",
    [at(tree(text, { required: ["value"] })), at(tree(text, { required: ["value"] }))],
    [chain(text), chain(text)],
  ),
  ...bothWays("a recursive schema narrowed", "a recursive schema widened", [
    tree(textOrNull),
    tree(text),
    "/properties/value/type",
  ]),
  ...rule(
    "a recursive schema narrowed",
    [chain(text), chain({ ...text, maxLength: 9 }), "/definitions/one/properties/value/maxLength"],
    [at(tree(text)), at(tree(text, { required: ["value"] })), "/properties/p/required"],
  ),
  ...rule("a recursive schema widened", [
    chain({ enum: [1] }),
    chain({ enum: [1, 2] }),
    "/definitions/one/properties/value/enum",
  ]),
  ...everywhere("nothing", [one(KIND_A, KIND_B, none), one(KIND_A, KIND_B, none)]),
];
