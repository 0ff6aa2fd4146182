import { nearest } from "../domain/words/nearest.ts";
import { ANY, NUMBER, TYPE } from "./validate/values.ts";

export type JsonObject = Record<string, unknown>;

/** How a keyword of draft-07 holds other schemas. */
interface Applicator {
  readonly holds: "schema" | "list" | "map";
  /** Whether those look at the same value or at one inside it. */
  readonly looksAt: "same" | "inside" | "nothing";
  /** The types of the values that it is about. */
  readonly types: number;
}

const definitions: Applicator = { holds: "map", looksAt: "nothing", types: 0 };
const same = (holds: Applicator["holds"], types: number = ANY): Applicator => ({
  holds,
  looksAt: "same",
  types,
});
const inside = (holds: Applicator["holds"], types: number): Applicator => ({
  holds,
  looksAt: "inside",
  types,
});

/**
 * The keywords with schemas inside. `items` may also be a list, and an entry of `dependencies` a list of names. `$defs`
 * is a later draft's word for `definitions`, and often used in draft-07.
 */
const APPLICATORS: ReadonlyMap<string, Applicator> = new Map([
  ["definitions", definitions],
  ["$defs", definitions],
  ["allOf", same("list")],
  ["anyOf", same("list")],
  ["oneOf", same("list")],
  ["not", same("schema")],
  ["if", same("schema")],
  ["then", same("schema")],
  ["else", same("schema")],
  ["dependencies", same("map", TYPE.object)],
  ["properties", inside("map", TYPE.object)],
  ["patternProperties", inside("map", TYPE.object)],
  ["additionalProperties", inside("schema", TYPE.object)],
  ["propertyNames", inside("schema", TYPE.object)],
  ["items", inside("schema", TYPE.array)],
  ["additionalItems", inside("schema", TYPE.array)],
  ["contains", inside("schema", TYPE.array)],
]);

/** Keywords that say something about a value without checking it. */
const ANNOTATIONS: ReadonlySet<string> = new Set(
  "$id $schema $comment title description default examples readOnly writeOnly contentMediaType contentEncoding".split(
    " ",
  ),
);

const about = (types: number, keywords: string): [string, number][] =>
  keywords.split(" ").map((keyword) => [keyword, types]);

/** The other keywords that check a value, with the types of the values they are about. */
const ASSERTIONS: ReadonlyMap<string, number> = new Map([
  ...about(ANY, "type enum const"),
  ...about(NUMBER, "maximum exclusiveMaximum minimum exclusiveMinimum multipleOf"),
  ...about(TYPE.string, "maxLength minLength pattern"),
  ...about(TYPE.string | NUMBER, "format"),
  ...about(TYPE.array, "maxItems minItems uniqueItems"),
  ...about(TYPE.object, "maxProperties minProperties required"),
]);

/** All keywords that can refuse a value, those without schemas inside first. */
export const ASSERTIONS_FIRST: readonly string[] = [...ASSERTIONS.keys(), ...APPLICATORS.keys()];

/** The types of the values that a keyword can refuse, as bits; all for `allOf` and the like. */
export function typesAbout(keyword: string): number {
  return ASSERTIONS.get(keyword) ?? APPLICATORS.get(keyword)?.types ?? ANY;
}

export function isAnnotation(keyword: string): boolean {
  return ANNOTATIONS.has(keyword);
}

export function isAssertion(keyword: string): boolean {
  return ASSERTIONS.has(keyword);
}

/** Whether the keyword only keeps schemas for others to refer to. */
export function isDefinitions(keyword: string): boolean {
  return APPLICATORS.get(keyword)?.looksAt === "nothing";
}

/** How the keyword holds schemas that check something. */
export function schemasIn(keyword: string): Applicator["holds"] | undefined {
  return isDefinitions(keyword) ? undefined : APPLICATORS.get(keyword)?.holds;
}

export function isKnown(keyword: string): boolean {
  return keyword === "$ref" || isAssertion(keyword) || APPLICATORS.has(keyword) || isAnnotation(keyword);
}

export interface Subschema {
  /** The keyword it counts as there. */
  readonly keyword: string;
  /** Steps from the schema that holds it: `["properties", "zip"]`. */
  readonly steps: readonly (string | number)[];
  readonly schema: unknown;
  readonly looksAt: Applicator["looksAt"];
}

/** The schemas directly inside one, in the document's order. Beside a `$ref` only definitions count. */
export function* subschemasOf(schema: JsonObject): Generator<Subschema> {
  const reference = typeof schema["$ref"] === "string";
  const isFreeList = Array.isArray(schema["items"]) && schema["items"].length === 0;
  for (const [name, value] of Object.entries(schema)) {
    // Behind a list of no places, it is for all items.
    const keyword = isFreeList && name === "additionalItems" ? "items" : name;
    const applicator = APPLICATORS.get(keyword);
    if (applicator === undefined || (reference && applicator.looksAt !== "nothing")) continue;
    const { looksAt } = applicator;
    if (applicator.holds === "schema" && !Array.isArray(value)) {
      yield { keyword, steps: [name], schema: value, looksAt };
    } else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        yield { keyword, steps: [keyword, index], schema: item as unknown, looksAt };
      }
    } else if (isObject(value)) {
      for (const [key, member] of Object.entries(value)) {
        if (!Array.isArray(member)) yield { keyword, steps: [keyword, key], schema: member, looksAt };
      }
    }
  }
}

/** The patterns of one schema itself, each with the steps to it. */
export function* patternsIn(
  schema: JsonObject,
): Generator<{ readonly pattern: string; readonly steps: readonly string[] }> {
  const { pattern, patternProperties = {} } = schema;
  if (typeof pattern === "string") yield { pattern, steps: ["pattern"] };
  for (const name of Object.keys(patternProperties as JsonObject)) {
    yield { pattern: name, steps: ["patternProperties", name] };
  }
}

/** The known keyword that a misspelt one probably stands for. */
export function closestKeyword(word: string): string | undefined {
  return nearest(word, [...ASSERTIONS_FIRST, ...ANNOTATIONS, "$ref"]);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
