import { type JsonObject, typesAbout } from "../keywords.ts";
import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import { FORMATS, INTEGER_FORMATS } from "./formats.ts";
import {
  ANY,
  charactersIn,
  firstRepeated,
  isMultipleOf,
  namesOf,
  typeOf,
  typesNamed,
  ValueSet,
} from "./values.ts";

/**
 * Whether a value conforms. The same verdict as the compiled schema's, without compiling, which takes longer than a
 * comparison; a test holds the two together.
 * @param lenient as a consumer that passes over members it does not know: `additionalProperties: false` refuses nothing,
 * except where it is turned around (inside `not`, the condition of an `if`, the other branches of a `oneOf`)
 */
export function matches(node: SchemaNode, value: unknown, lenient = false): boolean {
  spend(1);
  if (typeof node.schema === "boolean") return node.schema;
  if (node.target !== undefined) return matches(node.target, value, lenient);
  return node.keywords.every((keyword) => matchesKeyword(node, keyword, value, lenient));
}

/** Whether one keyword of the schema has nothing against the value. */
export function matchesKeyword(node: SchemaNode, keyword: string, value: unknown, lenient = false): boolean {
  spend(1);
  const check = CHECKS[keyword];
  if (check === undefined || !isAbout(keyword, value)) return true;
  return check(value as never, node, lenient, (node.schema as JsonObject)[keyword] as never);
}

/** Whether the keyword can refuse values of this type. */
export function isAbout(keyword: string, value: unknown): boolean {
  const types = typesAbout(keyword);
  return types === ANY || (types & typeOf(value)) !== 0;
}

const enumOf = memoize((node: SchemaNode) => new ValueSet(node.value("enum") as readonly unknown[]));
const constOf = memoize((node: SchemaNode) => new ValueSet([node.value("const")]));

/** The check of one keyword, for values of the types that it is about. */
type KeywordCheck = (value: never, node: SchemaNode, lenient: boolean, limit: never) => boolean;

const CHECKS: Readonly<Record<string, KeywordCheck>> = {
  type: (value: unknown, _node, _lenient, type: unknown) => (typeOf(value) & typesNamed(type)) !== 0,
  enum: (value: unknown, node) => enumOf(node).has(value),
  const: (value: unknown, node) => constOf(node).has(value),
  multipleOf: (value: number, _node, _lenient, factor: number) => isMultipleOf(value, factor),
  maximum: (value: number, _node, _lenient, limit: number) => value <= limit,
  exclusiveMaximum: (value: number, _node, _lenient, limit: number) => value < limit,
  minimum: (value: number, _node, _lenient, limit: number) => value >= limit,
  exclusiveMinimum: (value: number, _node, _lenient, limit: number) => value > limit,
  maxLength: (value: string, _node, _lenient, limit: number) => lengthOf(value) <= limit,
  minLength: (value: string, _node, _lenient, limit: number) => lengthOf(value) >= limit,
  pattern: (value: string, node, _lenient, pattern: string) => node.matchesPattern(pattern, value),
  format: (value: unknown, _node, _lenient, format: string) => matchesFormat(value, format),
  maxItems: (value: readonly unknown[], _node, _lenient, limit: number) => value.length <= limit,
  minItems: (value: readonly unknown[], _node, _lenient, limit: number) => value.length >= limit,
  uniqueItems: (value: readonly unknown[]) => firstRepeated(value) < 0,
  items: (value: readonly unknown[], { items, tuple }, lenient) =>
    tuple === undefined
      ? value.every((item) => matches(items!, item, lenient))
      : tuple.every((inner, index) => index >= value.length || matches(inner, value[index], lenient)),
  additionalItems: (value: readonly unknown[], { tuple = [], additionalItems }, lenient) =>
    value.slice(tuple.length).every((item) => matches(additionalItems!, item, lenient)),
  contains: (value: readonly unknown[], { contains }, lenient) =>
    value.some((item) => matches(contains!, item, lenient)),
  maxProperties: (value: JsonObject, _node, _lenient, limit: number) => namesOf(value).length <= limit,
  minProperties: (value: JsonObject, _node, _lenient, limit: number) => namesOf(value).length >= limit,
  required: (value: JsonObject, { required }) => required.every((name) => has(value, name)),
  properties: (value: JsonObject, { properties }, lenient) =>
    namesOf(value).every((name) => {
      spend(1);
      const inner = properties.get(name);
      return inner === undefined || matches(inner, value[name], lenient);
    }),
  patternProperties: (value: JsonObject, node, lenient) =>
    namesOf(value).every((name) =>
      node.patternNodes(name).every((inner) => matches(inner, value[name], lenient)),
    ),
  additionalProperties: (value: JsonObject, node, lenient) => {
    const inner = node.additionalProperties!;
    if (lenient && inner.allowsNone) return true;
    return namesOf(value).every((name) => isListed(node, name) || matches(inner, value[name], lenient));
  },
  propertyNames: (value: JsonObject, { propertyNames }, lenient) =>
    namesOf(value).every((name) => matches(propertyNames!, name, lenient)),
  dependencies: (value: JsonObject, { dependentNames, dependentSchemas }, lenient) =>
    [...dependentNames].every(
      ([name, needed]) => !has(value, name) || needed.every((other) => has(value, other)),
    ) && [...dependentSchemas].every(([name, inner]) => !has(value, name) || matches(inner, value, lenient)),
  allOf: (value, { allOf }, lenient) => allOf.every((inner) => matches(inner, value, lenient)),
  anyOf: (value, { anyOf }, lenient) => anyOf.some((inner) => matches(inner, value, lenient)),
  oneOf: (value, { oneOf }, lenient) =>
    oneOf.some(
      (inner) =>
        matches(inner, value, lenient) && oneOf.every((other) => other === inner || !matches(other, value)),
    ),
  not: (value, { not }) => !matches(not!, value),
  if: (value, node, lenient) => {
    const next = matches(node.if!, value) ? node.then : node.else;
    return next === undefined || matches(next, value, lenient);
  },
};

/** Whether an object has a member of its own of that name. */
export function has(value: JsonObject, name: string): boolean {
  spend(1);
  return Object.hasOwn(value, name);
}

/** Whether a schema says something of members of that name, beside `additionalProperties`. */
export function isListed(node: SchemaNode, name: string): boolean {
  spend(1);
  return node.properties.has(name) || node.patternNodes(name).length > 0;
}

/** The length of a text in characters. */
export function lengthOf(value: string): number {
  const length = charactersIn(value);
  spend(length >> 4);
  return length;
}

export function matchesFormat(value: unknown, name: string): boolean {
  const range = INTEGER_FORMATS.get(name);
  if (range !== undefined) {
    return typeof value !== "number" || (Number.isInteger(value) && value >= range[0] && value <= range[1]);
  }
  const format = FORMATS[name] as ((text: string) => boolean) | undefined;
  return format === undefined || typeof value !== "string" || format(value);
}
