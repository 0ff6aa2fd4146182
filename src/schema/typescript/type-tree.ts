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
  return joined("intersection", specific.length > 0 ? fewUnions(specific) : known.slice(0, 1), UNKNOWN);
}

/** Combinations that the unions in an intersection may multiply out to. The compiler gives up at 100,000. */
const MAX_COMBINATIONS = 1_000;

/** Without the unions beyond that, which only makes a type wider. */
function fewUnions(parts: readonly TypeTree[]): readonly TypeTree[] {
  let combinations = 1;
  return parts.filter((part) => {
    const alternatives = part.kind === "union" ? part.parts.length : 1;
    if (alternatives > 1 && combinations * alternatives > MAX_COMBINATIONS) return false;
    combinations *= alternatives;
    return true;
  });
}

export function typesIn(tree: TypeTree): readonly TypeTree[] {
  if (tree.kind === "list") return [tree.item];
  if (tree.kind === "union" || tree.kind === "intersection") return tree.parts;
  if (tree.kind === "tuple") return [...tree.items.map(({ type }) => type), ...listed(tree.rest)];
  if (tree.kind === "object") return [...tree.members.map(({ type }) => type), ...listed(tree.index)];
  return [];
}

/** Whether it is written without members or places: words, names, and lists and unions of those. */
export function isFlat(tree: TypeTree): boolean {
  if (tree === ANY_OBJECT || tree.kind === "word" || tree.kind === "reference") return true;
  if (tree.kind === "list") return isFlat(tree.item);
  return tree.kind === "union" && tree.parts.every(isFlat);
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
