import type { Task as Steps } from "../task.ts";
import type { Case } from "./case.ts";
import { clash } from "./clash.ts";
import { factsOf } from "./facts.ts";
import type { Finding, Goal, Prover, Showing, Task } from "./goal.ts";
import type { Shape } from "./shape.ts";
import { TYPE_BITS, typesNamed } from "./types.ts";

/** What a schema says by combining others. */
export function* choiceTasks(right: Shape): Generator<Task> {
  for (const [index, inner] of right.allOf.entries()) {
    yield { keyword: "allOf", part: index, holds: (goal, prover) => prover.prove({ ...goal, right: inner }) };
  }
  if (right.anyOf.length > 0) {
    yield { keyword: "anyOf", holds: (goal, prover) => oneHolds(goal, prover, right.anyOf, false) };
  }
  if (right.oneOf.length > 0) {
    yield { keyword: "oneOf", holds: (goal, prover) => oneHolds(goal, prover, right.oneOf, true) };
  }
  if (right.not !== undefined) {
    yield { keyword: "not", holds: (goal, prover) => isExcluded(goal, prover, right.not!) };
  }
  if (right.keywords.includes("if")) yield { keyword: "if", holds: conditionHolds };
}

/** Whether no value of the case conforms to the schema. */
function* isExcluded(goal: Goal, prover: Prover, right: Shape): Showing {
  if (goal.left.shapes.some((shape) => clash(shape, right))) return true;
  return yield* prover.isImpossible(goal.left.with({ all: [right] }), goal);
}

function* areExcluded(goal: Goal, prover: Prover, branches: readonly Shape[]): Showing {
  for (const branch of branches) if (!(yield* isExcluded(goal, prover, branch))) return false;
  return true;
}

function* oneHolds(goal: Goal, prover: Prover, branches: readonly Shape[], only: boolean): Showing {
  const { left } = goal;
  const tried: Finding[][] = [];
  for (const { branch, meant } of yield* candidates(left, branches, prover)) {
    const findings: Finding[] = [];
    const holds = yield* prover.prove({ ...goal, right: branch, brief: goal.brief || !meant, findings });
    const others = only ? branches.filter((other) => other !== branch) : [];
    if (holds && (yield* areExcluded(goal, prover, others))) return true;
    if (meant) tried.push(findings);
  }
  const { types } = factsOf(left);
  const bits = TYPE_BITS.filter((bit) => (bit & types) !== 0);
  if (bits.length > 1) {
    // Each type may go its own way.
    for (const bit of bits) {
      const narrowed = within(goal, left.with({ types: bit }));
      if (!(yield* oneHolds(narrowed, prover, branches, only))) return false;
    }
    return true;
  }
  goal.findings.push(...(tried[0] ?? []));
  return false;
}

function within(goal: Goal, left: Case): Goal {
  return { ...goal, left, place: { ...goal.place, left } };
}

interface Candidate {
  readonly branch: Shape;
  /** The one to tell about when none holds: where one of the case's schemas stands in its own document, or the only one. */
  readonly meant: boolean;
}

function* candidates(
  { shapes, types }: Case,
  branches: readonly Shape[],
  { stretch }: Prover,
): Steps<Candidate[]> {
  const meant = branches.filter((branch) => {
    const { pointer, reference } = branch;
    if (!shapes.some((shape) => shape.pointer === pointer || shape.pointer === reference?.pointer))
      return false;
    return (
      (typesNamed((reference ?? branch).value("type")) & types) !== 0 ||
      shapes.some((shape) => isListedAt(shape, pointer, branches.length))
    );
  });
  const others: Shape[] = [];
  for (const branch of branches) {
    if (meant.includes(branch)) continue;
    // Where the case has choices as well, each of their branches is held against this one.
    if (stretch.isOver()) yield;
    if (!shapes.some((shape) => clash(shape, branch))) others.push(branch);
  }
  return [
    ...meant.map((branch) => ({ branch, meant: true })),
    ...others.map((branch) => ({ branch, meant: meant.length === 0 && others.length === 1 })),
  ];
}

/** Whether a schema has as many branches, one of them there: then that one was changed, and none was taken out before it. */
function isListedAt({ anyOf, oneOf }: Shape, pointer: string, count: number): boolean {
  return [anyOf, oneOf].some(
    (list) => list.length === count && list.some((branch) => branch.pointer === pointer),
  );
}

/** Where the condition holds, `then` must; elsewhere `else` must. */
function* conditionHolds(goal: Goal, prover: Prover): Showing {
  const { left, right } = goal;
  const { if: condition, then, else: otherwise } = right;
  const met = within(goal, left.with({ all: [condition!] }));
  const unmet = within(goal, left.with({ none: [condition!] }));
  const first = yield* wayHolds(met, prover, then);
  const second = yield* wayHolds(unmet, prover, otherwise);
  return first && second;
}

function* wayHolds(goal: Goal, prover: Prover, right: Shape | undefined): Showing {
  if (right === undefined || (yield* prover.isImpossible(goal.left, goal))) return true;
  return yield* prover.prove({ ...goal, right });
}
