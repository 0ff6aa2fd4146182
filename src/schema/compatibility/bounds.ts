import type { JsonObject } from "../keywords.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { isMultipleOf, NUMBER, TYPE, typeOf } from "../validate/values.ts";
import type { Conjunction } from "./conjunction.ts";
import { matches } from "../validate/evaluate.ts";
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
  const limits = gatherLimits(one);
  const types = one.types & ~impossibleTypes(one, limits);
  return { ...limits, types, values: finiteValues(one, types, limits) };
}

type Limits = Omit<Bounds, "types" | "values">;

function gatherLimits({ nodes, present }: Conjunction): Limits {
  const values = new Map<string, unknown[]>();
  for (const node of nodes) {
    for (const keyword of node.keywords) {
      const value = (node.schema as JsonObject)[keyword];
      const list = values.get(keyword);
      if (list === undefined) values.set(keyword, [value]);
      else list.push(value);
    }
  }
  const numbers = (keyword: string): number[] => (values.get(keyword) ?? []) as number[];
  const texts = (keyword: string): string[] => (values.get(keyword) ?? []) as string[];
  const required = new Set([...present, ...((values.get("required") ?? []) as string[][]).flat()]);
  const formats = texts("format");
  const ranges = formats.flatMap((format) => {
    const range = INTEGER_FORMATS.get(format);
    return range === undefined ? [] : [range];
  });
  const [above, below] = [numbers("exclusiveMinimum"), numbers("exclusiveMaximum")];
  const lower = Math.max(...numbers("minimum"), ...above, ...ranges.map(([min]) => min));
  const upper = Math.min(...numbers("maximum"), ...below, ...ranges.map(([, max]) => max));
  return {
    lower: { value: lower, exclusive: above.includes(lower) },
    upper: { value: upper, exclusive: below.includes(upper) },
    factors: ranges.length > 0 ? [...numbers("multipleOf"), 1] : numbers("multipleOf"),
    minLength: Math.max(0, ...numbers("minLength")),
    maxLength: Math.min(...numbers("maxLength")),
    patterns: texts("pattern"),
    formats,
    minItems: Math.max(values.has("contains") ? 1 : 0, ...numbers("minItems")),
    maxItems: Math.min(...numbers("maxItems"), ...nodes.map(closedLength)),
    unique: values.has("uniqueItems"),
    minProperties: Math.max(required.size, ...numbers("minProperties")),
    maxProperties: Math.min(...numbers("maxProperties"), ...nodes.map(closedSize)),
    required,
  };
}

/** How many items a schema allows that allows none after its tuple. */
function closedLength({ items, tuple, additionalItems }: SchemaNode): number {
  if (items?.allowsNone === true) return 0;
  return tuple !== undefined && additionalItems?.allowsNone === true ? tuple.length : Infinity;
}

/** How many members a schema allows that allows none it does not list. */
function closedSize({ properties, patternProperties, additionalProperties }: SchemaNode): number {
  return additionalProperties?.allowsNone === true && patternProperties.size === 0
    ? properties.size
    : Infinity;
}

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
  const isOneNumber = (more & ~NUMBER) === 0 && lower.value === upper.value;
  return isOneNumber ? [...values, lower.value] : undefined;
}
