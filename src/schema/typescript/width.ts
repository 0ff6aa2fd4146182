import type { SchemaNode } from "../document.ts";
import { ANY_OBJECT, intersectionOf, unionOf } from "./type-tree.ts";
import type { TypeTree } from "./type-tree.ts";

/**
 * Members of the union that an intersection of unions multiplies out to. The compiler gives up at 100,000, and is slow long
 * before.
 */
const WIDEST = 1_000;

/** Types with unions left out of intersections that multiply out to too much; leaving one out only makes a type wider. */
export function bounded(types: ReadonlyMap<SchemaNode, TypeTree>): ReadonlyMap<SchemaNode, TypeTree> {
  const widths = new Map<SchemaNode, number>();
  const widthOf = (tree: TypeTree): number => {
    if (tree.kind === "reference") return widthOfNamed(tree.to);
    if (tree.kind === "union") return tree.parts.reduce((sum, part) => sum + widthOf(part), 0);
    if (tree.kind !== "intersection") return 1;
    return kept(tree.parts).reduce((product, part) => product * widthOf(part), 1);
  };
  const widthOfNamed = (node: SchemaNode): number => {
    let width = widths.get(node);
    if (width === undefined) {
      // A type can only come back to itself by way of a member, where its width does not count.
      widths.set(node, 1);
      width = widthOf(types.get(node)!);
      widths.set(node, width);
    }
    return width;
  };
  const kept = (parts: readonly TypeTree[]): readonly TypeTree[] => {
    let product = 1;
    return parts.filter((part) => {
      const width = widthOf(part);
      if (width > 1 && product * width > WIDEST) return false;
      product *= width;
      return true;
    });
  };
  const narrowed = (tree: TypeTree): TypeTree =>
    tree.kind === "intersection" ? intersectionOf(kept(tree.parts).map(narrowed)) : withTypes(tree, narrowed);
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
