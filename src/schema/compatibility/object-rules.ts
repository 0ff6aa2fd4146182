import { accepts } from "./accepts.ts";
import { Case } from "./case.ts";
import { factsOf } from "./facts.ts";
import type { Goal, Prover, Showing, KeywordRule } from "./goal.ts";
import { NAME } from "./goal.ts";
import { otherNames } from "./other-names.ts";
import { memberShapes } from "./shape.ts";
import type { Shape } from "./shape.ts";
import { TYPE } from "./types.ts";

/** What a schema says about objects, name by name. */
export function* objectTasks(right: Shape): Generator<KeywordRule> {
  for (const name of right.required) yield { keyword: "required", part: name, holds: isRequired(name) };
  for (const [name, inner] of right.properties) {
    yield { keyword: "properties", part: name, holds: memberHolds(name, inner) };
  }
  for (const { pattern, test, shape } of right.patterns) {
    yield { keyword: "patternProperties", part: pattern, holds: patternHolds(pattern, test, shape) };
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

function memberHolds(name: string, inner: Shape): Holds {
  return aboutObjects(function* (goal, prover) {
    if (!mayBeNamed(goal.left, name) || (yield* isNew(goal, prover, name))) return true;
    if (isForgotten(goal, prover, name)) {
      const { right, place, findings } = goal;
      findings.push({ right, keyword: "properties", part: name, place, isGone: true });
      return false;
    }
    if (inner.isOpen) return true;
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
      memberShapes(shape, name).length > 0 || shape.required.includes(name) || isNamedInChoice(shape, name),
  );
}

function isNamedInChoice(shape: Shape, name: string): boolean {
  const branches = [...shape.anyOf, ...shape.oneOf, shape.if, shape.then, shape.else];
  return branches.some((inner) => {
    const target = inner?.reference ?? inner;
    return target !== undefined && (memberShapes(target, name).length > 0 || target.required.includes(name));
  });
}

function mayBeNamed(left: Case, name: string): boolean {
  return left.name().shapes.every((shape) => accepts(shape, name)) && left.member(name).types !== 0;
}

function patternHolds(pattern: string, test: (name: string) => boolean, inner: Shape): Holds {
  return aboutObjects(function* (goal, prover) {
    let fine = true;
    for (const name of namesOnLeft(goal.left)) {
      if (!test(name) || !mayBeNamed(goal.left, name) || (yield* isNew(goal, prover, name))) continue;
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
  if (inner.isFalse && prover.side === "consumer" && !strict) return true;
  let fine = true;
  for (const name of namesOnLeft(left)) {
    const isListed = right.properties.has(name) || right.patterns.some(({ test }) => test(name));
    if (isListed || !mayBeNamed(left, name)) continue;
    const one = prover.member(goal, name, inner);
    if (!inner.isFalse) fine = (yield* prover.prove(one)) && fine;
    else if (!(yield* prover.isImpossible(one.left, one))) {
      const { place, findings } = goal;
      findings.push({ right, keyword: "additionalProperties", part: name, place, isGone: true });
      fine = false;
    }
  }
  const patterns = new Set(right.patterns.map(({ pattern }) => pattern));
  for (const other of yield* otherNames(left, right, prover.texts)) {
    if (other.matches.some((pattern) => patterns.has(pattern))) continue;
    const one = other.goal(goal, prover, inner);
    if (!inner.isFalse) fine = (yield* prover.prove(one)) && fine;
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
