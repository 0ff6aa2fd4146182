import { spend } from "./budget.ts";
import { keptCanonicalText } from "./canonical.ts";
import { memo, namesOf } from "./memo.ts";

const STEPS_PER_ADDED_SCALAR = 4;
const STEPS_PER_SET = 16;

/** Whether JSON Schema calls two values equal. Ends at the first difference. */
export function sameValue(value: unknown, other: unknown): boolean {
  if (typeof value === "string" && typeof other === "string") {
    if (value.length !== other.length) return false;
    spend(1 + (value.length >> 7));
    return value === other;
  }
  if (typeof value !== "object" || typeof other !== "object" || value === null || other === null) {
    return value === other;
  }
  spend(2);
  if (Array.isArray(value)) {
    if (!Array.isArray(other) || value.length !== other.length) return false;
    return value.every((item, index) => {
      spend(2);
      return sameValue(item, other[index]);
    });
  }
  if (Array.isArray(other)) return false;
  const names = namesOf(other);
  if (names.length !== namesOf(value).length) return false;
  return names.every((name) => {
    spend(6);
    return Object.hasOwn(value, name) && sameValue(member(value, name), member(other, name));
  });
}

function member(value: object, name: string): unknown {
  return (value as Record<string, unknown>)[name];
}

/** JSON values, each once, by the equality of JSON Schema. */
export class ValueSet {
  readonly #scalars = new Set<unknown>();
  readonly #containers = new Set<string>();

  constructor(values: Iterable<unknown> = []) {
    for (const value of values) this.add(value);
  }

  /** False when an equal value was there already. */
  add(value: unknown): boolean {
    if (typeof value === "object" && value !== null) return added(this.#containers, keptCanonicalText(value));
    spend(STEPS_PER_ADDED_SCALAR);
    return added(this.#scalars, value);
  }

  has(value: unknown): boolean {
    if (typeof value === "object" && value !== null) {
      spend(1);
      return this.#containers.size > 0 && this.#containers.has(keptCanonicalText(value));
    }
    spend(typeof value === "string" ? 1 + (value.length >> 7) : 1);
    return this.#scalars.has(value);
  }
}

function added<T>(set: Set<T>, value: T): boolean {
  const before = set.size;
  return set.add(value).size > before;
}

/** Place of the first item that equals an earlier one, or -1. */
export function firstRepeated(items: readonly unknown[]): number {
  let place = memo.repeats.get(items);
  if (place === undefined) {
    spend(STEPS_PER_SET);
    const seen = new ValueSet();
    place = items.findIndex((item) => !seen.add(item));
    memo.repeats.set(items, place);
  }
  spend(1);
  return place;
}

/** Place of the first item that equals the one at `later`. */
export function firstEqual(items: readonly unknown[], later: number): number {
  const wanted = new ValueSet([items[later]]);
  return items.findIndex((item) => wanted.has(item));
}
