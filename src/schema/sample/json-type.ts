import type { JsonObject } from "../keywords.ts";

export type JsonType = "null" | "boolean" | "number" | "string" | "array" | "object";

export const ALL_TYPES: readonly JsonType[] = ["null", "boolean", "number", "string", "array", "object"];

const KEYWORDS: Readonly<Partial<Record<JsonType, string>>> = {
  object:
    "properties required patternProperties additionalProperties propertyNames minProperties maxProperties dependencies",
  array: "items additionalItems contains minItems maxItems uniqueItems",
  string: "pattern format minLength maxLength",
  number: "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
};
const TYPE_OF_KEYWORD: ReadonlyMap<string, string> = new Map(
  Object.entries(KEYWORDS).flatMap(([type, keywords]) =>
    keywords.split(" ").map((keyword) => [keyword, type] as const),
  ),
);

/** The types a value may have, or rather those its schemas are about where none of them states a type. */
export function likelyTypes(
  types: ReadonlySet<JsonType>,
  schemas: readonly JsonObject[],
): ReadonlySet<JsonType> {
  const hinted = new Set(
    schemas.flatMap((schema) => Object.keys(schema).map((keyword) => TYPE_OF_KEYWORD.get(keyword))),
  );
  const likely = [...types].filter((type) => hinted.has(type));
  if (likely.length > 0) return new Set(likely);
  const plain = [...types].filter((type) => type !== "null" && type !== "array");
  return plain.length > 0 ? new Set(plain) : types;
}

export function typeOf(value: unknown): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value as JsonType;
}
