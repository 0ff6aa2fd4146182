import { closestKeyword, isAnnotation, isAssertion, schemasIn } from "../schema/keywords.ts";
import type { Dialect } from "./source.ts";

type InnerSchemas = "schema" | "list" | "map" | "schema or list";

/** The keywords with schemas inside that draft-07 does not have, or has with another meaning. */
const HOLDS_2020: ReadonlyMap<string, InnerSchemas | undefined> = new Map([
  ["additionalItems", undefined],
  ["prefixItems", "list"],
  ["dependentSchemas", "map"],
  ["unevaluatedProperties", "schema"],
  ["unevaluatedItems", "schema"],
]);

/** Keywords of 2020-12 that check something, without schemas inside, and are not in draft-07. */
const NEWER = new Set(["dependentRequired", "minContains", "maxContains"]);

/** Keywords that contain or name schemas. What is referred to is copied under its own name. */
export const STRUCTURE: ReadonlySet<string> = new Set(
  "$schema $id $anchor $dynamicAnchor $vocabulary $defs definitions".split(" "),
);

const TEXTS = new Set(["$comment", "description", "title"]);

/** Whether it is an annotation without a value, such as an empty `description:` of YAML, which draft-07 refuses. */
export function isEmptyText(keyword: string, value: unknown): boolean {
  return TEXTS.has(keyword) && value === null;
}

/** How a keyword contains schemas. 2020-12 reserves `dependencies`, and most implementations check it. */
export function holds(keyword: string, dialect: Dialect): InnerSchemas | undefined {
  if (dialect === "2020-12" && HOLDS_2020.has(keyword)) return HOLDS_2020.get(keyword);
  return keyword === "items" && dialect === "draft-07" ? "schema or list" : schemasIn(keyword);
}

/** Whether a keyword is copied as it is. What begins with `x-` is an extension, which every dialect allows. */
export function isKept(keyword: string, dialect: Dialect): boolean {
  const isNewer = dialect === "2020-12" && NEWER.has(keyword);
  return isNewer || isAssertion(keyword) || isAnnotation(keyword) || keyword.startsWith("x-");
}

/** Why another keyword is left out. */
export function reasonDropped(keyword: string): string {
  if (keyword === "nullable")
    return 'left out: nullable checks nothing; to allow null, write "null" into the list of types';
  const shown = keyword.length > 64 ? `${keyword.slice(0, 64).toWellFormed()}…` : keyword;
  const meant = closestKeyword(keyword);
  const hint = meant === undefined || meant === keyword ? "" : `; did you mean ${meant}?`;
  return `left out: ${shown} checks nothing${hint}`;
}
