import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import { ANY, canonicalText, TYPE, typeOf, typesNamed } from "../validate/values.ts";

/** Values by their canonical text. */
export type ValueMap = ReadonlyMap<string, unknown>;

export function smallest(maps: Iterable<ValueMap | undefined>): ValueMap | undefined {
  let values: ValueMap | undefined;
  for (const map of maps) {
    if (map !== undefined && (values === undefined || map.size < values.size)) values = map;
  }
  return values;
}

/** The schema and all that must hold with it, through references and `allOf`. */
const partsOf = memoize((node: SchemaNode): readonly SchemaNode[] => {
  const parts = new Set<SchemaNode>();
  const visit = (inner: SchemaNode): void => {
    spend(1);
    if (parts.has(inner)) return;
    if (inner.target !== undefined) return visit(inner.target);
    parts.add(inner);
    inner.allOf.forEach(visit);
  };
  visit(node);
  return [...parts];
});

/** The only types that values of the schema can have, as far as can be seen at once. */
export const typesOf = memoize((node: SchemaNode): number => {
  let types = ANY;
  for (const part of partsOf(node)) types &= part.allowsNone ? 0 : typesNamed(part.value("type"));
  const listed = finiteValuesOf(node);
  if (listed === undefined) return types;
  let listedTypes = 0;
  for (const value of listed.values()) listedTypes |= typeOf(value);
  return types & listedTypes;
});

/** The only values that the schema can have, where it lists them: in `const`, `enum`, or in each of its branches. */
export const finiteValuesOf: (node: SchemaNode) => ValueMap | undefined = memoize(
  (node: SchemaNode) => smallest(partsOf(node).flatMap((part) => Array.from(finiteValuesIn(part)))),
  { value: undefined },
);

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

/** Lists the values of a member of that name. */
function finiteValuesAt(node: SchemaNode, name: string): ValueMap | undefined {
  return smallest(membersOf(node, name).map(finiteValuesOf));
}

/** Schemas that a member of that name must conform to. Patterns of names are not looked at. */
function membersOf(node: SchemaNode, name: string): readonly SchemaNode[] {
  return partsOf(node).flatMap(({ properties, patternProperties, additionalProperties }) => {
    const others = patternProperties.size === 0 ? additionalProperties : undefined;
    return properties.get(name) ?? others ?? [];
  });
}

function haveNoCommonValue(one: ValueMap | undefined, other: ValueMap | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  const [few, many] = one.size < other.size ? [one, other] : [other, one];
  spend(few.size);
  for (const key of few.keys()) if (many.has(key)) return false;
  return true;
}

const STEPS_PER_PAIR = 3;

const disjointCache = memoize((_node: SchemaNode) => new Map<SchemaNode, boolean>());

/**
 * Whether plainly no value conforms to both: by types, finite values, or the finite values of a required member. Anything
 * more would take too long for hundreds of branches.
 */
export function areDisjoint(one: SchemaNode, other: SchemaNode): boolean {
  const [left, right] = [one.resolved, other.resolved];
  const known = disjointCache(left);
  let disjoint = known.get(right);
  if (disjoint === undefined) {
    // Where the computation comes back here, nothing is known yet.
    known.set(right, false);
    disjoint = compareDisjoint(left, right);
    known.set(right, disjoint);
  }
  return disjoint;
}

function compareDisjoint(one: SchemaNode, other: SchemaNode): boolean {
  spend(STEPS_PER_PAIR);
  const shared = typesOf(one) & typesOf(other);
  if (shared === 0 || haveNoCommonValue(finiteValuesOf(one), finiteValuesOf(other))) return true;
  if (allBranchesDisjoint(one, other) || allBranchesDisjoint(other, one)) return true;
  if (shared !== TYPE.object) return false;
  return [...partsOf(one), ...partsOf(other)].some(({ required }) => {
    spend(required.length);
    return required.some((name) => haveNoCommonValue(finiteValuesAt(one, name), finiteValuesAt(other, name)));
  });
}

/** Whether all branches of one union in the schema are disjoint from the other schema. */
function allBranchesDisjoint(one: SchemaNode, other: SchemaNode): boolean {
  return partsOf(one).some((part) =>
    (["anyOf", "oneOf"] as const).some(
      (keyword) => part[keyword].length > 0 && part[keyword].every((branch) => areDisjoint(branch, other)),
    ),
  );
}

/** The branches of an `anyOf` or `oneOf` that may share values with the schema. */
export function branchesNear(branches: readonly SchemaNode[], other: SchemaNode): readonly SchemaNode[] {
  return branches.filter((branch) => !areDisjoint(branch, other));
}

/** How deep in a value contradictions are looked for. */
const MAX_LEVELS = 16;

/**
 * The part of the first schema to which plainly no value conforms that the second allows. It is looked for in the members that
 * the first requires, as a value without another member conforms.
 */
export function contradictionOf(
  one: SchemaNode,
  other: SchemaNode,
  levels = MAX_LEVELS,
): SchemaNode | undefined {
  if (areDisjoint(one, other)) return one.resolved;
  if (levels === 0) return undefined;
  for (const name of partsOf(one).flatMap(({ required }) => required)) {
    for (const inner of membersOf(one, name)) {
      for (const otherInner of membersOf(other, name)) {
        const contradiction = contradictionOf(inner, otherInner, levels - 1);
        if (contradiction !== undefined) return contradiction;
      }
    }
  }
  return undefined;
}
