import { isObject } from "./keywords.ts";

/** Lists of texts: a payload must have one text of each list, as a value somewhere in it. */
export type NeededTexts = readonly (readonly string[])[];

const MAX_LISTS = 4;
/** A list with more of them tells little apart. */
const MAX_TEXTS = 8;

/** What every object that conforms to a schema has in it: no more than a first sieve, for a search through many. */
export function neededTexts(schemata: Readonly<Record<string, unknown>>): NeededTexts {
  return [...listsOf(schemata, true)].filter(({ length }) => length <= MAX_TEXTS).slice(0, MAX_LISTS);
}

/** @param holdsObjects whether what conforms is one for sure: only then `required` says anything */
function* listsOf(schema: unknown, holdsObjects: boolean): Generator<readonly string[]> {
  // Everything beside a `$ref` is ignored.
  if (!isObject(schema) || "$ref" in schema) return;
  const { const: only, enum: several, required, properties, items, minItems, type, allOf } = schema;
  if (typeof only === "string") yield [only];
  if (Array.isArray(several) && several.every((value) => typeof value === "string")) yield several;
  if (Array.isArray(allOf)) for (const one of allOf) yield* listsOf(one, holdsObjects);
  if ((holdsObjects || type === "object") && Array.isArray(required) && isObject(properties)) {
    for (const name of required) {
      if (typeof name === "string" && Object.hasOwn(properties, name))
        yield* listsOf(properties[name], false);
    }
  }
  if (type === "array" && Array.isArray(items) && typeof minItems === "number") {
    for (const item of items.slice(0, minItems)) yield* listsOf(item, false);
  }
}
