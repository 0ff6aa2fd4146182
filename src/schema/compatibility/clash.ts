import { spend } from "../budget.ts";
import { ValueSet } from "../equality.ts";
import type { Shape } from "./shape.ts";
import { TYPE, typesNamed } from "./types.ts";

const known = new WeakMap<Shape, Map<Shape, boolean>>();

/**
 * Whether no value conforms to both, seen without looking far: by their types, or by a member that one asks for and whose
 * listed values the two do not share. That is how the branches of a choice are mostly told apart, and with many of them
 * everything else would take too long.
 */
export function clash(one: Shape, other: Shape): boolean {
  const [left, right] = [targetOf(one), targetOf(other)];
  const pairs = known.get(left) ?? new Map<Shape, boolean>();
  known.set(left, pairs);
  let clashes = pairs.get(right);
  if (clashes === undefined) {
    clashes = look(left, right);
    pairs.set(right, clashes);
  }
  return clashes;
}

function look(one: Shape, other: Shape): boolean {
  spend(4);
  const shared = typesNamed(one.value("type")) & typesNamed(other.value("type"));
  if (shared === 0) return true;
  if (shared !== TYPE.object) return false;
  return [...one.required, ...other.required].some((name) => {
    const [left, right] = [valuesOf(one.properties.get(name)), valuesOf(other.properties.get(name))];
    if (left === undefined || right === undefined) return false;
    const values = new ValueSet(right);
    return !left.some((value) => values.has(value));
  });
}

function valuesOf(shape: Shape | undefined): readonly unknown[] | undefined {
  if (shape === undefined) return undefined;
  const target = targetOf(shape);
  if (target.keywords.includes("const")) return [target.value("const")];
  return target.value("enum") as readonly unknown[] | undefined;
}

function targetOf(shape: Shape): Shape {
  return shape.reference === undefined ? shape : targetOf(shape.reference);
}
