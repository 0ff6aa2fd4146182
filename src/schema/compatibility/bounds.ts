import type { JsonObject } from "../keywords.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { isMultipleOf, NUMBER, TYPE, typeOf } from "../validate/values.ts";
import type { Conjunction } from "./conjunction.ts";
import { matches } from "./evaluate.ts";
import { finiteValuesOf, smallest } from "./unions.ts";

interface Bound {
  readonly value: number;
  readonly exclusive: boolean;
}

/** What the schemas of a conjunction say together about its values. */
export interface Bounds {
  /** Types a value may have, without those that plainly none can have. */
  readonly types: number;
  /** All its values, where they are finite. */
  readonly values: readonly unknown[] | undefined;
  readonly lower: Bound;
  readonly upper: Bound;
  readonly factors: readonly number[];
  readonly minLength: number;
  readonly maxLength: number;
  readonly patterns: readonly string[];
  readonly formats: readonly string[];
  readonly minItems: number;
  readonly maxItems: number;
  readonly unique: boolean;
  readonly minProperties: number;
  readonly maxProperties: number;
  readonly required: ReadonlySet<string>;
}

/** Up to so many integers between two bounds are enumerated. */
const MAX_ENUMERATED_INTEGERS = 24;

export const boundsOf = memoize(gatherBounds);

/** Whether a value belongs to the conjunction. */
export function containsValue(one: Conjunction, value: unknown): boolean {
  return (
    (typeOf(value) & one.types) !== 0 &&
    one.nodes.every((node) => matches(node, value)) &&
    !one.negated.some((node) => matches(node, value)) &&
    (typeOf(value) !== TYPE.object ||
      (one.present.every((name) => Object.hasOwn(value as object, name)) &&
        !one.absent.some((name) => Object.hasOwn(value as object, name))))
  );
}

/** Whether a number is within the bounds. */
export function containsNumber({ types, lower, upper, factors }: Bounds, value: number): boolean {
  return (
    (typeOf(value) & types) !== 0 &&
    (lower.exclusive ? value > lower.value : value >= lower.value) &&
    (upper.exclusive ? value < upper.value : value <= upper.value) &&
    factors.every((factor) => isMultipleOf(value, factor))
  );
}

function gatherBounds(one: Conjunction): Bounds {
  const bounds = {
    lower: { value: -Infinity, exclusive: false },
    upper: { value: Infinity, exclusive: false },
    factors: [] as number[],
    minLength: 0,
    maxLength: Infinity,
    patterns: [] as string[],
    formats: [] as string[],
    minItems: 0,
    maxItems: Infinity,
    unique: false,
    minProperties: 0,
    maxProperties: Infinity,
    required: new Set(one.present),
  };
  for (const node of one.nodes) {
    for (const keyword of node.keywords) addKeyword(bounds, node, keyword);
  }
  bounds.minProperties = Math.max(bounds.minProperties, bounds.required.size);
  const types = one.types & ~impossibleTypes(one, bounds);
  return { ...bounds, types, values: finiteValues(one, types, bounds) };
}

function addKeyword(bounds: Gathered, node: SchemaNode, keyword: string): void {
  const limit = (node.schema as JsonObject)[keyword];
  switch (keyword) {
    case "minimum":
    case "exclusiveMinimum":
      bounds.lower = tighter(bounds.lower, limit as number, keyword !== "minimum", 1);
      return;
    case "maximum":
    case "exclusiveMaximum":
      bounds.upper = tighter(bounds.upper, limit as number, keyword !== "maximum", -1);
      return;
    case "multipleOf":
      bounds.factors.push(limit as number);
      return;
    case "minLength":
    case "minItems":
    case "minProperties":
      bounds[keyword] = Math.max(bounds[keyword], limit as number);
      return;
    case "maxLength":
    case "maxItems":
    case "maxProperties":
      bounds[keyword] = Math.min(bounds[keyword], limit as number);
      return;
    case "pattern":
      bounds.patterns.push(limit as string);
      return;
    case "format": {
      bounds.formats.push(limit as string);
      const range = INTEGER_FORMATS.get(limit as string);
      if (range === undefined) return;
      bounds.lower = tighter(bounds.lower, range[0], false, 1);
      bounds.upper = tighter(bounds.upper, range[1], false, -1);
      bounds.factors.push(1);
      return;
    }
    case "uniqueItems":
      bounds.unique = true;
      return;
    case "contains":
      bounds.minItems = Math.max(bounds.minItems, 1);
      return;
    case "items":
      if (node.items?.allowsNone === true) bounds.maxItems = 0;
      return;
    case "additionalItems":
      if (node.additionalItems?.allowsNone === true) {
        bounds.maxItems = Math.min(bounds.maxItems, node.tuple!.length);
      }
      return;
    case "additionalProperties":
      if (node.additionalProperties?.allowsNone === true && node.patternProperties.size === 0) {
        bounds.maxProperties = Math.min(bounds.maxProperties, node.properties.size);
      }
      return;
    case "required":
      for (const name of node.required) bounds.required.add(name);
      return;
    default:
  }
}

function tighter(bound: Bound, value: number, exclusive: boolean, sign: 1 | -1): Bound {
  if (value === bound.value) return { value, exclusive: exclusive || bound.exclusive };
  return (value - bound.value) * sign > 0 ? { value, exclusive } : bound;
}

type Gathered = {
  -readonly [K in keyof Limits]: Limits[K] extends readonly (infer T)[] ? T[] : Limits[K];
} & {
  required: Set<string>;
};

type Limits = Omit<Bounds, "types" | "values">;

function impossibleTypes(one: Conjunction, bounds: Limits): number {
  const { lower, upper, factors } = bounds;
  let none = 0;
  const [first, last] = integerRange(bounds);
  if (first > last) none |= TYPE.integer;
  if (lower.value > upper.value || (lower.value === upper.value && (lower.exclusive || upper.exclusive))) {
    none |= NUMBER;
  }
  // A fraction is no multiple of a whole number.
  if (factors.some(Number.isInteger)) none |= TYPE.fraction;
  if (bounds.minLength > bounds.maxLength) none |= TYPE.string;
  if (bounds.minItems > bounds.maxItems) none |= TYPE.array;
  const contradicts = one.absent.some((name) => bounds.required.has(name));
  if (bounds.minProperties > bounds.maxProperties || contradicts) none |= TYPE.object;
  return none;
}

/** The first and the last integer between the bounds. */
export function integerRange({ lower, upper }: Pick<Bounds, "lower" | "upper">): [number, number] {
  const first = Math.ceil(lower.value);
  const last = Math.floor(upper.value);
  return [
    lower.exclusive && first === lower.value ? first + 1 : first,
    upper.exclusive && last === upper.value ? last - 1 : last,
  ];
}

function finiteValues(one: Conjunction, types: number, bounds: Limits): unknown[] | undefined {
  const listed = smallest(one.nodes.map(finiteValuesOf));
  const values = listed === undefined ? enumerated(types, bounds) : [...listed.values()];
  return values?.filter((value) => (typeOf(value) & types) !== 0 && containsValue(one, value));
}

/** All values of these types, where they are few. */
function enumerated(types: number, bounds: Limits): unknown[] | undefined {
  const values: unknown[] = [];
  if ((types & TYPE.null) !== 0) values.push(null);
  if ((types & TYPE.boolean) !== 0) values.push(false, true);
  const more = types & ~(TYPE.null | TYPE.boolean);
  if (more === 0) return values;
  const { lower, upper } = bounds;
  // Equal bounds leave one number, integer or not.
  if ((more & ~NUMBER) === 0 && lower.value === upper.value) return [...values, lower.value];
  const [first, last] = integerRange(bounds);
  if (more !== TYPE.integer || last - first >= MAX_ENUMERATED_INTEGERS || !Number.isSafeInteger(last))
    return undefined;
  for (let value = first; value <= last; value++) {
    if (bounds.factors.every((factor) => isMultipleOf(value, factor))) values.push(value);
  }
  return values;
}
