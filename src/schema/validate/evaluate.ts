import { type JsonObject, typesAbout } from "../keywords.ts";
import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import { FORMATS } from "./formats.ts";
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
 * Looks at a value by a schema inside another: at a member or an item, by its step, or at the same value. Answers whether to
 * go on.
 */
export type Visit = (inner: SchemaNode, value: unknown, step?: string | number) => boolean;

/**
 * Whether a value conforms. It walks the schema, and counts a step for each schema and each keyword.
 * @param lenient as a consumer that passes over members it does not know: `additionalProperties: false` refuses nothing,
 * except where it is turned around (inside `not`, the condition of an `if`, the other branches of a `oneOf`)
 */
export function matches(node: SchemaNode, value: unknown, lenient = false): boolean {
  return lenient ? leniently(node, value) : strictly(node, value);
}

const strictly: Visit = (node, value) => conforms(node, value, strictly);
const leniently: Visit = (node, value) => conforms(node, value, leniently);

function conforms(start: SchemaNode, value: unknown, visit: Visit): boolean {
  const node = start.resolved;
  if (typeof node.schema === "boolean") {
    spend(1);
    return node.schema;
  }
  const checks = checksOf(node);
  spend(1 + checks.length);
  const type = typeOf(value);
  for (const { types, check, limit } of checks) {
    const isAboutIt = types === ANY || (types & type) !== 0;
    if (isAboutIt && !check(value as never, node, visit, limit as never)) return false;
  }
  return true;
}

/** What each keyword of a schema checks, at hand for the next value. */
const checksOf = memoize((node: SchemaNode) =>
  node.keywords.map((keyword) => ({
    types: typesAbout(keyword),
    check: CHECKS[keyword]!,
    limit: (node.schema as JsonObject)[keyword],
  })),
);

/** Whether one keyword of the schema has nothing against the value. */
export function matchesKeyword(node: SchemaNode, keyword: string, value: unknown, lenient = false): boolean {
  return visitInside(node, keyword, value, lenient ? leniently : strictly);
}

/** Checks a value by one keyword, and by the schemas inside that as they are visited. */
export function visitInside(node: SchemaNode, keyword: string, value: unknown, visit: Visit): boolean {
  spend(1);
  const check = CHECKS[keyword];
  if (check === undefined || !isAbout(keyword, value)) return true;
  return check(value as never, node, visit, (node.schema as JsonObject)[keyword] as never);
}

/** Whether the keyword can refuse values of this type. */
export function isAbout(keyword: string, value: unknown): boolean {
  const types = typesAbout(keyword);
  return types === ANY || (types & typeOf(value)) !== 0;
}

const enumOf = memoize((node: SchemaNode) => new ValueSet(node.value("enum") as readonly unknown[]));
const constOf = memoize((node: SchemaNode) => new ValueSet([node.value("const")]));

/** The check of one keyword, for values of the types that it is about. */
type KeywordCheck = (value: never, node: SchemaNode, visit: Visit, limit: never) => boolean;

const CHECKS: Readonly<Record<string, KeywordCheck>> = {
  type: (value: unknown, _node, _visit, type: unknown) => (typeOf(value) & typesNamed(type)) !== 0,
  enum: (value: unknown, node) => enumOf(node).has(value),
  const: (value: unknown, node) => constOf(node).has(value),
  multipleOf: (value: number, _node, _visit, factor: number) => isMultipleOf(value, factor),
  maximum: (value: number, _node, _visit, limit: number) => value <= limit,
  exclusiveMaximum: (value: number, _node, _visit, limit: number) => value < limit,
  minimum: (value: number, _node, _visit, limit: number) => value >= limit,
  exclusiveMinimum: (value: number, _node, _visit, limit: number) => value > limit,
  // A text has at least half as many characters as UTF-16 units and at most as many, so they are seldom counted.
  maxLength: (value: string, _node, _visit, limit: number) =>
    value.length <= limit || (value.length <= 2 * limit && lengthOf(value) <= limit),
  minLength: (value: string, _node, _visit, limit: number) =>
    value.length >= limit && (value.length >= 2 * limit || lengthOf(value) >= limit),
  pattern: (value: string, node, _visit, pattern: string) => node.matchesPattern(pattern, value),
  format: (value: unknown, _node, _visit, format: string) => matchesFormat(value, format),
  maxItems: (value: readonly unknown[], _node, _visit, limit: number) => value.length <= limit,
  minItems: (value: readonly unknown[], _node, _visit, limit: number) => value.length >= limit,
  uniqueItems: (value: readonly unknown[]) => firstRepeated(value) < 0,
  items: (value: readonly unknown[], { items, tuple }, visit) =>
    tuple === undefined
      ? value.every((item, index) => visit(items!, item, index))
      : tuple.slice(0, value.length).every((inner, index) => visit(inner, value[index], index)),
  additionalItems: (value: readonly unknown[], { tuple = [], additionalItems }, visit) =>
    value.slice(tuple.length).every((item, index) => visit(additionalItems!, item, tuple.length + index)),
  contains: (value: readonly unknown[], { contains }, visit) => value.some((item) => visit(contains!, item)),
  maxProperties: (value: JsonObject, _node, _visit, limit: number) => namesOf(value).length <= limit,
  minProperties: (value: JsonObject, _node, _visit, limit: number) => namesOf(value).length >= limit,
  required: (value: JsonObject, { required }) => required.every((name) => has(value, name)),
  properties: (value: JsonObject, { properties }, visit) =>
    namesOf(value).every((name) => {
      spend(1);
      const inner = properties.get(name);
      return inner === undefined || visit(inner, value[name], name);
    }),
  patternProperties: (value: JsonObject, node, visit) =>
    namesOf(value).every((name) => node.patternNodes(name).every((inner) => visit(inner, value[name], name))),
  additionalProperties: (value: JsonObject, node, visit) => {
    const inner = node.additionalProperties!;
    if (visit === leniently && inner.allowsNone) return true;
    return namesOf(value).every((name) => isListed(node, name) || visit(inner, value[name], name));
  },
  propertyNames: (value: JsonObject, { propertyNames }, visit) =>
    namesOf(value).every((name) => visit(propertyNames!, name)),
  dependencies(value: JsonObject, { dependentNames, dependentSchemas }, visit) {
    // A copy of them would take longer than the steps that are counted.
    for (const [name, inner] of dependentSchemas) {
      if (has(value, name) && !visit(inner, value)) return false;
    }
    for (const [name, needed] of dependentNames) {
      if (has(value, name) && !needed.every((other) => has(value, other))) return false;
    }
    return true;
  },
  allOf: (value, { allOf }, visit) => allOf.every((inner) => visit(inner, value)),
  anyOf: (value, { anyOf }, visit) => anyOf.some((inner) => visit(inner, value)),
  oneOf: (value, { oneOf }, visit) =>
    oneOf.some(
      (inner) => visit(inner, value) && oneOf.every((other) => other === inner || !matches(other, value)),
    ),
  not: (value, { not }) => !matches(not!, value),
  if: (value, node, visit) => {
    const next = matches(node.if!, value) ? node.then : node.else;
    return next === undefined || visit(next, value);
  },
};

/** Whether an object has a member of its own of that name. */
export function has(value: JsonObject, name: string): boolean {
  spend(1);
  return Object.hasOwn(value, name);
}

/** Whether a schema says something of members of that name, beside `additionalProperties`. */
function isListed(node: SchemaNode, name: string): boolean {
  spend(1);
  return node.properties.has(name) || node.patternNodes(name).length > 0;
}

/** The length of a text in characters. */
export function lengthOf(value: string): number {
  const length = charactersIn(value);
  spend(length >> 3);
  return length;
}

export function matchesFormat(value: unknown, name: string): boolean {
  const format = FORMATS[name];
  if (typeof format === "function") return typeof value !== "string" || format(value);
  return format === undefined || typeof value !== "number" || format.validate(value);
}
