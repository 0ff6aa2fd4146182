import { isDeepStrictEqual } from "node:util";
import { pointerSteps, pointerTo } from "../json/pointer.ts";
import { isObject } from "./keywords.ts";

export type FieldPath = readonly (string | number)[];

const IDENTIFIER = /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u;

/** A step of a place as `fieldName` writes it. */
const STEP = /\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g;

/** Characters up to which a name in a place is written whole, and a place; of longer ones the beginning and the end. */
const MAX_NAME_LENGTH = 128;
const MAX_FIELD_LENGTH = 2_048;

/**
 * A place as people write it: `address.zip`, `items[2].sku`, `["odd name"].x`; `""` is the root. Where a name or the whole
 * is too long, an ellipsis replaces its middle: both come from outside, and are repeated in messages.
 */
export function fieldName(path: FieldPath, root = ""): string {
  const steps = path.map((step, index) => stepName(step, index === 0 && root === ""));
  return shortName(root + steps.join(""), MAX_FIELD_LENGTH);
}

function stepName(step: string | number, isFirst: boolean): string {
  if (typeof step === "number") return `[${step}]`;
  const name = shortName(step, MAX_NAME_LENGTH);
  if (name !== step || !IDENTIFIER.test(name)) return `[${JSON.stringify(name)}]`;
  return isFirst ? name : `.${name}`;
}

function shortName(name: string, maxLength: number): string {
  if (name.length <= maxLength) return name;
  const half = maxLength / 2;
  return `${name.slice(0, half).toWellFormed()}…${name.slice(1 - half).toWellFormed()}`;
}

/** The steps of what `fieldName` has written. */
export function pathNamed(field: string): FieldPath {
  return Array.from(field.matchAll(STEP), ([, index, quoted, name = ""]) => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? name : (JSON.parse(quoted) as string);
  });
}

/** The steps of a JSON pointer, taken in `document`: in a list a step is a number. */
export function pathOf(pointer: string, document: unknown): FieldPath {
  const path: (string | number)[] = [];
  let value = document;
  for (const step of pointerSteps(pointer)) {
    path.push(Array.isArray(value) ? Number(step) : step);
    value = childOf(value, step);
  }
  return path;
}

/** The value at a path; `undefined` when there is none. */
export function valueAt(path: FieldPath, document: unknown): unknown {
  return path.reduce<unknown>((value, step) => childOf(value, String(step)), document);
}

/** The member or item of that name. Inherited names do not count. */
export function childOf(value: unknown, step: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
  return (value as Record<string, unknown>)[step];
}

/** One place where two schemas differ. */
export type Difference =
  /** `pointer` leads to it in the new schema. */
  | { readonly kind: "added"; readonly pointer: string; readonly is: unknown }
  /** `pointer` led to it in the old schema. */
  | { readonly kind: "removed"; readonly pointer: string; readonly was: unknown }
  | { readonly kind: "changed"; readonly pointer: string; readonly was: unknown; readonly is: unknown };

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
  return [{ kind: "changed", pointer, was: before, is: after }];
}

/** Finds the differences of two objects or two lists. */
function inMembers(before: object, after: object, pointer: string): Difference[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    const place = pointerTo(pointer, name);
    const [was, is] = [childOf(before, name), childOf(after, name)];
    if (!Object.hasOwn(before, name)) return { kind: "added", pointer: place, is };
    if (!Object.hasOwn(after, name)) return { kind: "removed", pointer: place, was };
    return differencesOf(was, is, place);
  });
}

function inSets(before: readonly unknown[], after: readonly unknown[], pointer: string): Difference[] {
  const removed = before.flatMap((was, index): Difference[] =>
    after.includes(was) ? [] : [{ kind: "removed", pointer: pointerTo(pointer, index), was }],
  );
  const added = after.flatMap((is, index): Difference[] =>
    before.includes(is) ? [] : [{ kind: "added", pointer: pointerTo(pointer, index), is }],
  );
  // Only their order or number differs, which may matter after all, in a `default` for example.
  if (removed.length + added.length === 0) return [{ kind: "changed", pointer, was: before, is: after }];
  return [...removed, ...added];
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}
