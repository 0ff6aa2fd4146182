import { isObject } from "../keywords.ts";
import { spend } from "../limits.ts";
import { ANY, canonicalText, TYPE, typeOf, typesNamed } from "../validate/values.ts";
import type { SchemaNode } from "../node.ts";

/** Values by a text that equal ones share. */
export type ValueMap = ReadonlyMap<string, unknown>;

const partsCache = new WeakMap<SchemaNode, readonly SchemaNode[]>();
const typesCache = new WeakMap<SchemaNode, number>();
const disjointCache = new WeakMap<SchemaNode, Map<SchemaNode, boolean>>();

/** The schema and all that must hold with it, through references and `allOf`. */
function partsOf(node: SchemaNode): readonly SchemaNode[] {
  let parts = partsCache.get(node);
  if (parts === undefined) {
    const found = new Set<SchemaNode>();
    gather(node, found);
    partsCache.set(node, (parts = [...found]));
  }
  return parts;
}

function gather(node: SchemaNode, parts: Set<SchemaNode>): void {
  spend(1);
  if (parts.has(node)) return;
  if (node.target !== undefined) {
    gather(node.target, parts);
    return;
  }
  parts.add(node);
  for (const inner of node.allOf) gather(inner, parts);
}

/** Types beyond which no value of the schema is, in plain sight. */
export function typesOf(node: SchemaNode): number {
  let types = typesCache.get(node);
  if (types === undefined) typesCache.set(node, (types = findTypes(node)));
  return types;
}

function findTypes(node: SchemaNode): number {
  let types = ANY;
  for (const part of partsOf(node)) types &= part.allowsNone ? 0 : typesNamed(part.value("type"));
  const listed = finiteValuesOf(node);
  if (listed === undefined) return types;
  let found = 0;
  for (const value of listed.values()) found |= typeOf(value);
  return types & found;
}

/** `null` where a schema lists no values, and while they are looked for. */
const finiteValuesCache = new WeakMap<SchemaNode, ValueMap | null>();

/** Values beyond which the schema has none, where it lists them: in `const`, `enum`, or in each of its branches. */
export function finiteValuesOf(node: SchemaNode): ValueMap | undefined {
  const known = finiteValuesCache.get(node);
  if (known !== undefined) return known ?? undefined;
  // Who comes back here meanwhile knows nothing of them.
  finiteValuesCache.set(node, null);
  let shortest: ValueMap | null = null;
  for (const part of partsOf(node)) {
    for (const list of finiteValuesIn(part))
      if (shortest === null || list.size < shortest.size) shortest = list;
  }
  finiteValuesCache.set(node, shortest);
  return shortest ?? undefined;
}

function* finiteValuesIn(part: SchemaNode): Generator<ValueMap> {
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

function keyed(values: readonly unknown[]): ValueMap {
  return new Map(values.map((value) => [canonicalText(value), value]));
}

function union(branches: readonly SchemaNode[]): ValueMap | undefined {
  const all = new Map<string, unknown>();
  for (const branch of branches) {
    const listed = finiteValuesOf(branch);
    if (listed === undefined) return undefined;
    spend(listed.size);
    for (const [key, value] of listed) all.set(key, value);
  }
  return all;
}

/** The same of a member that it may have. */
function finiteValuesAt(node: SchemaNode, name: string): ValueMap | undefined {
  let shortest: ValueMap | undefined;
  for (const { properties } of partsOf(node)) {
    const inner = properties.get(name);
    const listed = inner === undefined ? undefined : finiteValuesOf(inner);
    if (listed !== undefined && (shortest === undefined || listed.size < shortest.size)) shortest = listed;
  }
  return shortest;
}

function haveNoCommonValue(one: ValueMap | undefined, other: ValueMap | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  const [few, many] = one.size < other.size ? [one, other] : [other, one];
  spend(few.size);
  for (const key of few.keys()) if (many.has(key)) return false;
  return true;
}

/**
 * Whether no value conforms to both, seen without looking far: by their types, their listed values, or a member that one
 * asks for and whose listed values the two do not share. That is how the branches of a choice are mostly told apart, and
 * with many of them everything else would take too long.
 */
export function areDisjoint(one: SchemaNode, other: SchemaNode): boolean {
  const [left, right] = [targetOf(one), targetOf(other)];
  let known = disjointCache.get(left);
  if (known === undefined) disjointCache.set(left, (known = new Map()));
  let disjoint = known.get(right);
  if (disjoint === undefined) {
    // Who comes back here meanwhile knows nothing of it.
    known.set(right, false);
    disjoint = compareDisjoint(left, right);
    known.set(right, disjoint);
  }
  return disjoint;
}

function compareDisjoint(one: SchemaNode, other: SchemaNode): boolean {
  spend(10);
  const shared = typesOf(one) & typesOf(other);
  if (shared === 0 || haveNoCommonValue(finiteValuesOf(one), finiteValuesOf(other))) return true;
  if (allBranchesDisjoint(one, other) || allBranchesDisjoint(other, one)) return true;
  if (shared !== TYPE.object) return false;
  return [...partsOf(one), ...partsOf(other)].some(({ required }) => {
    spend(required.length);
    return required.some((name) => haveNoCommonValue(finiteValuesAt(one, name), finiteValuesAt(other, name)));
  });
}

/** Whether all that a schema leaves to choose from disjoint with the other. */
function allBranchesDisjoint(one: SchemaNode, other: SchemaNode): boolean {
  return partsOf(one).some((part) =>
    (["anyOf", "oneOf"] as const).some(
      (keyword) => part[keyword].length > 0 && branchesOf(part, keyword).near(other).length === 0,
    ),
  );
}

function targetOf(node: SchemaNode): SchemaNode {
  return node.target === undefined ? node : targetOf(node.target);
}

/** So few are looked at one by one. */
const FEW = 4;

/** What tells branches apart: the listed values of a member that they ask for, or the value itself. */
type Tag = { readonly name: string | undefined };

/**
 * The branches of an `anyOf` or `oneOf`, found by what tells them apart. Of the hundreds there may be, a value or another
 * schema has something to do with one or two.
 */
export class Branches {
  readonly list: readonly SchemaNode[];
  readonly #tag: Tag | undefined;
  /** Branches by each value of the tag they list. */
  readonly #tagged = new Map<string, SchemaNode[]>();
  readonly #untagged: SchemaNode[] = [];
  readonly #byPointer = new Map<string, SchemaNode>();

  constructor(list: readonly SchemaNode[]) {
    this.list = list;
    this.#tag = list.length <= FEW ? undefined : tagOf(list);
    for (const branch of list) {
      spend(2);
      const listed = this.#tag === undefined ? undefined : tagValues(branch, this.#tag);
      if (listed === undefined) this.#untagged.push(branch);
      for (const key of listed?.keys() ?? []) {
        const tagged = this.#tagged.get(key);
        if (tagged === undefined) this.#tagged.set(key, [branch]);
        else tagged.push(branch);
      }
      for (const pointer of [branch.target?.pointer, branch.pointer]) {
        if (pointer !== undefined && !this.#byPointer.has(pointer)) this.#byPointer.set(pointer, branch);
      }
    }
  }

  /** The branch that stands there, or refers to what does. */
  at(pointer: string): SchemaNode | undefined {
    return this.#byPointer.get(pointer);
  }

  /** Those to which the value may conform; all others refuse it. */
  forValue(value: unknown): readonly SchemaNode[] {
    if (this.#tag === undefined) return this.list;
    const { name } = this.#tag;
    if (name === undefined) return this.#having([canonicalText(value)]);
    return isObject(value) && Object.hasOwn(value, name)
      ? this.#having([canonicalText(value[name])])
      : this.#untagged;
  }

  /** Those that may share values with the schema. */
  near(other: SchemaNode): readonly SchemaNode[] {
    return this.related([other]).filter((branch) => !areDisjoint(branch, other));
  }

  /** Those that may share values with all of the schemas together, as far as the tag tells. */
  related(nodes: readonly SchemaNode[]): readonly SchemaNode[] {
    let shortest: ValueMap | undefined;
    for (const node of nodes) {
      const listed = this.#listedIn(node);
      if (listed !== undefined && (shortest === undefined || listed.size < shortest.size)) shortest = listed;
    }
    const found = shortest === undefined ? this.list : this.#having(shortest.keys());
    spend(found.length);
    return found;
  }

  #listedIn(node: SchemaNode): ValueMap | undefined {
    if (this.#tag === undefined) return undefined;
    return this.#tag.name === undefined ? finiteValuesOf(node) : finiteValuesAt(node, this.#tag.name);
  }

  #having(keys: Iterable<string>): readonly SchemaNode[] {
    const found = new Set<SchemaNode>();
    for (const key of keys) {
      spend(1);
      for (const branch of this.#tagged.get(key) ?? []) found.add(branch);
    }
    return [...found, ...this.#untagged];
  }
}

const branchesCache = {
  anyOf: new WeakMap<SchemaNode, Branches>(),
  oneOf: new WeakMap<SchemaNode, Branches>(),
};

export function branchesOf(node: SchemaNode, keyword: "anyOf" | "oneOf"): Branches {
  let branches = branchesCache[keyword].get(node);
  if (branches === undefined) branchesCache[keyword].set(node, (branches = new Branches(node[keyword])));
  return branches;
}

/** The tag that most of the branches have. */
function tagOf(list: readonly SchemaNode[]): Tag | undefined {
  const counts = new Map<string | undefined, number>();
  for (const branch of list) {
    for (const name of tagsOf(branch)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const [most] = [...counts].toSorted(([, one], [, other]) => other - one);
  return most === undefined ? undefined : { name: most[0] };
}

function tagsOf(branch: SchemaNode): readonly (string | undefined)[] {
  if (finiteValuesOf(branch) !== undefined) return [undefined];
  if (typesOf(branch) !== TYPE.object) return [];
  const asked = partsOf(branch).flatMap(({ required }) => required);
  spend(asked.length);
  return [...new Set(asked)].filter((name) => finiteValuesAt(branch, name) !== undefined);
}

/** What a branch lists for a tag that each of its values has. */
function tagValues(branch: SchemaNode, { name }: Tag): ValueMap | undefined {
  if (name === undefined) return finiteValuesOf(branch);
  const isAsked = partsOf(branch).some(({ required }) => required.includes(name));
  return isAsked && typesOf(branch) === TYPE.object ? finiteValuesAt(branch, name) : undefined;
}
