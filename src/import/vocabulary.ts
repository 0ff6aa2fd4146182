import { closestKeyword, isAnnotation, isAssertion, isObject, schemasIn } from "../schema/keywords.ts";
import { pointerTo } from "../json/field-path.ts";
import type { Dialect, SourceDocument } from "./source.ts";

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

/** The members of an object that a schema evaluates, with those it applies to the same value. */
interface Evaluated {
  readonly names: ReadonlySet<string>;
  readonly patterns: ReadonlySet<string>;
  /** Whether no member is left. */
  readonly all: boolean;
  /** Whether that is all of it, whichever branches a value takes. */
  readonly isSure: boolean;
}

/** Schemas that are visited: a chain of references can be longer than the stack. */
const MAX_PLACES = 2_000;
const BRANCHES = ["if", "then", "else", "anyOf", "oneOf", "dependentSchemas", "dependencies"];
/** What may evaluate members, as it stands in the text of a branch. */
const EVALUATING =
  /"(?:properties|patternProperties|additionalProperties|unevaluatedProperties|\$ref|\$dynamicRef)":/;

/** What a schema of 2020-12 evaluates of any value. */
export function evaluatedBy(source: SourceDocument, pointer: string): Evaluated {
  const names = new Set<string>();
  const patterns = new Set<string>();
  const seen = new Set<string>();
  let [all, isSure] = [false, true];
  const visit = (place: string): void => {
    const schema = source.at(place);
    if (seen.has(place) || !isObject(schema)) return;
    isSure &&= seen.size < MAX_PLACES;
    if (!isSure) return;
    seen.add(place);
    if (typeof schema["$ref"] === "string") {
      visit(source.target(schema["$ref"], place));
      if (source.dialectAt(place) === "draft-07") return;
    }
    for (const name of keysOf(schema["properties"])) names.add(name);
    for (const name of keysOf(schema["patternProperties"])) patterns.add(name);
    const others =
      place === pointer ? ["additionalProperties"] : ["additionalProperties", "unevaluatedProperties"];
    all ||= others.some((keyword) => schema[keyword] !== undefined);
    for (const index of keysOf(schema["allOf"])) visit(pointerTo(pointerTo(place, "allOf"), index));
    isSure &&= !BRANCHES.some((keyword) => EVALUATING.test(JSON.stringify(schema[keyword] ?? null)));
  };
  visit(pointer);
  return { names, patterns, all, isSure: all || isSure };
}

function keysOf(value: unknown): readonly string[] {
  return typeof value === "object" && value !== null ? Object.keys(value) : [];
}
