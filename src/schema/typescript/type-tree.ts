import type { SchemaNode } from "../document.ts";

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
      /** What a member of any other name is; `undefined` where nothing is said of them. */
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

export function word(text: string): TypeTree {
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
  // Beside a type that says more it would only allow any name to be read.
  const telling = known.filter((part) => part !== ANY_OBJECT);
  return joined("intersection", telling.length > 0 ? telling : known.slice(0, 1), UNKNOWN);
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
