import { isObject, type JsonObject } from "../keywords.ts";
import { spend } from "../limits.ts";
import { FORMATS, INTEGER_FORMATS } from "../validate/formats.ts";
import { firstRepeated, isMultipleOf, sameValue, typeOf, typesNamed, ValueSet } from "../validate/values.ts";
import type { SchemaNode } from "../node.ts";
import { branchesOf } from "./unions.ts";

/**
 * Whether a value conforms. The same verdict as the compiled schema's, without compiling, which takes longer than a
 * comparison; a test holds the two together.
 * @param lenient as a consumer that passes over members it does not know: `additionalProperties: false` refuses nothing,
 * except where it is turned around (inside `not`, the condition of an `if`, the other branches of a `oneOf`)
 */
export function accepts(shape: SchemaNode, value: unknown, lenient = false): boolean {
  spend(1);
  if (typeof shape.schema === "boolean") return shape.schema;
  if (shape.target !== undefined) return accepts(shape.target, value, lenient);
  return shape.keywords.every((keyword) => acceptsKeyword(shape, keyword, value, lenient));
}

/** Whether one keyword of the schema has nothing against the value. */
export function acceptsKeyword(shape: SchemaNode, keyword: string, value: unknown, lenient = false): boolean {
  spend(1);
  const check = CHECKS[keyword];
  return check === undefined || check(value, shape, lenient, (shape.schema as JsonObject)[keyword]);
}

const valueSets = new WeakMap<SchemaNode, ValueSet>();

function allowedBy(node: SchemaNode, values: readonly unknown[]): ValueSet {
  let set = valueSets.get(node);
  if (set === undefined) valueSets.set(node, (set = new ValueSet(values)));
  return set;
}

type Check = (value: unknown, shape: SchemaNode, lenient: boolean, limit: unknown) => boolean;

const number =
  (holds: (value: number, limit: number) => boolean): Check =>
  (value, _shape, _lenient, limit) =>
    typeof value !== "number" || !Number.isFinite(value) || holds(value, limit as number);
const text =
  (holds: (value: string, shape: SchemaNode, limit: unknown) => boolean): Check =>
  (value, shape, _lenient, limit) =>
    typeof value !== "string" || holds(value, shape, limit);
const list =
  (
    holds: (value: readonly unknown[], shape: SchemaNode, lenient: boolean, limit: unknown) => boolean,
  ): Check =>
  (value, shape, lenient, limit) =>
    !Array.isArray(value) || holds(value, shape, lenient, limit);
const object =
  (holds: (value: JsonObject, shape: SchemaNode, lenient: boolean, limit: unknown) => boolean): Check =>
  (value, shape, lenient, limit) =>
    !isObject(value) || holds(value, shape, lenient, limit);

const CHECKS: Readonly<Record<string, Check>> = {
  type: (value, _shape, _lenient, type) => (typeOf(value) & typesNamed(type)) !== 0,
  enum: (value, shape, _lenient, values) => allowedBy(shape, values as unknown[]).has(value),
  const: (value, _shape, _lenient, only) => sameValue(value, only),
  multipleOf: number((value, factor) => isMultipleOf(value, factor)),
  maximum: number((value, limit) => value <= limit),
  exclusiveMaximum: number((value, limit) => value < limit),
  minimum: number((value, limit) => value >= limit),
  exclusiveMinimum: number((value, limit) => value > limit),
  maxLength: text((value, _shape, limit) => lengthOf(value) <= (limit as number)),
  minLength: text((value, _shape, limit) => lengthOf(value) >= (limit as number)),
  pattern: text((value, shape, pattern) => shape.matchesPattern(pattern as string, value)),
  format: (value, _shape, _lenient, format) => acceptsFormat(value, String(format)),
  maxItems: list((value, _shape, _lenient, limit) => value.length <= (limit as number)),
  minItems: list((value, _shape, _lenient, limit) => value.length >= (limit as number)),
  uniqueItems: list((value) => firstRepeated(value) < 0),
  items: list((value, shape, lenient) =>
    value.every((item, index) => {
      const inner = shape.tuple === undefined ? shape.items : shape.tuple[index];
      return inner === undefined || accepts(inner, item, lenient);
    }),
  ),
  additionalItems: list((value, shape, lenient) =>
    value.every(
      (item, index) =>
        index < (shape.tuple?.length ?? value.length) || accepts(shape.itemNode(index)!, item, lenient),
    ),
  ),
  contains: list((value, shape, lenient) => value.some((item) => accepts(shape.contains!, item, lenient))),
  maxProperties: object((value, _shape, _lenient, limit) => Object.keys(value).length <= (limit as number)),
  minProperties: object((value, _shape, _lenient, limit) => Object.keys(value).length >= (limit as number)),
  required: object((value, shape) => shape.required.every((name) => Object.hasOwn(value, name))),
  properties: object((value, shape, lenient) =>
    Object.entries(value).every(([name, member]) => {
      const inner = shape.properties.get(name);
      return inner === undefined || accepts(inner, member, lenient);
    }),
  ),
  patternProperties: object((value, shape, lenient) =>
    Object.entries(value).every(([name, member]) =>
      [...shape.patternProperties].every(
        ([pattern, inner]) => !shape.matchesPattern(pattern, name) || accepts(inner, member, lenient),
      ),
    ),
  ),
  additionalProperties: object((value, shape, lenient) => {
    const inner = shape.additionalProperties!;
    if (lenient && inner.allowsNone) return true;
    return Object.entries(value).every(
      ([name, member]) =>
        shape.properties.has(name) || shape.hasPatternFor(name) || accepts(inner, member, lenient),
    );
  }),
  propertyNames: object((value, shape, lenient) =>
    Object.keys(value).every((name) => accepts(shape.propertyNames!, name, lenient)),
  ),
  dependencies: object((value, { dependentNames, dependentSchemas }, lenient) => {
    const has = (name: string): boolean => Object.hasOwn(value, name);
    return (
      [...dependentNames].every(([name, needed]) => !has(name) || needed.every(has)) &&
      [...dependentSchemas].every(([name, inner]) => !has(name) || accepts(inner, value, lenient))
    );
  }),
  allOf: (value, shape, lenient) => shape.allOf.every((inner) => accepts(inner, value, lenient)),
  anyOf: (value, shape, lenient) =>
    branchesOf(shape, "anyOf")
      .forValue(value)
      .some((inner) => accepts(inner, value, lenient)),
  oneOf: (value, shape, lenient) => {
    const branches = branchesOf(shape, "oneOf").forValue(value);
    return branches.some(
      (inner) =>
        accepts(inner, value, lenient) &&
        branches.every((other) => other === inner || !accepts(other, value)),
    );
  },
  not: (value, shape) => !accepts(shape.not!, value),
  if: (value, shape, lenient) => {
    const next = accepts(shape.if!, value) ? shape.then : shape.else;
    return next === undefined || accepts(next, value, lenient);
  },
};

/** In characters, as draft-07 counts: one outside the basic plane is one. */
export function lengthOf(value: string): number {
  let length = 0;
  for (const _ of value) length++;
  spend(length >> 4);
  return length;
}

export function acceptsFormat(value: unknown, name: string): boolean {
  const format = FORMATS[name];
  if (format === undefined || format instanceof RegExp) return true;
  if (INTEGER_FORMATS.has(name)) {
    if (typeof value !== "number" || !Number.isFinite(value)) return true;
    return (format as { validate(number: number): boolean }).validate(value);
  }
  if (typeof value !== "string") return true;
  return (format as (text: string) => boolean)(value);
}
