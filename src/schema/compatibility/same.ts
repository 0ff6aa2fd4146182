import { spend } from "../budget.ts";
import { canonicalText } from "../canonical.ts";
import { isAssertion } from "../keywords.ts";
import type { Task } from "../task.ts";
import type { Shape } from "./shape.ts";
import { Stretch } from "./stretch.ts";

/**
 * Whether two schemas say the same in the same words, through references, the order of lists of values left aside. Equal
 * ones need no proof, and some could not be proven: of a `not` inside a `contains` little else is known.
 */
export class Sameness {
  readonly #known = new Map<string, boolean>();
  readonly #classes = new Map<Shape, number | undefined>();
  readonly #signatures = new Map<string, number>();
  readonly #stretch = new Stretch();

  /** Reads a schema with all there is in it, so that no check has to do so in one go. */
  *reading(shape: Shape): Task<void> {
    if (shape.reference !== undefined) {
      yield* this.reading(shape.reference);
      return;
    }
    if (this.#classes.has(shape)) return;
    if (this.#stretch.isOver()) yield;
    this.#classes.set(shape, undefined);
    const children = childrenOf(shape);
    for (const [, inner] of children) yield* this.reading(inner);
    this.#classify(shape, children);
  }

  check(one: Shape, other: Shape): boolean {
    const [left, right] = [this.#classOf(one), this.#classOf(other)];
    if (left !== undefined && right !== undefined) return left === right;
    const trail: string[] = [];
    const same = this.#compare(one, other, trail);
    // What was found equal while something else was taken to be so is forgotten with it.
    if (!same) for (const key of trail) if (this.#known.get(key) === true) this.#known.delete(key);
    return same;
  }

  /** A number that two schemas without recursion share exactly when they say the same. */
  #classOf(shape: Shape): number | undefined {
    if (shape.reference !== undefined) return this.#classOf(shape.reference);
    const known = this.#classes.get(shape);
    if (known !== undefined || this.#classes.has(shape)) return known;
    // Who comes back here meanwhile is recursive.
    this.#classes.set(shape, undefined);
    return this.#classify(shape, childrenOf(shape));
  }

  #classify(shape: Shape, children: readonly Child[]): number | undefined {
    spend(4);
    const signature = signatureOf(shape, children, (inner) => this.#classOf(inner));
    if (signature === undefined) return undefined;
    let found = this.#signatures.get(signature);
    if (found === undefined) {
      found = this.#signatures.size;
      this.#signatures.set(signature, found);
    }
    this.#classes.set(shape, found);
    return found;
  }

  #compare(one: Shape, other: Shape, trail: string[]): boolean {
    spend(1);
    if (one === other) return true;
    if (one.reference !== undefined) return this.#compare(one.reference, other, trail);
    if (other.reference !== undefined) return this.#compare(one, other.reference, trail);
    if (typeof one.schema === "boolean" || typeof other.schema === "boolean") {
      return one.schema === other.schema || (one.isOpen && other.isOpen);
    }
    if (one.keywords.length !== other.keywords.length) return false;
    const key = `${one.id}=${other.id}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    this.#known.set(key, true);
    trail.push(key);
    const same = this.#sameValues(one, other) && this.#sameSchemas(one, other, trail);
    if (!same) this.#known.set(key, false);
    return same;
  }

  #sameValues(one: Shape, other: Shape): boolean {
    return one.keywords.every((keyword) => {
      if (!other.keywords.includes(keyword)) return false;
      return !isAssertion(keyword) || sameAssertion(keyword, one.value(keyword), other.value(keyword));
    });
  }

  #sameSchemas(one: Shape, other: Shape, trail: string[]): boolean {
    const lists: [Shape[], Shape[]][] = [
      [one.allOf, other.allOf],
      [one.anyOf, other.anyOf],
      [one.oneOf, other.oneOf],
      [one.tuple ?? [], other.tuple ?? []],
    ];
    for (const [left, right] of lists) {
      if (left.length !== right.length) return false;
      if (!left.every((shape, index) => this.#compare(shape, right[index]!, trail))) return false;
    }
    for (const keyword of ONE_EACH) {
      if (!this.#sameOrNone(one[keyword], other[keyword], trail)) return false;
    }
    return (
      this.#sameMaps(one.properties, other.properties, trail) &&
      this.#sameMaps(patternMap(one), patternMap(other), trail) &&
      this.#sameMaps(one.dependentSchemas, other.dependentSchemas, trail) &&
      sameNames(one.dependentNames, other.dependentNames)
    );
  }

  #sameOrNone(one: Shape | undefined, other: Shape | undefined, trail: string[]): boolean {
    if (one === undefined || other === undefined) return one === other;
    return this.#compare(one, other, trail);
  }

  #sameMaps(one: ReadonlyMap<string, Shape>, other: ReadonlyMap<string, Shape>, trail: string[]): boolean {
    if (one.size !== other.size) return false;
    return [...one].every(([name, left]) => {
      const right = other.get(name);
      return right !== undefined && this.#compare(left, right, trail);
    });
  }
}

function sameNames(one: Shape["dependentNames"], other: Shape["dependentNames"]): boolean {
  if (one.size !== other.size) return false;
  return [...one].every(([name, left]) => other.has(name) && asSet(left) === asSet(other.get(name)));
}

const ONE_EACH = [
  "not",
  "if",
  "then",
  "else",
  "additionalProperties",
  "propertyNames",
  "items",
  "additionalItems",
  "contains",
] as const;

function patternMap(shape: Shape): Map<string, Shape> {
  return new Map(shape.patterns.map(({ pattern, shape: inner }) => [pattern, inner]));
}

function sameAssertion(keyword: string, one: unknown, other: unknown): boolean {
  return assertionText(keyword, one) === assertionText(keyword, other);
}

function assertionText(keyword: string, value: unknown): string {
  return keyword === "type" || keyword === "enum" || keyword === "required"
    ? asSet(value)
    : canonicalText(value);
}

function asSet(values: unknown): string {
  return [...new Set([values].flat().map(canonicalText))].toSorted().join();
}

/** A schema in another, with what leads to it. */
type Child = readonly [place: string, Shape];

/** The schemas in one, in an order that is the same for all that say the same. */
function childrenOf(shape: Shape): Child[] {
  if (typeof shape.schema === "boolean" || shape.isOpen) return [];
  const children: Child[] = [
    ...[...shape.properties].map(([name, inner]): Child => [`.${JSON.stringify(name)}`, inner]),
    ...shape.patterns.map(({ pattern, shape: inner }): Child => [`~${JSON.stringify(pattern)}`, inner]),
    ...[...shape.dependentSchemas].map(([name, inner]): Child => [`>${JSON.stringify(name)}`, inner]),
  ].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const keyword of ["allOf", "anyOf", "oneOf", "tuple"] as const) {
    for (const inner of shape[keyword] ?? []) children.push([keyword, inner]);
  }
  for (const keyword of ONE_EACH) {
    const inner = shape[keyword];
    if (inner !== undefined) children.push([keyword, inner]);
  }
  return children;
}

/** What a schema says, with the classes of the schemas in it; `undefined` when one of those has none. */
function signatureOf(
  shape: Shape,
  children: readonly Child[],
  classOf: (inner: Shape) => number | undefined,
): string | undefined {
  if (typeof shape.schema === "boolean" || shape.isOpen) return String(!shape.isFalse);
  let signature = "";
  for (const [place, inner] of children) {
    const of = classOf(inner);
    if (of === undefined) return undefined;
    signature += `${place}:${of},`;
  }
  for (const keyword of shape.keywords.toSorted()) {
    signature += `;${keyword}`;
    if (isAssertion(keyword)) signature += assertionText(keyword, shape.value(keyword));
  }
  for (const [name, needed] of shape.dependentNames) signature += `;${JSON.stringify(name)}>${asSet(needed)}`;
  return signature;
}
