import type { SchemaNode } from "../document.ts";
import { ANY_OBJECT, intersectionOf, unionOf } from "./type-tree.ts";
import type { TypeTree } from "./type-tree.ts";

/**
 * Members of the union that an intersection of unions multiplies out to. The compiler gives up at 100,000, and is slow long
 * before.
 */
const WIDEST = 1_000;

interface Measure {
  /** Members of the union that the type multiplies out to. */
  readonly width: number;
  /** Of a union or an intersection, the parts that stay. */
  readonly kept: readonly TypeTree[];
}

/** Types with unions left out of intersections that multiply out to too much; leaving one out only makes a type wider. */
export function bounded(types: ReadonlyMap<SchemaNode, TypeTree>): ReadonlyMap<SchemaNode, TypeTree> {
  const named = new Map<SchemaNode, number>();
  // Types are nested dozens deep, so each is measured once.
  const measures = new Map<TypeTree, Measure>();
  const measureOf = (tree: TypeTree): Measure => {
    let measure = measures.get(tree);
    if (measure === undefined) measures.set(tree, (measure = measured(tree)));
    return measure;
  };
  const measured = (tree: TypeTree): Measure => {
    if (tree.kind === "reference") return { width: widthOfNamed(tree.to), kept: [] };
    if (tree.kind === "intersection") return multiplied(tree.parts);
    if (tree.kind !== "union") return { width: 1, kept: [] };
    const { parts } = tree;
    return { width: parts.reduce((sum, part) => sum + measureOf(part).width, 0), kept: parts };
  };
  const widthOfNamed = (node: SchemaNode): number => {
    let width = named.get(node);
    if (width === undefined) {
      // A type can only come back to itself by way of a member, where its width does not count.
      named.set(node, 1);
      ({ width } = measureOf(types.get(node)!));
      named.set(node, width);
    }
    return width;
  };
  const multiplied = (parts: readonly TypeTree[]): Measure => {
    let product = 1;
    const kept = parts.filter((part) => {
      const { width } = measureOf(part);
      if (width > 1 && product * width > WIDEST) return false;
      product *= width;
      return true;
    });
    return { width: product, kept };
  };
  const narrowed = (tree: TypeTree): TypeTree =>
    tree.kind === "intersection"
      ? intersectionOf(measureOf(tree).kept.map(narrowed))
      : withTypes(tree, narrowed);
  return new Map(Array.from(types, ([node, tree]) => [node, narrowed(tree)]));
}

/** The same type with other types inside. */
function withTypes(tree: TypeTree, other: (tree: TypeTree) => TypeTree): TypeTree {
  if (tree.kind === "union") return unionOf(tree.parts.map(other));
  if (tree.kind === "list") return { ...tree, item: other(tree.item) };
  if (tree.kind === "tuple") {
    const items = tree.items.map((item) => ({ type: other(item.type), optional: item.optional }));
    return { kind: "tuple", items, rest: tree.rest && other(tree.rest) };
  }
  if (tree.kind !== "object" || tree === ANY_OBJECT) return tree;
  const members = tree.members.map(({ name, type, optional, comment }) => {
    return { name, type: other(type), optional, comment };
  });
  return { kind: "object", members, index: tree.index && other(tree.index) };
}
