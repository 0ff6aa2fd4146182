import { spend } from "../budget.ts";
import type { Case } from "./case.ts";
import { branchesOf, clash } from "./clash.ts";
import type { Branches } from "./clash.ts";
import { factsOf } from "./facts.ts";
import type { Finding, Goal, Prover, Showing, KeywordRule } from "./goal.ts";
import { typesOf } from "./listed.ts";
import type { Shape } from "./shape.ts";
import { TYPE_BITS } from "./types.ts";

/** What a schema says by combining others. */
export function* choiceTasks(right: Shape): Generator<KeywordRule> {
  for (const [index, inner] of right.allOf.entries()) {
    yield { keyword: "allOf", part: index, holds: (goal, prover) => prover.prove({ ...goal, right: inner }) };
  }
  for (const keyword of ["anyOf", "oneOf"] as const) {
    if (right[keyword].length === 0) continue;
    const branches = branchesOf(right, keyword);
    const additions: Additions = new Map();
    const holds: KeywordRule["holds"] = function* (goal, prover) {
      return (
        (yield* areKept(goal, prover, branches.list, keyword, additions)) ||
        (yield* oneHolds(goal, prover, branches, keyword === "oneOf"))
      );
    };
    yield { keyword, branches, holds };
  }
  if (right.not !== undefined) {
    yield { keyword: "not", holds: (goal, prover) => isExcluded(goal, prover, right.not!) };
  }
  if (right.keywords.includes("if")) yield { keyword: "if", holds: conditionHolds };
}

/** Whether no value of the case conforms to the schema. */
function* isExcluded(goal: Goal, prover: Prover, right: Shape): Showing {
  if (prover.refuses(goal.left, right) || goal.left.shapes.some((shape) => clash(shape, right))) return true;
  return yield* prover.isImpossible(goal.left.with({ all: [right] }), goal);
}

function* areExcluded(goal: Goal, prover: Prover, branches: readonly Shape[]): Showing {
  for (const branch of branches) if (!(yield* isExcluded(goal, prover, branch))) return false;
  return true;
}

/** By branches there were before, what there is beside them: each way of a choice asks for it again. */
type Additions = Map<readonly Shape[], readonly Shape[] | undefined>;

/**
 * Whether a schema of the case has all its branches here again, word for word: then one of them holds. Of a `oneOf` no
 * other may hold then.
 */
function* areKept(
  goal: Goal,
  prover: Prover,
  branches: readonly Shape[],
  keyword: "anyOf" | "oneOf",
  additions: Additions,
): Showing {
  for (const { anyOf, oneOf } of goal.left.shapes) {
    for (const kept of keyword === "anyOf" ? [anyOf, oneOf] : [oneOf]) {
      if (kept.length === 0) continue;
      if (!additions.has(kept)) additions.set(kept, addedTo(kept, branches, prover));
      const added = additions.get(kept);
      if (added === undefined) continue;
      if (keyword === "anyOf" || (yield* areExcluded(goal, prover, added))) return true;
    }
  }
  return false;
}

/** What there is beside the branches that were there before; `undefined` where one of those is not. */
function addedTo(kept: readonly Shape[], branches: readonly Shape[], prover: Prover): Shape[] | undefined {
  spend(kept.length + branches.length);
  const before = new Map<number | undefined, number>();
  for (const branch of kept)
    before.set(prover.classOf(branch), (before.get(prover.classOf(branch)) ?? 0) + 1);
  const added: Shape[] = [];
  let found = 0;
  for (const branch of branches) {
    const of = prover.classOf(branch);
    const left = of === undefined ? 0 : (before.get(of) ?? 0);
    if (left === 0) {
      added.push(branch);
      continue;
    }
    before.set(of, left - 1);
    found += 1;
  }
  return found === kept.length ? added : undefined;
}

function* oneHolds(goal: Goal, prover: Prover, branches: Branches, only: boolean): Showing {
  const { left } = goal;
  const near = yield* prover.near(left, branches);
  const tried: Finding[][] = [];
  for (const { branch, meant } of candidates(left, branches, near, prover)) {
    const findings: Finding[] = [];
    const holds = yield* prover.prove({ ...goal, right: branch, brief: goal.brief || !meant, findings });
    const others = only ? near.filter((other) => other !== branch) : [];
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

/** First what the case says in the same words, then what stands in the same place, then all others. */
function candidates(
  { shapes, types }: Case,
  branches: Branches,
  near: readonly Shape[],
  prover: Prover,
): Candidate[] {
  const classes = new Set(shapes.map((shape) => prover.classOf(shape)));
  const meant = new Set(
    shapes
      .flatMap(({ pointer }) => branches.at(pointer) ?? [])
      .filter(
        (branch) =>
          (typesOf(branch) & types) !== 0 ||
          shapes.some((shape) => isListedAt(shape, branch.pointer, branches.list.length)),
      ),
  );
  const others = near.filter((branch) => !meant.has(branch));
  const isSame = (branch: Shape): boolean => {
    const of = prover.classOf(branch);
    return of !== undefined && classes.has(of);
  };
  return [
    ...others.filter(isSame).map((branch) => ({ branch, meant: false })),
    ...[...meant].map((branch) => ({ branch, meant: true })),
    ...others
      .filter((branch) => !isSame(branch))
      .map((branch) => ({ branch, meant: meant.size === 0 && others.length === 1 })),
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
