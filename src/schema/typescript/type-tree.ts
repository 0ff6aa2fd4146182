import type { SchemaNode } from "../node.ts";

/** A type of TypeScript. */
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

/** The types directly inside one. */
export function typesIn(tree: TypeTree): readonly TypeTree[] {
  if (tree.kind === "list") return [tree.item];
  if (tree.kind === "union" || tree.kind === "intersection") return tree.parts;
  if (tree.kind === "tuple") return [...tree.items.map(({ type }) => type), ...listed(tree.rest)];
  if (tree.kind === "object") return [...tree.members.map(({ type }) => type), ...listed(tree.index)];
  return [];
}

const sizes = new WeakMap<TypeTree, number>();

/** How many types one is made of, itself among them. */
export function sizeOf(tree: TypeTree): number {
  let size = sizes.get(tree);
  if (size === undefined) {
    size = typesIn(tree).reduce((sum, inner) => sum + sizeOf(inner), 1);
    sizes.set(tree, size);
  }
  return size;
}

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

/**
 * Members of the union that an intersection of unions multiplies out to. The compiler gives up at 100,000, and is slow long
 * before.
 */
const MAX_WIDTH = 1_000;

interface Measure {
  /** Members of the union that the type multiplies out to. */
  readonly width: number;
  /** Of a union or an intersection, the parts that are not dropped. */
  readonly remaining: readonly TypeTree[];
}

/** Types with unions left out of intersections that multiply out to too much; leaving one out only makes a type wider. */
export function limitUnions(types: ReadonlyMap<SchemaNode, TypeTree>): ReadonlyMap<SchemaNode, TypeTree> {
  const named = new Map<SchemaNode, number>();
  // Types are nested dozens deep, so each is measured once.
  const measures = new Map<TypeTree, Measure>();
  const measureOf = (tree: TypeTree): Measure => {
    let measure = measures.get(tree);
    if (measure === undefined) measures.set(tree, (measure = measured(tree)));
    return measure;
  };
  const measured = (tree: TypeTree): Measure => {
    if (tree.kind === "reference") return { width: widthOfNamed(tree.to), remaining: [] };
    if (tree.kind === "intersection") return multiplied(tree.parts);
    if (tree.kind !== "union") return { width: 1, remaining: [] };
    const { parts } = tree;
    return { width: parts.reduce((sum, part) => sum + measureOf(part).width, 0), remaining: parts };
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
    const remaining = parts.filter((part) => {
      const { width } = measureOf(part);
      if (width > 1 && product * width > MAX_WIDTH) return false;
      product *= width;
      return true;
    });
    return { width: product, remaining };
  };
  const narrowed = (tree: TypeTree): TypeTree =>
    tree.kind === "intersection"
      ? intersectionOf(measureOf(tree).remaining.map(narrowed))
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
