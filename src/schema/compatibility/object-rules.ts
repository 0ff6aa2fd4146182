import type { Steps } from "../../runtime/yielding.ts";
import type { TextSearch } from "../patterns/search.ts";
import { TYPE } from "../validate/values.ts";
import { factsOf } from "./bounds.ts";
import { Case } from "./conjunction.ts";
import { accepts } from "./evaluate.ts";
import { type Goal, type KeywordRule, NAME, type Prover, type Showing } from "./obligation.ts";
import type { SchemaNode } from "../node.ts";

/** What a schema says about objects, name by name. */
export function* objectTasks(right: SchemaNode): Generator<KeywordRule> {
  for (const name of right.required) yield { keyword: "required", part: name, holds: isRequired(name) };
  for (const [name, inner] of right.properties) {
    yield { keyword: "properties", part: name, holds: memberHolds(name, inner) };
  }
  for (const [pattern, inner] of right.patternProperties) {
    yield { keyword: "patternProperties", part: pattern, holds: patternHolds(pattern, inner) };
  }
  if (right.keywords.includes("additionalProperties")) {
    yield { keyword: "additionalProperties", holds: othersHold };
  }
  if (right.keywords.includes("propertyNames")) yield { keyword: "propertyNames", holds: namesHold };
  for (const [name, needed] of right.dependentNames) {
    yield { keyword: "dependencies", part: name, holds: dependencyHolds(name, namesFollow(needed)) };
  }
  for (const [name, inner] of right.dependentSchemas) {
    const follows: Holds = (goal, prover) => prover.prove({ ...goal, right: inner });
    yield { keyword: "dependencies", part: name, holds: dependencyHolds(name, follows) };
  }
}

type Holds = KeywordRule["holds"];

const aboutObjects =
  (holds: Holds): Holds =>
  (goal, prover) =>
    (factsOf(goal.left).types & TYPE.object) === 0 || holds(goal, prover);

function isRequired(name: string): Holds {
  return aboutObjects(({ left }) => factsOf(left).required.has(name));
}

/**
 * A name the old schema does not mention is no promise of its: what it may newly hold breaks no producer. One that no value
 * is allowed under does: that is no new property, it closes the object to that name.
 */
function* isNew(goal: Goal, prover: Prover, name: string): Showing {
  const inner = goal.right.properties.get(name);
  if (goal.strict || prover.side !== "producer" || inner === undefined) return false;
  if (prover.mentions(goal.view, name)) return false;
  const allowed = prover.member(goal, name, inner, new Case({ all: [inner] }));
  return !(yield* prover.isImpossible(allowed.left, allowed));
}

function memberHolds(name: string, inner: SchemaNode): Holds {
  return aboutObjects(function* (goal, prover) {
    if (!mayBeNamed(goal.left, name) || (yield* isNew(goal, prover, name))) return true;
    if (isForgotten(goal, prover, name)) {
      const { right, place, findings } = goal;
      findings.push({ right, keyword: "properties", part: name, place, isGone: true });
      return false;
    }
    if (inner.allowsAll) return true;
    return yield* prover.prove(prover.member(goal, name, inner));
  });
}

/**
 * Whether the new schema does not know a name any more. Of a property that may hold anything nothing was promised but the
 * name; its consumers read it all the same.
 */
function isForgotten({ left, strict }: Goal, prover: Prover, name: string): boolean {
  if (strict || prover.side !== "consumer") return false;
  return !left.shapes.some(
    (shape) =>
      shape.memberNodes(name).length > 0 || shape.required.includes(name) || isNamedInChoice(shape, name),
  );
}

function isNamedInChoice(shape: SchemaNode, name: string): boolean {
  const branches = [...shape.anyOf, ...shape.oneOf, shape.if, shape.then, shape.else];
  return branches.some((inner) => {
    const target = inner?.target ?? inner;
    return target !== undefined && (target.memberNodes(name).length > 0 || target.required.includes(name));
  });
}

function mayBeNamed(left: Case, name: string): boolean {
  return left.name().shapes.every((shape) => accepts(shape, name)) && left.member(name).types !== 0;
}

function patternHolds(pattern: string, inner: SchemaNode): Holds {
  return aboutObjects(function* (goal, prover) {
    let fine = true;
    for (const name of namesOnLeft(goal.left)) {
      const matches = goal.right.matchesPattern(pattern, name);
      if (!matches || !mayBeNamed(goal.left, name) || (yield* isNew(goal, prover, name))) continue;
      if (!(yield* prover.prove(prover.member(goal, name, inner)))) fine = false;
    }
    for (const other of yield* otherNames(goal.left, goal.right, prover.texts)) {
      if (!other.matches.includes(pattern)) continue;
      if (!(yield* prover.prove(other.goal(goal, prover, inner)))) fine = false;
    }
    return fine;
  });
}

function* othersHold(goal: Goal, prover: Prover): Showing {
  const { left, right, strict } = goal;
  if ((factsOf(left).types & TYPE.object) === 0) return true;
  const inner = right.additionalProperties!;
  // A consumer passes over members it does not know.
  if (inner.allowsNone && prover.side === "consumer" && !strict) return true;
  let fine = true;
  for (const name of namesOnLeft(left)) {
    const isListed = right.properties.has(name) || right.hasPatternFor(name);
    if (isListed || !mayBeNamed(left, name)) continue;
    const one = prover.member(goal, name, inner);
    if (!inner.allowsNone) fine = (yield* prover.prove(one)) && fine;
    else if (!(yield* prover.isImpossible(one.left, one))) {
      const { place, findings } = goal;
      findings.push({ right, keyword: "additionalProperties", part: name, place, isGone: true });
      fine = false;
    }
  }
  for (const other of yield* otherNames(left, right, prover.texts)) {
    if (other.matches.some((pattern) => right.patternProperties.has(pattern))) continue;
    const one = other.goal(goal, prover, inner);
    if (!inner.allowsNone) fine = (yield* prover.prove(one)) && fine;
    else if (!(yield* prover.isImpossible(one.left, one))) {
      const { place, findings } = goal;
      findings.push({ right, keyword: "additionalProperties", part: undefined, place });
      fine = false;
    }
  }
  return fine;
}

/** The names the schemas of a case list: in `properties`, and where names themselves are listed. */
function namesOnLeft(left: Case): string[] {
  const listed = factsOf(left.name()).values ?? [];
  const names = left.shapes.flatMap(({ properties }) => [...properties.keys()]);
  return [...new Set([...names, ...(listed as string[]), ...factsOf(left).required])];
}

function* namesHold(goal: Goal, prover: Prover): Showing {
  const { left, right } = goal;
  const facts = factsOf(left);
  if ((facts.types & TYPE.object) === 0 || facts.maxProperties === 0) return true;
  const inner = right.propertyNames!;
  const others = yield* otherNames(left, right, prover.texts);
  const isClosed = others.every((other) => other.left.types === 0);
  if (isClosed) {
    for (const name of namesOnLeft(left)) {
      if (!mayBeNamed(left, name) || accepts(inner, name)) continue;
      const one = prover.member(goal, name, inner);
      if (!(yield* prover.isImpossible(one.left, one))) return false;
    }
    return true;
  }
  const names = left.name();
  const place = { parent: goal.place, step: NAME, left: names } as const;
  return yield* prover.prove({ ...goal, left: names, right: inner, depth: goal.depth + 1, place });
}

/** What must hold of the objects that have a member of that name. */
function dependencyHolds(name: string, follows: Holds): Holds {
  return aboutObjects(function* (goal, prover) {
    if (!mayBeNamed(goal.left, name) || (yield* isNew(goal, prover, name))) return true;
    const left = goal.left.with({ present: [name], types: TYPE.object });
    const holds = follows({ ...goal, left, place: { ...goal.place, left } }, prover);
    return typeof holds === "boolean" ? holds : yield* holds;
  });
}

function namesFollow(needed: readonly string[]): Holds {
  return (goal, prover) => {
    const { required } = factsOf(goal.left);
    return needed.every((other) => required.has(other)) || prover.isImpossible(goal.left, goal);
  };
}

/** Members whose names no schema lists, told apart by the patterns their names match. */
interface OtherNames {
  readonly matches: readonly string[];
  /** One such name, where one was found. */
  readonly name: string | undefined;
  /** What such a member is. */
  readonly left: Case;
  goal(goal: Goal, prover: Prover, right: SchemaNode): Goal;
}

/** Beyond this many patterns the ways to match them are too many; nothing is taken for granted then. */
const MAX_PATTERNS = 4;
const KINDS_PER_STEP = 50;
/** Names of members that no schema has, for payloads that show something. */
const UNUSUAL = ["unlisted", "unlisted1", "another-name", "zz"];

const knownNames = new WeakMap<Case, Map<SchemaNode, OtherNames[]>>();

/** The kinds of names that neither the case nor the schema lists. */
export function* otherNames(left: Case, right: SchemaNode, texts: TextSearch): Steps<OtherNames[]> {
  let byShape = knownNames.get(left);
  if (byShape === undefined) knownNames.set(left, (byShape = new Map()));
  const found = byShape.get(right) ?? (yield* kinds(left, right, texts));
  byShape.set(right, found);
  return found;
}

function* kinds(left: Case, right: SchemaNode, texts: TextSearch): Steps<OtherNames[]> {
  const names = factsOf(left.name());
  if (names.types === 0 || names.values !== undefined) return [];
  const all = [...left.shapes, right];
  const patterns = [...new Set(all.flatMap((shape) => [...shape.patternProperties.keys()]))];
  const listed = new Set(all.flatMap(({ properties }) => [...properties.keys()]));
  if (patterns.length > MAX_PATTERNS) return yield* coarseKinds(left, right, patterns);
  const found: OtherNames[] = [];
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
    const inner = new Case({ all: left.shapes.flatMap((shape) => held(shape, matches)) });
    found.push({ name: sample, matches, left: inner, goal: goalFor(sample, inner, left) });
  }
  return found;
}

/** What a member is held to whose name matches these patterns and no other. */
function held(shape: SchemaNode, matches: readonly string[]): SchemaNode[] {
  const found = matches.flatMap((pattern) => shape.patternProperties.get(pattern) ?? []);
  if (found.length === 0 && shape.additionalProperties !== undefined) return [shape.additionalProperties];
  return found;
}

/**
 * With too many patterns to tell all ways apart: the names that match one of them, whatever else they match, and those that
 * match none of the schema's. Only what holds for all such names is known.
 */
function* coarseKinds(left: Case, right: SchemaNode, patterns: readonly string[]): Steps<OtherNames[]> {
  const certain = left.shapes.filter((shape) => shape.patternProperties.size === 0);
  const unmatched = left.shapes.filter((shape) =>
    [...shape.patternProperties.keys()].every((pattern) => right.patternProperties.has(pattern)),
  );
  const matched = new Map<string, SchemaNode[]>();
  for (const [pattern, inner] of left.shapes.flatMap((shape) => [...shape.patternProperties])) {
    matched.set(pattern, [...(matched.get(pattern) ?? []), inner]);
  }
  const coarse = (matches: readonly string[], shapes: readonly SchemaNode[]): OtherNames => {
    const inner = new Case({ all: shapes });
    return { name: undefined, matches, left: inner, goal: goalFor(undefined, inner, left) };
  };
  const found = [coarse([], additional(unmatched))];
  for (const pattern of patterns) {
    if (found.length % KINDS_PER_STEP === 0) yield;
    found.push(coarse([pattern], [...additional(certain), ...(matched.get(pattern) ?? [])]));
  }
  return found;
}

function additional(shapes: readonly SchemaNode[]): SchemaNode[] {
  return shapes.flatMap(({ additionalProperties }) => additionalProperties ?? []);
}

/** The goal about one of several names, which stands for the others. */
function goalFor(name: string | undefined, inner: Case, around: Case): OtherNames["goal"] {
  return (goal, prover, right) => {
    const one = prover.member(goal, name ?? "", right, inner);
    // What the old schema mentions further inside must be the same for all of them.
    const isTypical = name !== undefined && goal.view.shapes.every((shape) => isAmong(shape, around.shapes));
    return isTypical ? one : { ...one, strict: true };
  };
}

/** Whether some of the schemas list all the names and patterns that this one lists. */
function isAmong({ properties, patternProperties }: SchemaNode, shapes: readonly SchemaNode[]): boolean {
  return (
    [...properties.keys()].every((name) => shapes.some((shape) => shape.properties.has(name))) &&
    [...patternProperties.keys()].every((pattern) =>
      shapes.some((shape) => shape.patternProperties.has(pattern)),
    )
  );
}

function fits(shapes: readonly SchemaNode[], name: string, matches: readonly string[]): boolean {
  return shapes.every((shape) =>
    [...shape.patternProperties.keys()].every(
      (pattern) => shape.matchesPattern(pattern, name) === matches.includes(pattern),
    ),
  );
}

function isName(left: Case, name: string): boolean {
  return left.name().shapes.every((shape) => accepts(shape, name));
}
