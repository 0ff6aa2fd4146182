import type { SchemaNode } from "../node.ts";
import type { TextWitness } from "../patterns/search.ts";
import { TYPE } from "../validate/values.ts";
import { boundsOf } from "./bounds.ts";
import { Conjunction } from "./conjunction.ts";
import { matches } from "../validate/evaluate.ts";
import {
  type KeywordRule,
  memberObligation,
  nameObligation,
  narrowed,
  type Obligation,
  type Prover,
} from "./obligation.ts";

/** What a schema says about objects, name by name. */
export function* objectRules(right: SchemaNode): Generator<KeywordRule> {
  for (const name of right.required) {
    yield { keyword: "required", member: name, holds: ({ left }) => boundsOf(left).required.has(name) };
  }
  for (const [name, inner] of right.properties) {
    yield { keyword: "properties", member: name, holds: memberHolds(name, inner) };
  }
  for (const [pattern, inner] of right.patternProperties) {
    yield { keyword: "patternProperties", member: pattern, holds: patternHolds(pattern, inner) };
  }
  if (right.keywords.includes("additionalProperties")) {
    yield { keyword: "additionalProperties", holds: othersHold };
  }
  if (right.keywords.includes("propertyNames")) yield { keyword: "propertyNames", holds: namesHold };
  for (const [name, needed] of right.dependentNames) {
    yield { keyword: "dependencies", member: name, holds: dependencyHolds(name, namesFollow(needed)) };
  }
  for (const [name, inner] of right.dependentSchemas) {
    const follows: RuleCheck = (obligation, prover) => prover.prove({ ...obligation, right: inner });
    yield { keyword: "dependencies", member: name, holds: dependencyHolds(name, follows) };
  }
}

type RuleCheck = KeywordRule["holds"];

/** The old schema promises nothing about a name it does not mention, unless the new one allows no value there. */
function isNew(obligation: Obligation, prover: Prover, name: string): boolean {
  const inner = obligation.right.properties.get(name);
  if (obligation.strict || prover.side !== "producer" || inner === undefined) return false;
  if (obligation.known.mention(name)) return false;
  const allowed = memberObligation(obligation, name, inner, new Conjunction({ nodes: [inner] }));
  return !prover.isEmpty(allowed.left, allowed);
}

function memberHolds(name: string, inner: SchemaNode): RuleCheck {
  return function (obligation, prover) {
    if (!mayBeNamed(obligation.left, name) || isNew(obligation, prover, name)) return true;
    if (isRemoved(obligation, prover, name)) {
      const { right, location, violations } = obligation;
      violations.push({ right, keyword: "properties", member: name, location, isRemoved: true });
      return false;
    }
    if (inner.allowsAll) return true;
    return prover.prove(memberObligation(obligation, name, inner));
  };
}

/** Whether the new schema no longer knows a name: consumers read it even where it may hold anything. */
function isRemoved({ left, strict }: Obligation, prover: Prover, name: string): boolean {
  if (strict || prover.side !== "consumer") return false;
  const nodes = left.nodes.flatMap((node) => [
    node,
    ...[...node.anyOf, ...node.oneOf, node.if, node.then, node.else].flatMap(
      (inner) => inner?.resolved ?? [],
    ),
  ]);
  return nodes.every((node) => node.memberNodes(name).length === 0 && !node.required.includes(name));
}

function mayBeNamed(left: Conjunction, name: string): boolean {
  return isName(left, name) && left.member(name).types !== 0;
}

function patternHolds(pattern: string, inner: SchemaNode): RuleCheck {
  return function (obligation, prover) {
    let holds = true;
    const members = membersUnder(obligation, prover, inner, (matched) => matched.includes(pattern));
    for (const { member, one } of members) {
      if (member !== undefined && isNew(obligation, prover, member)) continue;
      holds = prover.prove(one) && holds;
    }
    return holds;
  };
}

function othersHold(obligation: Obligation, prover: Prover): boolean {
  const { right, strict, location, violations } = obligation;
  const inner = right.additionalProperties!;
  // A consumer ignores members it does not know.
  if (inner.allowsNone && prover.side === "consumer" && !strict) return true;
  const isOther = (matched: readonly string[], name?: string): boolean =>
    (name === undefined || !right.properties.has(name)) &&
    !matched.some((pattern) => right.patternProperties.has(pattern));
  let holds = true;
  for (const { member, one } of membersUnder(obligation, prover, inner, isOther)) {
    if (!inner.allowsNone) holds = prover.prove(one) && holds;
    else if (!prover.isEmpty(one.left, one)) {
      const isRemovedMember = member !== undefined && { isRemoved: true };
      violations.push({ right, keyword: "additionalProperties", member, location, ...isRemovedMember });
      holds = false;
    }
  }
  return holds;
}

/** The obligations about the members that the right side has a schema for, by the patterns that match and by name if known. */
function membersUnder(
  obligation: Obligation,
  prover: Prover,
  inner: SchemaNode,
  isUnder: (matched: readonly string[], name?: string) => boolean,
): { readonly member: string | undefined; readonly one: Obligation }[] {
  const { left, right } = obligation;
  const patterns = [...right.patternProperties.keys()];
  const listed = namesOnLeft(left).filter((name) => {
    const matched = patterns.filter((pattern) => right.matchesPattern(pattern, name));
    return isUnder(matched, name) && mayBeNamed(left, name);
  });
  const unlisted = unlistedNames(left, right, prover.texts).filter(({ matched }) => isUnder(matched));
  return [
    ...listed.map((member) => ({ member, one: memberObligation(obligation, member, inner) })),
    ...unlisted.map((group) => ({ member: undefined, one: group.obligation(obligation, inner) })),
  ];
}

/** The names that the conjunction lists: in `properties`, in `required`, and as finite values of `propertyNames`. */
function namesOnLeft(left: Conjunction): string[] {
  const listed = boundsOf(left.name()).values ?? [];
  const names = left.nodes.flatMap(({ properties }) => [...properties.keys()]);
  return [...new Set([...names, ...(listed as string[]), ...boundsOf(left).required])];
}

function namesHold(obligation: Obligation, prover: Prover): boolean {
  const { left, right } = obligation;
  if (boundsOf(left).maxProperties === 0) return true;
  return prover.prove(nameObligation(obligation, right.propertyNames!));
}

/** What must hold for objects that have a member of that name. */
function dependencyHolds(name: string, follows: RuleCheck): RuleCheck {
  return function (obligation, prover) {
    if (!mayBeNamed(obligation.left, name) || isNew(obligation, prover, name)) return true;
    const left = obligation.left.with({ present: [name], types: TYPE.object });
    return follows(narrowed(obligation, left), prover);
  };
}

function namesFollow(needed: readonly string[]): RuleCheck {
  return (obligation, prover) => {
    const { required } = boundsOf(obligation.left);
    return needed.every((other) => required.has(other)) || prover.isEmpty(obligation.left, obligation);
  };
}

/** Members whose names no schema lists, grouped by the patterns that their names match. */
interface UnlistedNames {
  readonly matched: readonly string[];
  /** An example of such a name, if one was found. */
  readonly name: string | undefined;
  /** The values of such a member. */
  readonly left: Conjunction;
  obligation(around: Obligation, right: SchemaNode): Obligation;
}

/** Names that hardly any schema lists, for counterexamples. */
const UNUSUAL = ["unlisted", "unlisted1", "another-name", "zz"];

/** One group for the names that match no pattern, and one for each pattern; a name that matches several is in each of theirs. */
export function unlistedNames(left: Conjunction, right: SchemaNode, texts: TextWitness): UnlistedNames[] {
  const { types, values, patterns: namePatterns, minLength, maxLength } = boundsOf(left.name());
  if (types === 0 || values !== undefined) return [];
  const all = [...left.nodes, right];
  const patterns = [...new Set(all.flatMap((node) => [...node.patternProperties.keys()]))];
  const isListed = (name: string): boolean => all.some(({ properties }) => properties.has(name));
  return [[], ...patterns.map((pattern) => [pattern])].flatMap((matched) => {
    // Of several patterns a name may match others as well, so none stands for the group.
    const isExact = matched.length === 0 || patterns.length === 1;
    const usual = UNUSUAL.find((one) => !isListed(one) && fits(all, one, matched) && isName(left, one));
    let name = isExact ? usual : undefined;
    if (isExact && usual === undefined) {
      const notMatching = matched.length === 0 ? patterns : [];
      const matching = [...namePatterns, ...matched];
      const text = texts.find({ matching, notMatching, minLength, maxLength });
      if (text === "none") return [];
      if (text !== "unknown" && !isListed(text.text)) name = text.text;
    }
    const inner = new Conjunction({ nodes: left.nodes.flatMap((node) => held(node, matched, isExact)) });
    return { name, matched, left: inner, obligation: obligationFor(name, inner, left) };
  });
}

/**
 * The schemas for a member whose name matched these patterns.
 * @param isExact whether it matched no other
 */
function held(node: SchemaNode, matched: readonly string[], isExact: boolean): SchemaNode[] {
  const { patternProperties, additionalProperties } = node;
  const schemas = matched.flatMap((pattern) => patternProperties.get(pattern) ?? []);
  const isOther = schemas.length === 0 && (isExact || patternProperties.size === 0);
  return isOther && additionalProperties !== undefined ? [additionalProperties] : schemas;
}

/** Makes an obligation about one name that stands for the whole group. */
function obligationFor(
  name: string | undefined,
  inner: Conjunction,
  around: Conjunction,
): UnlistedNames["obligation"] {
  return (obligation, right) => {
    const one = memberObligation(obligation, name ?? "", right, inner);
    // What the old schema mentions further inside must be the same for the whole group.
    const isTypical =
      name !== undefined && obligation.known.nodes.every((node) => isAmong(node, around.nodes));
    return isTypical ? one : { ...one, strict: true };
  };
}

function isAmong({ properties, patternProperties }: SchemaNode, nodes: readonly SchemaNode[]): boolean {
  return (
    [...properties.keys()].every((name) => nodes.some((node) => node.properties.has(name))) &&
    [...patternProperties.keys()].every((pattern) =>
      nodes.some((node) => node.patternProperties.has(pattern)),
    )
  );
}

function fits(nodes: readonly SchemaNode[], name: string, matched: readonly string[]): boolean {
  return nodes.every((node) =>
    [...node.patternProperties.keys()].every(
      (pattern) => node.matchesPattern(pattern, name) === matched.includes(pattern),
    ),
  );
}

function isName(left: Conjunction, name: string): boolean {
  return left.name().nodes.every((node) => matches(node, name));
}
