import { spend } from "../budget.ts";
import { canonicalText } from "../canonical.ts";
import type { Shape } from "./shape.ts";
import { ANY, TYPE, typeOf, typesNamed } from "./types.ts";

/** Values by a text that equal ones share. */
export type Listed = ReadonlyMap<string, unknown>;

/** The schema and all that must hold with it, through references and `allOf`. */
export function partsOf(shape: Shape): readonly Shape[] {
  if (shape.parts === undefined) {
    const parts = new Set<Shape>();
    gather(shape, parts);
    shape.parts = [...parts];
  }
  return shape.parts;
}

function gather(shape: Shape, parts: Set<Shape>): void {
  spend(1);
  if (parts.has(shape)) return;
  if (shape.reference !== undefined) {
    gather(shape.reference, parts);
    return;
  }
  parts.add(shape);
  for (const inner of shape.allOf) gather(inner, parts);
}

/** Types beyond which no value of the schema is, in plain sight. */
export function typesOf(shape: Shape): number {
  return (shape.types ??= findTypes(shape));
}

function findTypes(shape: Shape): number {
  let types = ANY;
  for (const part of partsOf(shape)) types &= part.isFalse ? 0 : typesNamed(part.value("type"));
  const listed = listedOf(shape);
  if (listed === undefined) return types;
  let found = 0;
  for (const value of listed.values()) found |= typeOf(value);
  return types & found;
}

/** `null` where a schema lists no values, and while they are looked for. */
const knownLists = new WeakMap<Shape, Listed | null>();

/** Values beyond which the schema has none, where it lists them: in `const`, `enum`, or in each of its branches. */
export function listedOf(shape: Shape): Listed | undefined {
  const known = knownLists.get(shape);
  if (known !== undefined) return known ?? undefined;
  // Who comes back here meanwhile knows nothing of them.
  knownLists.set(shape, null);
  let shortest: Listed | null = null;
  for (const part of partsOf(shape)) {
    for (const list of listsOf(part)) if (shortest === null || list.size < shortest.size) shortest = list;
  }
  knownLists.set(shape, shortest);
  return shortest ?? undefined;
}

function* listsOf(part: Shape): Generator<Listed> {
  if (part.keywords.includes("const")) yield keyed([part.value("const")]);
  if (part.keywords.includes("enum")) yield keyed(part.value("enum") as readonly unknown[]);
  const types = part.keywords.includes("type") ? typesNamed(part.value("type")) : ANY;
  if ((types & ~(TYPE.null | TYPE.boolean)) === 0) {
    const values = [
      (types & TYPE.null) !== 0 ? [null] : [],
      (types & TYPE.boolean) !== 0 ? [false, true] : [],
    ];
    yield keyed(values.flat());
  }
  for (const branches of [part.anyOf, part.oneOf]) {
    const all = branches.length === 0 ? undefined : union(branches);
    if (all !== undefined) yield all;
  }
}

function keyed(values: readonly unknown[]): Listed {
  return new Map(values.map((value) => [canonicalText(value), value]));
}

function union(branches: readonly Shape[]): Listed | undefined {
  const all = new Map<string, unknown>();
  for (const branch of branches) {
    const listed = listedOf(branch);
    if (listed === undefined) return undefined;
    spend(listed.size);
    for (const [key, value] of listed) all.set(key, value);
  }
  return all;
}

/** The same of a member that it may have. */
export function listedAt(shape: Shape, name: string): Listed | undefined {
  let shortest: Listed | undefined;
  for (const { properties } of partsOf(shape)) {
    const inner = properties.get(name);
    const listed = inner === undefined ? undefined : listedOf(inner);
    if (listed !== undefined && (shortest === undefined || listed.size < shortest.size)) shortest = listed;
  }
  return shortest;
}

export function areDisjoint(one: Listed | undefined, other: Listed | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  const [few, many] = one.size < other.size ? [one, other] : [other, one];
  spend(few.size);
  for (const key of few.keys()) if (many.has(key)) return false;
  return true;
}
