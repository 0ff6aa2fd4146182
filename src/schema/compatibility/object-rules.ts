import type { Steps } from "../../runtime/yielding.ts";
import type { TextWitness } from "../patterns/search.ts";
import { TYPE } from "../validate/values.ts";
import { boundsOf } from "./bounds.ts";
import { Conjunction } from "./conjunction.ts";
import { matches } from "./evaluate.ts";
import { type Obligation, type KeywordRule, NAME, type Prover, type Proof } from "./obligation.ts";
import type { SchemaNode } from "../node.ts";

/** What a schema says about objects, name by name. */
export function* objectRules(right: SchemaNode): Generator<KeywordRule> {
  for (const name of right.required) yield { keyword: "required", member: name, holds: isRequired(name) };
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
    const follows: Holds = (obligation, prover) => prover.prove({ ...obligation, right: inner });
    yield { keyword: "dependencies", member: name, holds: dependencyHolds(name, follows) };
  }
}

type Holds = KeywordRule["holds"];

const aboutObjects =
  (holds: Holds): Holds =>
  (obligation, prover) =>
    (boundsOf(obligation.left).types & TYPE.object) === 0 || holds(obligation, prover);

function isRequired(name: string): Holds {
  return aboutObjects(({ left }) => boundsOf(left).required.has(name));
}

/**
 * A name the old schema does not mention is no promise of its: what it may newly hold breaks no producer. One that no value
 * is allowed under does: that is no new property, it closes the object to that name.
 */
function* isNew(obligation: Obligation, prover: Prover, name: string): Proof {
  const inner = obligation.right.properties.get(name);
  if (obligation.strict || prover.side !== "producer" || inner === undefined) return false;
  if (prover.mentions(obligation.known, name)) return false;
  const allowed = prover.member(obligation, name, inner, new Conjunction({ nodes: [inner] }));
  return !(yield* prover.isEmpty(allowed.left, allowed));
}

function memberHolds(name: string, inner: SchemaNode): Holds {
  return aboutObjects(function* (obligation, prover) {
    if (!mayBeNamed(obligation.left, name) || (yield* isNew(obligation, prover, name))) return true;
    if (isRemoved(obligation, prover, name)) {
      const { right, location, violations } = obligation;
      violations.push({ right, keyword: "properties", member: name, location, isRemoved: true });
      return false;
    }
    if (inner.allowsAll) return true;
    return yield* prover.prove(prover.member(obligation, name, inner));
  });
}

/**
 * Whether the new schema does not know a name any more. Of a property that may hold anything nothing was promised but the
 * name; its consumers read it all the same.
 */
function isRemoved({ left, strict }: Obligation, prover: Prover, name: string): boolean {
  if (strict || prover.side !== "consumer") return false;
  return !left.nodes.some(
    (node) =>
      node.memberNodes(name).length > 0 || node.required.includes(name) || isNamedInChoice(node, name),
  );
}

function isNamedInChoice(node: SchemaNode, name: string): boolean {
  const branches = [...node.anyOf, ...node.oneOf, node.if, node.then, node.else];
  return branches.some((inner) => {
    const target = inner?.target ?? inner;
    return target !== undefined && (target.memberNodes(name).length > 0 || target.required.includes(name));
  });
}

function mayBeNamed(left: Conjunction, name: string): boolean {
  return left.name().nodes.every((node) => matches(node, name)) && left.member(name).types !== 0;
}

function patternHolds(pattern: string, inner: SchemaNode): Holds {
  return aboutObjects(function* (obligation, prover) {
    let fine = true;
    for (const name of namesOnLeft(obligation.left)) {
      const matches = obligation.right.matchesPattern(pattern, name);
      if (!matches || !mayBeNamed(obligation.left, name) || (yield* isNew(obligation, prover, name)))
        continue;
      if (!(yield* prover.prove(prover.member(obligation, name, inner)))) fine = false;
    }
    for (const other of yield* unlistedNames(obligation.left, obligation.right, prover.texts)) {
      if (!other.matches.includes(pattern)) continue;
      if (!(yield* prover.prove(other.obligation(obligation, prover, inner)))) fine = false;
    }
    return fine;
  });
}

function* othersHold(obligation: Obligation, prover: Prover): Proof {
  const { left, right, strict } = obligation;
  if ((boundsOf(left).types & TYPE.object) === 0) return true;
  const inner = right.additionalProperties!;
  // A consumer passes over members it does not know.
  if (inner.allowsNone && prover.side === "consumer" && !strict) return true;
  let fine = true;
  for (const name of namesOnLeft(left)) {
    const isListed = right.properties.has(name) || right.hasPatternFor(name);
    if (isListed || !mayBeNamed(left, name)) continue;
    const one = prover.member(obligation, name, inner);
    if (!inner.allowsNone) fine = (yield* prover.prove(one)) && fine;
    else if (!(yield* prover.isEmpty(one.left, one))) {
      const { location, violations } = obligation;
      violations.push({ right, keyword: "additionalProperties", member: name, location, isRemoved: true });
      fine = false;
    }
  }
  for (const other of yield* unlistedNames(left, right, prover.texts)) {
    if (other.matches.some((pattern) => right.patternProperties.has(pattern))) continue;
    const one = other.obligation(obligation, prover, inner);
    if (!inner.allowsNone) fine = (yield* prover.prove(one)) && fine;
    else if (!(yield* prover.isEmpty(one.left, one))) {
      const { location, violations } = obligation;
      violations.push({ right, keyword: "additionalProperties", member: undefined, location });
      fine = false;
    }
  }
  return fine;
}

/** The names the schemas of a case list: in `properties`, and where names themselves are listed. */
function namesOnLeft(left: Conjunction): string[] {
  const listed = boundsOf(left.name()).values ?? [];
  const names = left.nodes.flatMap(({ properties }) => [...properties.keys()]);
  return [...new Set([...names, ...(listed as string[]), ...boundsOf(left).required])];
}

function* namesHold(obligation: Obligation, prover: Prover): Proof {
  const { left, right } = obligation;
  const bounds = boundsOf(left);
  if ((bounds.types & TYPE.object) === 0 || bounds.maxProperties === 0) return true;
  const inner = right.propertyNames!;
  const others = yield* unlistedNames(left, right, prover.texts);
  const isClosed = others.every((other) => other.left.types === 0);
  if (isClosed) {
    for (const name of namesOnLeft(left)) {
      if (!mayBeNamed(left, name) || matches(inner, name)) continue;
      const one = prover.member(obligation, name, inner);
      if (!(yield* prover.isEmpty(one.left, one))) return false;
    }
    return true;
  }
  const names = left.name();
  const location = { parent: obligation.location, step: NAME, left: names } as const;
  return yield* prover.prove({
    ...obligation,
    left: names,
    right: inner,
    depth: obligation.depth + 1,
    location,
  });
}

/** What must hold of the objects that have a member of that name. */
function dependencyHolds(name: string, follows: Holds): Holds {
  return aboutObjects(function* (obligation, prover) {
    if (!mayBeNamed(obligation.left, name) || (yield* isNew(obligation, prover, name))) return true;
    const left = obligation.left.with({ present: [name], types: TYPE.object });
    const holds = follows({ ...obligation, left, location: { ...obligation.location, left } }, prover);
    return typeof holds === "boolean" ? holds : yield* holds;
  });
}

function namesFollow(needed: readonly string[]): Holds {
  return (obligation, prover) => {
    const { required } = boundsOf(obligation.left);
    return needed.every((other) => required.has(other)) || prover.isEmpty(obligation.left, obligation);
  };
}

/** Members whose names no schema lists, told apart by the patterns their names match. */
interface UnlistedNames {
  readonly matches: readonly string[];
  /** One such name, where one was found. */
  readonly name: string | undefined;
  /** What such a member is. */
  readonly left: Conjunction;
  obligation(obligation: Obligation, prover: Prover, right: SchemaNode): Obligation;
}

/** Beyond this many patterns the ways to match them are too many; nothing is taken for granted then. */
const MAX_PATTERNS = 4;
const KINDS_PER_STEP = 50;
/** Names of members that no schema has, for payloads that show something. */
const UNUSUAL = ["unlisted", "unlisted1", "another-name", "zz"];

const unlistedNamesCache = new WeakMap<Conjunction, Map<SchemaNode, UnlistedNames[]>>();

/** The kinds of names that neither the case nor the schema lists. */
export function* unlistedNames(
  left: Conjunction,
  right: SchemaNode,
  texts: TextWitness,
): Steps<UnlistedNames[]> {
  let byNode = unlistedNamesCache.get(left);
  if (byNode === undefined) unlistedNamesCache.set(left, (byNode = new Map()));
  const found = byNode.get(right) ?? (yield* kinds(left, right, texts));
  byNode.set(right, found);
  return found;
}

function* kinds(left: Conjunction, right: SchemaNode, texts: TextWitness): Steps<UnlistedNames[]> {
  const names = boundsOf(left.name());
  if (names.types === 0 || names.values !== undefined) return [];
  const all = [...left.nodes, right];
  const patterns = [...new Set(all.flatMap((node) => [...node.patternProperties.keys()]))];
  const listed = new Set(all.flatMap(({ properties }) => [...properties.keys()]));
  if (patterns.length > MAX_PATTERNS) return yield* coarseKinds(left, right, patterns);
  const found: UnlistedNames[] = [];
  for (let bits = 0; bits < 1 << patterns.length; bits++) {
    const matches = patterns.filter((_, index) => (bits & (1 << index)) !== 0);
    const text = yield* texts.find({
      matching: [...names.patterns, ...matches],
      notMatching: patterns.filter((pattern) => !matches.includes(pattern)),
      minLength: names.minLength,
      maxLength: names.maxLength,
    });
    if (text === "none") continue;
    const usual = UNUSUAL.find((name) => !listed.has(name) && fits(all, name, matches) && isName(left, name));
    const sample = usual ?? (text !== "unknown" && !listed.has(text.text) ? text.text : undefined);
    const inner = new Conjunction({ nodes: left.nodes.flatMap((node) => held(node, matches)) });
    found.push({ name: sample, matches, left: inner, obligation: obligationFor(sample, inner, left) });
  }
  return found;
}

/** What a member is held to whose name matches these patterns and no other. */
function held(node: SchemaNode, matches: readonly string[]): SchemaNode[] {
  const found = matches.flatMap((pattern) => node.patternProperties.get(pattern) ?? []);
  if (found.length === 0 && node.additionalProperties !== undefined) return [node.additionalProperties];
  return found;
}

/**
 * With too many patterns to tell all ways apart: the names that match one of them, whatever else they match, and those that
 * match none of the schema's. Only what holds for all such names is known.
 */
function* coarseKinds(
  left: Conjunction,
  right: SchemaNode,
  patterns: readonly string[],
): Steps<UnlistedNames[]> {
  const certain = left.nodes.filter((node) => node.patternProperties.size === 0);
  const unmatched = left.nodes.filter((node) =>
    [...node.patternProperties.keys()].every((pattern) => right.patternProperties.has(pattern)),
  );
  const matched = new Map<string, SchemaNode[]>();
  for (const [pattern, inner] of left.nodes.flatMap((node) => [...node.patternProperties])) {
    matched.set(pattern, [...(matched.get(pattern) ?? []), inner]);
  }
  const coarse = (matches: readonly string[], nodes: readonly SchemaNode[]): UnlistedNames => {
    const inner = new Conjunction({ nodes: nodes });
    return { name: undefined, matches, left: inner, obligation: obligationFor(undefined, inner, left) };
  };
  const found = [coarse([], additional(unmatched))];
  for (const pattern of patterns) {
    if (found.length % KINDS_PER_STEP === 0) yield;
    found.push(coarse([pattern], [...additional(certain), ...(matched.get(pattern) ?? [])]));
  }
  return found;
}

function additional(nodes: readonly SchemaNode[]): SchemaNode[] {
  return nodes.flatMap(({ additionalProperties }) => additionalProperties ?? []);
}

/** The obligation about one of several names, which stands for the others. */
function obligationFor(
  name: string | undefined,
  inner: Conjunction,
  around: Conjunction,
): UnlistedNames["obligation"] {
  return (obligation, prover, right) => {
    const one = prover.member(obligation, name ?? "", right, inner);
    // What the old schema mentions further inside must be the same for all of them.
    const isTypical =
      name !== undefined && obligation.known.nodes.every((node) => isAmong(node, around.nodes));
    return isTypical ? one : { ...one, strict: true };
  };
}

/** Whether some of the schemas list all the names and patterns that this one lists. */
function isAmong({ properties, patternProperties }: SchemaNode, nodes: readonly SchemaNode[]): boolean {
  return (
    [...properties.keys()].every((name) => nodes.some((node) => node.properties.has(name))) &&
    [...patternProperties.keys()].every((pattern) =>
      nodes.some((node) => node.patternProperties.has(pattern)),
    )
  );
}

function fits(nodes: readonly SchemaNode[], name: string, matches: readonly string[]): boolean {
  return nodes.every((node) =>
    [...node.patternProperties.keys()].every(
      (pattern) => node.matchesPattern(pattern, name) === matches.includes(pattern),
    ),
  );
}

function isName(left: Conjunction, name: string): boolean {
  return left.name().nodes.every((node) => matches(node, name));
}
