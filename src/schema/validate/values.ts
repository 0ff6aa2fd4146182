import { spend } from "../limits.ts";

/** The types of JSON values as bits; draft-07 distinguishes integers and fractions by value. */
export const TYPE = {
  null: 1,
  boolean: 2,
  integer: 4,
  fraction: 8,
  string: 16,
  array: 32,
  object: 64,
} as const;

export const NUMBER = TYPE.integer | TYPE.fraction;
export const ANY = 127;
export const TYPE_BITS: readonly number[] = Object.values(TYPE);

const NAMED: Readonly<Record<string, number>> = { ...TYPE, number: NUMBER };

/** What the keyword `type` allows. */
export function typesNamed(type: unknown): number {
  if (type === undefined) return ANY;
  if (typeof type === "string") return NAMED[type] ?? 0;
  return (type as string[]).reduce((mask, name) => mask | (NAMED[name] ?? 0), 0);
}

/** The bit of a value. Numbers beyond a double (from `1e400`) have none: no comparison includes them. */
export function typeOf(value: unknown): number {
  if (value === null) return TYPE.null;
  if (Array.isArray(value)) return TYPE.array;
  if (typeof value === "boolean") return TYPE.boolean;
  if (typeof value === "string") return TYPE.string;
  if (typeof value !== "number") return TYPE.object;
  if (!Number.isFinite(value)) return 0;
  return Number.isInteger(value) ? TYPE.integer : TYPE.fraction;
}

/** V8 knows the names of smaller objects; of others, it takes 130 ns for each. */
const MANY_NAMES = 256;
const STEPS_PER_LISTED_NAME = 6;

/** The names of an object's own members. */
export function namesOf(value: object): readonly string[] {
  const names = Object.keys(value);
  spend(1 + (names.length < MANY_NAMES ? names.length >> 2 : STEPS_PER_LISTED_NAME * names.length));
  return names;
}

const STEPS_PER_VALUE = 6;
const STEPS_PER_OBJECT = 20;
const STEPS_PER_MEMBER = 1;

/**
 * A text that two JSON values share exactly when JSON Schema calls them equal: the order of members does not count, 1 and
 * 1.0 are the same, `"1"` and 1 are not. Infinite numbers (from `1e400`) stay numbers. It counts its steps.
 */
export function canonicalText(value: unknown): string {
  if (typeof value !== "object" || value === null) return scalarText(value);
  const text = Array.isArray(value) ? listText(value) : objectText(value as Record<string, unknown>);
  spend(text.length >> 4);
  return text;
}

function scalarText(value: unknown): string {
  spend(STEPS_PER_VALUE);
  // It is "0" of both zeros.
  if (typeof value !== "string") return String(value);
  spend(value.length >> 3);
  return JSON.stringify(value);
}

function listText(items: readonly unknown[]): string {
  spend(STEPS_PER_VALUE);
  return `[${items.map(canonicalText).join()}]`;
}

function objectText(members: Record<string, unknown>): string {
  const names = namesOf(members).toSorted();
  // Sorting takes more comparisons for each name the more there are.
  spend(STEPS_PER_OBJECT + names.length * (STEPS_PER_MEMBER + 32 - Math.clz32(names.length)));
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalText(members[name])}`).join()}}`;
}

const STEPS_PER_ADDED_SCALAR = 4;
const STEPS_PER_SET = 16;

/** JSON values, each once, by the equality of JSON Schema. */
export class ValueSet {
  readonly #scalars = new Set<unknown>();
  readonly #containers = new Set<string>();

  constructor(values: Iterable<unknown> = []) {
    for (const value of values) this.add(value);
  }

  /** False when the set has an equal value already. */
  add(value: unknown): boolean {
    const isContainer = typeof value === "object" && value !== null;
    if (!isContainer) spend(STEPS_PER_ADDED_SCALAR);
    const set: Set<unknown> = isContainer ? this.#containers : this.#scalars;
    const before = set.size;
    return set.add(isContainer ? canonicalText(value) : value).size > before;
  }

  has(value: unknown): boolean {
    if (typeof value === "object" && value !== null) {
      spend(1);
      return this.#containers.size > 0 && this.#containers.has(canonicalText(value));
    }
    spend(typeof value === "string" ? 1 + (value.length >> 7) : 1);
    return this.#scalars.has(value);
  }
}

/** Index of the first item that equals one before it, or -1. */
export function firstRepeated(items: readonly unknown[]): number {
  spend(STEPS_PER_SET);
  const seen = new ValueSet();
  return items.findIndex((item) => !seen.add(item));
}

/** Index of the first item that equals the one at `later`. */
export function firstEqual(items: readonly unknown[], later: number): number {
  const wanted = new ValueSet([items[later]]);
  return items.findIndex((item) => wanted.has(item));
}

/** Counts characters as JSON Schema does: one outside the basic plane is one, though two UTF-16 units. */
export function charactersIn(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; count++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return count;
}

const STEPS_PER_DECIMAL = 24;

/** Whether a number is a multiple of another in decimal: 19.99 of 0.01, though dividing the doubles leaves a remainder. */
export function isMultipleOf(value: number, factor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(factor)) return value % factor === 0;
  if (!Number.isFinite(value) || !Number.isFinite(factor)) return value === 0;
  const a = decimalOf(value);
  const b = decimalOf(factor);
  // The further apart the two are, the longer are the integers divided.
  spend(STEPS_PER_DECIMAL + 2 * Math.abs(a.exponent - b.exponent));
  const exponent = Math.min(a.exponent, b.exponent);
  const scaled = (one: typeof a) => one.digits * 10n ** BigInt(one.exponent - exponent);
  return scaled(a) % scaled(b) === 0n;
}

function decimalOf(value: number): { digits: bigint; exponent: number } {
  const [mantissa = "0", exponent = "0"] = value.toExponential().split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}
