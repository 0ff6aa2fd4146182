import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";

export type TypeTree =
  /** A keyword, or a literal as it is written. */
  | { readonly kind: "word"; readonly text: string }
  /** The type that a schema others refer to has under a name of its own. */
  | { readonly kind: "reference"; readonly to: SchemaNode }
  | { readonly kind: "union"; readonly parts: readonly TypeTree[] }
  | { readonly kind: "intersection"; readonly parts: readonly TypeTree[] }
  | { readonly kind: "list"; readonly item: TypeTree }
  | {
      readonly kind: "tuple";
      readonly items: readonly { readonly type: TypeTree; readonly optional: boolean }[];
      readonly rest: TypeTree | undefined;
    }
  | {
      readonly kind: "object";
      readonly members: readonly TypeMember[];
      /** The type of members of other names; `undefined` where nothing is known of them. */
      readonly index: TypeTree | undefined;
    };

export interface TypeMember {
  readonly name: string;
  readonly type: TypeTree;
  readonly optional: boolean;
  readonly comment: readonly string[];
}

export const UNKNOWN: TypeTree = { kind: "word", text: "unknown" };
export const NEVER: TypeTree = { kind: "word", text: "never" };
/** An object of which nothing more is known. */
export const ANY_OBJECT: TypeTree = { kind: "object", members: [], index: UNKNOWN };

export function keywordType(text: string): TypeTree {
  return { kind: "word", text };
}

export function unionOf(types: readonly TypeTree[]): TypeTree {
  const parts = types.flatMap((type) => (type.kind === "union" ? type.parts : type));
  if (parts.includes(UNKNOWN)) return UNKNOWN;
  return joined(
    "union",
    parts.filter((part) => part !== NEVER),
    NEVER,
  );
}

export function intersectionOf(types: readonly TypeTree[]): TypeTree {
  const parts = types.flatMap((type) => (type.kind === "intersection" ? type.parts : type));
  if (parts.includes(NEVER)) return NEVER;
  const known = parts.filter((part) => part !== UNKNOWN);
  // Beside a more specific type it would only allow any name to be read.
  const specific = known.filter((part) => part !== ANY_OBJECT);
  return joined("intersection", specific.length > 0 ? specific : known.slice(0, 1), UNKNOWN);
}

export function typesIn(tree: TypeTree): readonly TypeTree[] {
  if (tree.kind === "list") return [tree.item];
  if (tree.kind === "union" || tree.kind === "intersection") return tree.parts;
  if (tree.kind === "tuple") return [...tree.items.map(({ type }) => type), ...listed(tree.rest)];
  if (tree.kind === "object") return [...tree.members.map(({ type }) => type), ...listed(tree.index)];
  return [];
}

export const sizeOf: (tree: TypeTree) => number = memoize((tree: TypeTree) =>
  typesIn(tree).reduce((sum, inner) => sum + sizeOf(inner), 1),
);

function listed(tree: TypeTree | undefined): readonly TypeTree[] {
  return tree === undefined ? [] : [tree];
}

function joined(kind: "union" | "intersection", parts: readonly TypeTree[], none: TypeTree): TypeTree {
  const distinct = parts.filter((part, index) => !isRepeated(parts, index, part));
  if (distinct.length <= 1) return distinct[0] ?? none;
  return { kind, parts: distinct };
}

function isRepeated(parts: readonly TypeTree[], index: number, part: TypeTree): boolean {
  if (part.kind !== "reference") return false;
  return parts.findIndex((other) => other.kind === "reference" && other.to === part.to) < index;
}

/** Members of the union that an intersection of unions multiplies out to. The compiler gives up at 100,000. */
const MAX_WIDTH = 1_000;

/** Leaves unions out of intersections that multiply out to too much, which only makes a type wider. */
export function limitUnions(types: ReadonlyMap<SchemaNode, TypeTree>): ReadonlyMap<SchemaNode, TypeTree> {
  // Types are nested dozens deep, so each is measured once.
  const widthOf = memoize((tree: TypeTree): number => {
    if (tree.kind === "reference") return widthOfNamed(tree.to);
    if (tree.kind === "union") return tree.parts.reduce((sum, part) => sum + widthOf(part), 0);
    if (tree.kind !== "intersection") return 1;
    return limited(tree.parts).reduce((product, part) => product * widthOf(part), 1);
  });
  // A type can only come back to itself by way of a member, where its width does not count.
  const widthOfNamed = memoize((node: SchemaNode): number => widthOf(types.get(node)!), { value: 1 });
  const limited = memoize((parts: readonly TypeTree[]): readonly TypeTree[] => {
    let product = 1;
    return parts.filter((part) => {
      const width = widthOf(part);
      if (width > 1 && product * width > MAX_WIDTH) return false;
      product *= width;
      return true;
    });
  });
  const narrowed = (tree: TypeTree): TypeTree =>
    tree.kind === "intersection"
      ? intersectionOf(limited(tree.parts).map(narrowed))
      : withTypes(tree, narrowed);
  return new Map(Array.from(types, ([node, tree]) => [node, narrowed(tree)]));
}

/** The same type with other types inside. */
function withTypes(tree: TypeTree, other: (tree: TypeTree) => TypeTree): TypeTree {
  if (tree.kind === "union") return unionOf(tree.parts.map(other));
  if (tree.kind === "list") return { ...tree, item: other(tree.item) };
  if (tree.kind === "tuple") {
    const items = tree.items.map((item) => ({ ...item, type: other(item.type) }));
    return { ...tree, items, rest: tree.rest && other(tree.rest) };
  }
  if (tree.kind !== "object" || tree === ANY_OBJECT) return tree;
  const members = tree.members.map((member) => ({ ...member, type: other(member.type) }));
  return { ...tree, members, index: tree.index && other(tree.index) };
}
