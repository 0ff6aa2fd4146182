import { isMultipleOf } from "../multiple-of.ts";
import { accepts } from "./accepts.ts";
import type { Case } from "./case.ts";
import type { Shape } from "./shape.ts";
import { NUMBER, TYPE, typeOf } from "./types.ts";

export interface Bound {
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

const known = new WeakMap<Case, Facts>();

export function factsOf(one: Case): Facts {
  let facts = known.get(one);
  if (facts === undefined) {
    facts = gather(one);
    known.set(one, facts);
  }
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
  const { shapes } = one;
  const all = (keyword: string): unknown[] =>
    shapes.flatMap((shape) => {
      const value = shape.value(keyword);
      return value === undefined ? [] : [value];
    });
  const most = (keyword: string, least = 0): number => Math.max(least, ...(all(keyword) as number[]));
  const least = (keyword: string): number => Math.min(Infinity, ...(all(keyword) as number[]));
  const lower = tightest(all("minimum"), all("exclusiveMinimum"), (a, b) => a > b, -Infinity);
  const upper = tightest(all("maximum"), all("exclusiveMaximum"), (a, b) => a < b, Infinity);
  const factors = all("multipleOf") as number[];
  const required = new Set([...one.present, ...shapes.flatMap((shape) => shape.required)]);
  const contains = shapes.some((shape) => shape.contains !== undefined);
  const tupleEnds = shapes.map((shape) =>
    shape.tuple !== undefined && shape.additionalItems?.isFalse === true ? shape.tuple.length : Infinity,
  );
  const facts = {
    lower,
    upper,
    factors,
    minLength: most("minLength"),
    maxLength: least("maxLength"),
    patterns: all("pattern") as string[],
    formats: all("format") as string[],
    minItems: most("minItems", contains ? 1 : 0),
    maxItems: Math.min(
      least("maxItems"),
      ...tupleEnds,
      ...shapes.map(({ items }) => (items?.isFalse === true ? 0 : Infinity)),
    ),
    unique: all("uniqueItems").length > 0,
    minProperties: most("minProperties", required.size),
    maxProperties: Math.min(least("maxProperties"), closedSize(shapes)),
    required,
  };
  const types = one.types & ~impossibleTypes(one, facts);
  return { ...facts, types, values: listed(one, types, facts) };
}

function tightest(
  inclusive: readonly unknown[],
  exclusive: readonly unknown[],
  isTighter: (one: number, other: number) => boolean,
  none: number,
): Bound {
  let bound: Bound = { value: none, exclusive: false };
  for (const value of inclusive as number[]) {
    if (isTighter(value, bound.value)) bound = { value, exclusive: false };
  }
  for (const value of exclusive as number[]) {
    if (isTighter(value, bound.value) || value === bound.value) bound = { value, exclusive: true };
  }
  return bound;
}

/** How many members a closed object can have. */
function closedSize(shapes: readonly Shape[]): number {
  return Math.min(
    ...shapes.map(({ additionalProperties, patterns, properties }) =>
      additionalProperties?.isFalse === true && patterns.length === 0 ? properties.size : Infinity,
    ),
    Infinity,
  );
}

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
  const lists: (readonly unknown[])[] = [];
  for (const shape of one.shapes) {
    if (shape.keywords.includes("const")) lists.push([shape.value("const")]);
    if (shape.keywords.includes("enum")) lists.push(shape.value("enum") as unknown[]);
  }
  const shortest = lists.toSorted((a, b) => a.length - b.length)[0] ?? plainList(types, facts);
  return shortest?.filter((value) => (typeOf(value) & types) !== 0 && isOf(one, value));
}

/** The values of types that have few. */
function plainList(types: number, facts: Limits): unknown[] | undefined {
  const values: unknown[] = [];
  if ((types & TYPE.null) !== 0) values.push(null);
  if ((types & TYPE.boolean) !== 0) values.push(false, true);
  const more = types & ~(TYPE.null | TYPE.boolean);
  if (more === 0) return values;
  const [first, last] = wholeRange(facts);
  if (more !== TYPE.integer || last - first >= LISTED_INTEGERS || !Number.isSafeInteger(last))
    return undefined;
  for (let value = first; value <= last; value++) {
    if (facts.factors.every((factor) => isMultipleOf(value, factor))) values.push(value);
  }
  return values;
}
