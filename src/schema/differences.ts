import { isDeepStrictEqual } from "node:util";
import { isObject } from "./keywords.ts";
import { childOf, pointerTo } from "../json/field-path.ts";

/** One place where two schemas differ: `pointer` leads to it in the new schema, or to what was removed in the old one. */
export interface Difference {
  readonly kind: "added" | "removed" | "changed";
  readonly pointer: string;
}

/**
 * The smallest parts that were added, removed or changed, in the order of the document. The order of members does not
 * count, nor that of a list of scalars such as `required` or `enum`.
 */
export function differencesOf(before: unknown, after: unknown, pointer = ""): Difference[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isObject(before) && isObject(after)) return inMembers(before, after, pointer);
  if (Array.isArray(before) && Array.isArray(after)) {
    if (before.length > 0 && after.length > 0 && [...before, ...after].every(isScalar)) {
      return inSets(before, after, pointer);
    }
    return inMembers(before, after, pointer);
  }
  return [{ kind: "changed", pointer }];
}

/** Finds the differences of two objects or two lists. */
function inMembers(before: object, after: object, pointer: string): Difference[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    const place = pointerTo(pointer, name);
    if (!Object.hasOwn(before, name)) return { kind: "added", pointer: place };
    if (!Object.hasOwn(after, name)) return { kind: "removed", pointer: place };
    return differencesOf(childOf(before, name), childOf(after, name), place);
  });
}

function inSets(before: readonly unknown[], after: readonly unknown[], pointer: string): Difference[] {
  const removed = before.flatMap((was, index): Difference[] =>
    after.includes(was) ? [] : [{ kind: "removed", pointer: pointerTo(pointer, index) }],
  );
  const added = after.flatMap((is, index): Difference[] =>
    before.includes(is) ? [] : [{ kind: "added", pointer: pointerTo(pointer, index) }],
  );
  // Only their order or number differs, which may matter after all, in a `default` for example.
  if (removed.length + added.length === 0) return [{ kind: "changed", pointer }];
  return [...removed, ...added];
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}
