import { spend } from "../budget.ts";
import { ValueSet } from "../equality.ts";
import type { Shape } from "./shape.ts";
import { TYPE, typesNamed } from "./types.ts";

/**
 * Whether no value conforms to both, seen without looking far: by their types, or by a member that one asks for and whose
 * listed values the two do not share. That is how the branches of a choice are mostly told apart, and with many of them
 * everything else would take too long.
 */
export function clash(one: Shape, other: Shape): boolean {
  const [left, right] = [targetOf(one), targetOf(other)];
  let clashes = left.clashes.get(right);
  if (clashes === undefined) {
    clashes = look(left, right);
    left.clashes.set(right, clashes);
  }
  return clashes;
}

function look(one: Shape, other: Shape): boolean {
  spend(10);
  const shared = typesNamed(one.value("type")) & typesNamed(other.value("type"));
  if (shared === 0 || insideClashes(one, other) || insideClashes(other, one)) return true;
  if (shared !== TYPE.object) return false;
  return [...one.required, ...other.required].some((name) => {
    const [left, right] = [valuesOf(one.properties.get(name)), valuesOf(other.properties.get(name))];
    if (left === undefined || right === undefined) return false;
    const values = new ValueSet(right);
    return !left.some((value) => values.has(value));
  });
}

/** Whether what one combines clashes with the other: any of what must all hold, or all of what may. */
function insideClashes({ allOf, anyOf, oneOf }: Shape, other: Shape): boolean {
  const clashes = (inner: Shape): boolean => clash(inner, other);
  return (
    allOf.some(clashes) ||
    (anyOf.length > 0 && anyOf.every(clashes)) ||
    (oneOf.length > 0 && oneOf.every(clashes))
  );
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
