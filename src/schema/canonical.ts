import { spend } from "./budget.ts";
import { memo, namesOf } from "./memo.ts";

const STEPS_PER_VALUE = 6;
const STEPS_PER_OBJECT = 20;
const STEPS_PER_MEMBER = 1;
/** A text as long as this is kept: making it anew for each schema costs more than looking it up. */
const KEPT_LENGTH = 256;

/**
 * A text that two JSON values share exactly when JSON Schema calls them equal: the order of members does not count, 1 and
 * 1.0 are the same, `"1"` and 1 are not. Infinite numbers (from `1e400`) stay numbers.
 *
 * Its steps are counted, so that comparing cannot run away.
 */
export function canonicalText(value: unknown): string {
  if (typeof value !== "object" || value === null) return scalarText(value);
  const known = memo.texts.get(value);
  if (known !== undefined) {
    spend(1 + (known.length >> 8));
    return known;
  }
  const text = Array.isArray(value) ? listText(value) : objectText(value as Record<string, unknown>);
  spend(text.length >> 4);
  return text;
}

/** The same, kept for the next schema that asks. */
export function keptCanonicalText(value: object): string {
  const text = canonicalText(value);
  if (text.length >= KEPT_LENGTH) memo.texts.set(value, text);
  return text;
}

function scalarText(value: unknown): string {
  spend(STEPS_PER_VALUE);
  if (typeof value === "string") {
    spend(value.length >> 3);
    return JSON.stringify(value);
  }
  if (typeof value === "number") return String(value === 0 ? 0 : value);
  return String(value);
}

function listText(items: readonly unknown[]): string {
  spend(STEPS_PER_VALUE);
  return `[${items.map(canonicalText).join()}]`;
}

function objectText(members: Record<string, unknown>): string {
  const names = namesOf(members).toSorted();
  // Names are sorted, which takes some more comparisons for each the more there are.
  spend(STEPS_PER_OBJECT + names.length * (STEPS_PER_MEMBER + 32 - Math.clz32(names.length)));
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalText(members[name])}`).join()}}`;
}
