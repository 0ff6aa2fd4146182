import { closestKeyword, isAnnotation, isAssertion } from "../keywords.ts";
import type { JsonObject } from "../keywords.ts";
import { insteadOfNullable } from "../nullable.ts";
import type { Dialect } from "./dialect.ts";

type Holds = "schema" | "list" | "map" | "schema or list";

const COMMON: readonly (readonly [string, Holds])[] = [
  ["allOf", "list"],
  ["anyOf", "list"],
  ["oneOf", "list"],
  ["not", "schema"],
  ["if", "schema"],
  ["then", "schema"],
  ["else", "schema"],
  ["properties", "map"],
  ["patternProperties", "map"],
  ["additionalProperties", "schema"],
  ["propertyNames", "schema"],
  ["contains", "schema"],
  // No keyword of 2020-12 by the letter, which asks that nobody give it another meaning, and checked by most.
  ["dependencies", "map"],
];

/** The keywords with schemas inside. */
const HOLDS: Readonly<Record<Dialect, ReadonlyMap<string, Holds>>> = {
  "draft-07": new Map([...COMMON, ["items", "schema or list"], ["additionalItems", "schema"]]),
  "2020-12": new Map([
    ...COMMON,
    ["items", "schema"],
    ["prefixItems", "list"],
    ["dependentSchemas", "map"],
    ["unevaluatedProperties", "schema"],
    ["unevaluatedItems", "schema"],
  ]),
};

/** Keywords of 2020-12 that check something, without schemas inside, and are not in draft-07. */
const NEWER = new Set(["dependentRequired", "minContains", "maxContains"]);

/** Where schemas are kept, and how they are called. What is referred to comes along under a name of its own. */
const STRUCTURE = new Set([
  "$schema",
  "$id",
  "$anchor",
  "$dynamicAnchor",
  "$vocabulary",
  "$defs",
  "definitions",
]);

/** What no payload is checked by; the others have a sentence of their own. */
const UNCHECKED: ReadonlyMap<string, string> = new Map([
  ["discriminator", "discriminator only hints at a branch and checks nothing"],
  ...["contentSchema", "deprecated", "externalDocs", "xml"].map(
    (word) => [word, `${word} checks nothing`] as const,
  ),
]);

/** What an annotation must be for draft-07 to let it pass; documents often have `description:` with nothing behind it. */
const SHAPES: ReadonlyMap<string, string> = new Map([
  ...["$comment", "contentEncoding", "contentMediaType", "description", "title"].map(
    (word) => [word, "string"] as const,
  ),
  ["readOnly", "boolean"],
  ["writeOnly", "boolean"],
  ["examples", "list"],
]);

/** Why an annotation would get a schema refused; `undefined` for one that does not. */
export function misshapen(keyword: string, value: unknown): string | undefined {
  const shape = SHAPES.get(keyword);
  const isShaped = shape === undefined || (Array.isArray(value) ? "list" : typeof value) === shape;
  return isShaped ? undefined : `left out: ${keyword} must be a ${shape}`;
}

export function holds(keyword: string, dialect: Dialect): Holds | undefined {
  return HOLDS[dialect].get(keyword);
}

export function isStructure(keyword: string): boolean {
  return STRUCTURE.has(keyword);
}

/** Whether it is taken over as it stands. What begins with `x-` is an extension, which every dialect lets pass. */
export function isKept(keyword: string, dialect: Dialect): boolean {
  const isNewer = dialect === "2020-12" && NEWER.has(keyword);
  return isNewer || isAssertion(keyword) || isAnnotation(keyword) || keyword.startsWith("x-");
}

/** Why a keyword of a schema is left out that is none of the above. */
export function leftOutAs(keyword: string, schema: JsonObject, dialect: Dialect): string {
  if (keyword === "nullable") {
    const instead = insteadOfNullable(schema);
    const hint = instead === undefined ? "" : `, and the type rules null out; ${instead} lets it pass`;
    return `left out: nullable checks nothing${hint}`;
  }
  const shown = keyword.length > 64 ? `${keyword.slice(0, 64).toWellFormed()}…` : keyword;
  const meant = closestKeyword(keyword);
  const hint = meant === undefined || meant === keyword ? "" : `; did you mean ${meant}?`;
  const why = UNCHECKED.get(keyword) ?? `${shown} is no keyword of ${dialect} and checks nothing${hint}`;
  return `left out: ${why}`;
}
