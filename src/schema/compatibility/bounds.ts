import type { JsonObject } from "../keywords.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { isMultipleOf, NUMBER, TYPE, typeOf } from "../validate/values.ts";
import type { Case } from "./conjunction.ts";
import { accepts } from "./evaluate.ts";
import type { SchemaNode } from "../node.ts";
import { type Listed, listedOf } from "./unions.ts";

interface Bound {
  readonly value: number;
  readonly exclusive: boolean;
}

/** What the schemas of a case say together about its values. */
export interface Facts {
  /** Types a value may have; those no value can have in plain sight are left out. */
  readonly types: number;
  /** All its values, where they are few and listed. */
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

/** With at most so many whole numbers between its bounds, a case is the list of them. */
const LISTED_INTEGERS = 24;

const knownFacts = new WeakMap<Case, Facts>();

export function factsOf(one: Case): Facts {
  let facts = knownFacts.get(one);
  if (facts === undefined) knownFacts.set(one, (facts = gather(one)));
  return facts;
}

/** Whether a value is one of the case. */
export function isOf(one: Case, value: unknown): boolean {
  return (
    (typeOf(value) & one.types) !== 0 &&
    one.shapes.every((shape) => accepts(shape, value)) &&
    !one.none.some((shape) => accepts(shape, value)) &&
    (typeOf(value) !== TYPE.object ||
      (one.present.every((name) => Object.hasOwn(value as object, name)) &&
        !one.absent.some((name) => Object.hasOwn(value as object, name))))
  );
}

function gather(one: Case): Facts {
  const facts = {
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
  for (const shape of one.shapes) {
    for (const keyword of shape.keywords) take(facts, shape, keyword);
  }
  facts.minProperties = Math.max(facts.minProperties, facts.required.size);
  const types = one.types & ~impossibleTypes(one, facts);
  return { ...facts, types, values: listed(one, types, facts) };
}

/** Adds what one keyword says. */
function take(facts: Gathered, shape: SchemaNode, keyword: string): void {
  const limit = (shape.schema as JsonObject)[keyword];
  switch (keyword) {
    case "minimum":
    case "exclusiveMinimum":
      facts.lower = tighter(facts.lower, limit as number, keyword !== "minimum", 1);
      return;
    case "maximum":
    case "exclusiveMaximum":
      facts.upper = tighter(facts.upper, limit as number, keyword !== "maximum", -1);
      return;
    case "multipleOf":
      facts.factors.push(limit as number);
      return;
    case "minLength":
    case "minItems":
    case "minProperties":
      facts[keyword] = Math.max(facts[keyword], limit as number);
      return;
    case "maxLength":
    case "maxItems":
    case "maxProperties":
      facts[keyword] = Math.min(facts[keyword], limit as number);
      return;
    case "pattern":
      facts.patterns.push(limit as string);
      return;
    case "format": {
      facts.formats.push(limit as string);
      const range = INTEGER_FORMATS.get(limit as string);
      if (range === undefined) return;
      facts.lower = tighter(facts.lower, range[0], false, 1);
      facts.upper = tighter(facts.upper, range[1], false, -1);
      facts.factors.push(1);
      return;
    }
    case "uniqueItems":
      facts.unique = true;
      return;
    case "contains":
      facts.minItems = Math.max(facts.minItems, 1);
      return;
    case "items":
      if (shape.items?.allowsNone === true) facts.maxItems = 0;
      return;
    case "additionalItems":
      if (shape.additionalItems?.allowsNone === true) {
        facts.maxItems = Math.min(facts.maxItems, shape.tuple!.length);
      }
      return;
    case "additionalProperties":
      if (shape.additionalProperties?.allowsNone === true && shape.patternProperties.size === 0) {
        facts.maxProperties = Math.min(facts.maxProperties, shape.properties.size);
      }
      return;
    case "required":
      for (const name of shape.required) facts.required.add(name);
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

type Limits = Omit<Facts, "types" | "values">;

function impossibleTypes(one: Case, facts: Limits): number {
  const { lower, upper, factors } = facts;
  let none = 0;
  const [first, last] = wholeRange(facts);
  if (first > last) none |= TYPE.integer;
  if (lower.value > upper.value || (lower.value === upper.value && (lower.exclusive || upper.exclusive))) {
    none |= NUMBER;
  }
  // A fraction is no multiple of a whole number.
  if (factors.some(Number.isInteger)) none |= TYPE.fraction;
  if (facts.minLength > facts.maxLength) none |= TYPE.string;
  if (facts.minItems > facts.maxItems) none |= TYPE.array;
  const contradicts = one.absent.some((name) => facts.required.has(name));
  if (facts.minProperties > facts.maxProperties || contradicts) none |= TYPE.object;
  return none;
}

/** The first and the last whole number between the bounds. */
export function wholeRange({ lower, upper }: Pick<Facts, "lower" | "upper">): [number, number] {
  const first = Math.ceil(lower.value);
  const last = Math.floor(upper.value);
  return [
    lower.exclusive && first === lower.value ? first + 1 : first,
    upper.exclusive && last === upper.value ? last - 1 : last,
  ];
}

function listed(one: Case, types: number, facts: Limits): unknown[] | undefined {
  let shortest: Listed | undefined;
  for (const shape of one.shapes) {
    const found = listedOf(shape);
    if (found !== undefined && (shortest === undefined || found.size < shortest.size)) shortest = found;
  }
  const values = shortest === undefined ? plainList(types, facts) : [...shortest.values()];
  return values?.filter((value) => (typeOf(value) & types) !== 0 && isOf(one, value));
}

/** The values of types that have few. */
function plainList(types: number, facts: Limits): unknown[] | undefined {
  const values: unknown[] = [];
  if ((types & TYPE.null) !== 0) values.push(null);
  if ((types & TYPE.boolean) !== 0) values.push(false, true);
  const more = types & ~(TYPE.null | TYPE.boolean);
  if (more === 0) return values;
  const { lower, upper } = facts;
  // Bounds that meet leave one number, whole or not.
  if ((more & ~NUMBER) === 0 && lower.value === upper.value) return [...values, lower.value];
  const [first, last] = wholeRange(facts);
  if (more !== TYPE.integer || last - first >= LISTED_INTEGERS || !Number.isSafeInteger(last))
    return undefined;
  for (let value = first; value <= last; value++) {
    if (facts.factors.every((factor) => isMultipleOf(value, factor))) values.push(value);
  }
  return values;
}
