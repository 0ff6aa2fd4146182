import { type JsonObject, typesAbout } from "../keywords.ts";
import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import { FORMATS, INTEGER_FORMATS } from "../validate/formats.ts";
import {
  ANY,
  charactersIn,
  firstRepeated,
  isMultipleOf,
  typeOf,
  typesNamed,
  ValueSet,
} from "../validate/values.ts";

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
  const types = typesAbout(keyword);
  if (check === undefined || (types !== ANY && (types & typeOf(value)) === 0)) return true;
  return check(value as never, node, lenient, (node.schema as JsonObject)[keyword] as never);
}

const enumOf = memoize((node: SchemaNode) => new ValueSet(node.value("enum") as readonly unknown[]));
const constOf = memoize((node: SchemaNode) => new ValueSet([node.value("const")]));

/** The check of one keyword, for values of the types that it is about. */
type Check = (value: never, node: SchemaNode, lenient: boolean, limit: never) => boolean;
type List = readonly unknown[];

const CHECKS: Readonly<Record<string, Check>> = {
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
  maxItems: (value: List, _node, _lenient, limit: number) => value.length <= limit,
  minItems: (value: List, _node, _lenient, limit: number) => value.length >= limit,
  uniqueItems: (value: List) => firstRepeated(value) < 0,
  items: (value: List, { items, tuple }, lenient) =>
    value.every((item, index) => {
      const inner = tuple === undefined ? items : tuple[index];
      return inner === undefined || matches(inner, item, lenient);
    }),
  additionalItems: (value: List, { tuple = [], additionalItems }, lenient) =>
    value.slice(tuple.length).every((item) => matches(additionalItems!, item, lenient)),
  contains: (value: List, { contains }, lenient) => value.some((item) => matches(contains!, item, lenient)),
  maxProperties: (value: JsonObject, _node, _lenient, limit: number) => Object.keys(value).length <= limit,
  minProperties: (value: JsonObject, _node, _lenient, limit: number) => Object.keys(value).length >= limit,
  required: (value: JsonObject, { required }) => required.every((name) => Object.hasOwn(value, name)),
  properties: (value: JsonObject, { properties }, lenient) =>
    Object.entries(value).every(([name, member]) => {
      const inner = properties.get(name);
      return inner === undefined || matches(inner, member, lenient);
    }),
  patternProperties: (value: JsonObject, node, lenient) =>
    Object.entries(value).every(([name, member]) =>
      node.patternNodes(name).every((inner) => matches(inner, member, lenient)),
    ),
  additionalProperties: (value: JsonObject, node, lenient) => {
    const inner = node.additionalProperties!;
    if (lenient && inner.allowsNone) return true;
    return Object.entries(value).every(
      ([name, member]) =>
        node.properties.has(name) || node.patternNodes(name).length > 0 || matches(inner, member, lenient),
    );
  },
  propertyNames: (value: JsonObject, { propertyNames }, lenient) =>
    Object.keys(value).every((name) => matches(propertyNames!, name, lenient)),
  dependencies: (value: JsonObject, { dependentNames, dependentSchemas }, lenient) => {
    const has = (name: string): boolean => Object.hasOwn(value, name);
    return (
      [...dependentNames].every(([name, needed]) => !has(name) || needed.every(has)) &&
      [...dependentSchemas].every(([name, inner]) => !has(name) || matches(inner, value, lenient))
    );
  },
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

/** In characters. */
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
