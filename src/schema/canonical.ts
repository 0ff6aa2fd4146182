import { spend } from "./budget.ts";

/**
 * A text that two JSON values share exactly when JSON Schema calls them equal: the order of members does not count, 1 and
 * 1.0 are the same, `"1"` and 1 are not. Infinite numbers (from `1e400`) stay numbers.
 *
 * Each value costs a step and each 16 characters of a string another, so that comparing cannot run away.
 */
export function canonicalText(value: unknown): string {
  if (typeof value === "string") {
    spend(1 + (value.length >> 4));
    return JSON.stringify(value);
  }
  spend(1);
  if (typeof value === "number") return String(value === 0 ? 0 : value);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  const members = value as Record<string, unknown>;
  const names = Object.keys(members).toSorted();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalText(members[name])}`).join()}}`;
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
    if (this.has(value)) return false;
    if (typeof value === "object" && value !== null) this.#containers.add(canonicalText(value));
    else this.#scalars.add(value);
    return true;
  }

  has(value: unknown): boolean {
    if (typeof value !== "object" || value === null) {
      spend(1);
      return this.#scalars.has(value);
    }
    return this.#containers.size > 0 && this.#containers.has(canonicalText(value));
  }
}
