import { isObject, type JsonObject } from "../keywords.ts";
import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import { FORMATS, INTEGER_FORMATS } from "../validate/formats.ts";
import {
  charactersIn,
  firstRepeated,
  isMultipleOf,
  sameValue,
  typeOf,
  typesNamed,
  ValueSet,
} from "../validate/values.ts";
import { branchesOf } from "./unions.ts";

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
  return check === undefined || check(value, node, lenient, (node.schema as JsonObject)[keyword]);
}

const enumOf = memoize((node: SchemaNode) => new ValueSet(node.value("enum") as readonly unknown[]));

type Check = (value: unknown, node: SchemaNode, lenient: boolean, limit: unknown) => boolean;

const number =
  (holds: (value: number, limit: number) => boolean): Check =>
  (value, _shape, _lenient, limit) =>
    typeof value !== "number" || !Number.isFinite(value) || holds(value, limit as number);
const text =
  (holds: (value: string, node: SchemaNode, limit: unknown) => boolean): Check =>
  (value, node, _lenient, limit) =>
    typeof value !== "string" || holds(value, node, limit);
const list =
  (
    holds: (value: readonly unknown[], node: SchemaNode, lenient: boolean, limit: unknown) => boolean,
  ): Check =>
  (value, node, lenient, limit) =>
    !Array.isArray(value) || holds(value, node, lenient, limit);
const object =
  (holds: (value: JsonObject, node: SchemaNode, lenient: boolean, limit: unknown) => boolean): Check =>
  (value, node, lenient, limit) =>
    !isObject(value) || holds(value, node, lenient, limit);

const CHECKS: Readonly<Record<string, Check>> = {
  type: (value, _shape, _lenient, type) => (typeOf(value) & typesNamed(type)) !== 0,
  enum: (value, node) => enumOf(node).has(value),
  const: (value, _shape, _lenient, only) => sameValue(value, only),
  multipleOf: number((value, factor) => isMultipleOf(value, factor)),
  maximum: number((value, limit) => value <= limit),
  exclusiveMaximum: number((value, limit) => value < limit),
  minimum: number((value, limit) => value >= limit),
  exclusiveMinimum: number((value, limit) => value > limit),
  maxLength: text((value, _shape, limit) => lengthOf(value) <= (limit as number)),
  minLength: text((value, _shape, limit) => lengthOf(value) >= (limit as number)),
  pattern: text((value, node, pattern) => node.matchesPattern(pattern as string, value)),
  format: (value, _shape, _lenient, format) => matchesFormat(value, String(format)),
  maxItems: list((value, _shape, _lenient, limit) => value.length <= (limit as number)),
  minItems: list((value, _shape, _lenient, limit) => value.length >= (limit as number)),
  uniqueItems: list((value) => firstRepeated(value) < 0),
  items: list((value, node, lenient) =>
    value.every((item, index) => {
      const inner = node.tuple === undefined ? node.items : node.tuple[index];
      return inner === undefined || matches(inner, item, lenient);
    }),
  ),
  additionalItems: list((value, node, lenient) =>
    value.every(
      (item, index) =>
        index < (node.tuple?.length ?? value.length) || matches(node.itemNode(index)!, item, lenient),
    ),
  ),
  contains: list((value, node, lenient) => value.some((item) => matches(node.contains!, item, lenient))),
  maxProperties: object((value, _shape, _lenient, limit) => Object.keys(value).length <= (limit as number)),
  minProperties: object((value, _shape, _lenient, limit) => Object.keys(value).length >= (limit as number)),
  required: object((value, node) => node.required.every((name) => Object.hasOwn(value, name))),
  properties: object((value, node, lenient) =>
    Object.entries(value).every(([name, member]) => {
      const inner = node.properties.get(name);
      return inner === undefined || matches(inner, member, lenient);
    }),
  ),
  patternProperties: object((value, node, lenient) =>
    Object.entries(value).every(([name, member]) =>
      [...node.patternProperties].every(
        ([pattern, inner]) => !node.matchesPattern(pattern, name) || matches(inner, member, lenient),
      ),
    ),
  ),
  additionalProperties: object((value, node, lenient) => {
    const inner = node.additionalProperties!;
    if (lenient && inner.allowsNone) return true;
    return Object.entries(value).every(
      ([name, member]) =>
        node.properties.has(name) || node.hasPatternFor(name) || matches(inner, member, lenient),
    );
  }),
  propertyNames: object((value, node, lenient) =>
    Object.keys(value).every((name) => matches(node.propertyNames!, name, lenient)),
  ),
  dependencies: object((value, { dependentNames, dependentSchemas }, lenient) => {
    const has = (name: string): boolean => Object.hasOwn(value, name);
    return (
      [...dependentNames].every(([name, needed]) => !has(name) || needed.every(has)) &&
      [...dependentSchemas].every(([name, inner]) => !has(name) || matches(inner, value, lenient))
    );
  }),
  allOf: (value, node, lenient) => node.allOf.every((inner) => matches(inner, value, lenient)),
  anyOf: (value, node, lenient) =>
    branchesOf(node, "anyOf")
      .forValue(value)
      .some((inner) => matches(inner, value, lenient)),
  oneOf: (value, node, lenient) => {
    const branches = branchesOf(node, "oneOf").forValue(value);
    return branches.some(
      (inner) =>
        matches(inner, value, lenient) &&
        branches.every((other) => other === inner || !matches(other, value)),
    );
  },
  not: (value, node) => !matches(node.not!, value),
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
  const format = FORMATS[name];
  if (format === undefined || format instanceof RegExp) return true;
  if (INTEGER_FORMATS.has(name)) {
    if (typeof value !== "number" || !Number.isFinite(value)) return true;
    return (format as { validate(number: number): boolean }).validate(value);
  }
  if (typeof value !== "string") return true;
  return (format as (text: string) => boolean)(value);
}
