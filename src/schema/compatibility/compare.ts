import { type CompatibilityMode, type SchemaBreak, type Schemata, sidesOf } from "../../domain/action.ts";
import { runSync, type Steps } from "../../runtime/yielding.ts";
import { budget, refillBudget, StepBudget, StepsExceeded } from "../limits.ts";
import { TextWitness } from "../patterns/search.ts";
import { compilePatternsSteps, readSchemaSteps } from "../read.ts";
import { clearValidationCache } from "../validate/values.ts";
import { CounterexampleSearch } from "./counterexamples.ts";
import { matches } from "./evaluate.ts";
import type { Violation } from "./obligation.ts";
import { InclusionProver } from "./prover.ts";
import { breakKey, breakOf, type Side } from "./report.ts";
import type { SchemaNode } from "../node.ts";

export interface Verdict {
  /** Nothing here means that the change breaks nobody the mode asks about. */
  readonly breaks: readonly SchemaBreak[];
  /** How many there are, with those not listed one by one. */
  readonly total: number;
  /** What it took to find them, without reading the schemas. */
  readonly steps: number;
}

type Reported = Pick<Verdict, "breaks" | "total">;

export interface CompareOptions {
  readonly mode?: CompatibilityMode;
  /** How much work each side may take; the verdict does not depend on the machine. */
  readonly steps?: number;
}

/**
 * Steps one side may take, some 0.1 to 0.2 µs each, a few thousand at a time. The largest schema of GitHub's needs 190,000
 * where one type is changed, and AsyncAPI's of 90 KB up to 2,600,000 from one version to the next.
 */
const COMPARISON_STEPS = 3_000_000;
/** Steps that all counterexamples of one side may take. */
const COUNTEREXAMPLE_STEPS = 400_000;
/** A person does not read more of them. */
const MAX_BREAKS = 100;

/**
 * Compares a schema with the one that is to replace it. docs/compatibility.md has the rules.
 *
 * It errs in one direction: what cannot be decided, or not within the steps, is a break that says `cannot_prove`.
 *
 * Both have passed `checkSchema`.
 */
export function compare(old: Schemata, next: Schemata, options: CompareOptions = {}): Verdict {
  return runSync(compareSteps(old, next, options));
}

/** The same in steps: schemas are read, sides compared and counterexamples searched for in slices. */
export function* compareSteps(
  old: Schemata,
  next: Schemata,
  { mode = "full", steps = COMPARISON_STEPS }: CompareOptions = {},
): Steps<Verdict> {
  const sides = sidesOf(mode);
  if (sides.length === 0) return { breaks: [], total: 0, steps: 0 };
  const roots: SchemaNode[] = [];
  for (const schemata of [old, next]) {
    const document = yield* readSchemaSteps(schemata);
    yield* compilePatternsSteps(document);
    roots.push(document.root);
    yield;
  }
  const comparison = new Comparison(roots[0]!, roots[1]!);
  const breaks: SchemaBreak[] = [];
  let [total, taken] = [0, 0];
  for (const side of sides) {
    yield;
    const remaining = new StepBudget(steps);
    const found = yield* within(remaining, comparison.violations(side));
    yield;
    const reported = yield* comparison.breaks(side, found);
    breaks.push(...reported.breaks);
    total += reported.total;
    taken += steps - remaining.left;
  }
  return { breaks, total, steps: taken + comparison.counterexampleSteps };
}

/** Does the work with a budget of its own, in slices. Other work uses the shared budget and cache between two of them. */
function* within<T>(remaining: StepBudget, rule: Steps<T>): Steps<T> {
  for (;;) {
    refillBudget(remaining.left);
    try {
      const { done, value } = rule.next();
      if (done === true) return value;
    } finally {
      remaining.left = budget.left;
      refillBudget();
      clearValidationCache();
    }
    yield;
  }
}

interface Found {
  readonly violations: readonly Violation[];
  /** There may be more: the steps ended. */
  readonly isCut: boolean;
}

class Comparison {
  readonly #old: SchemaNode;
  readonly #next: SchemaNode;
  readonly #texts = new TextWitness();
  /** The steps that the search for counterexamples took. */
  counterexampleSteps = 0;

  constructor(old: SchemaNode, next: SchemaNode) {
    this.#old = old;
    this.#next = next;
  }

  *breaks(side: Side, { violations, isCut }: Found): Steps<Reported> {
    const different = new Map(violations.map((violation) => [breakKey(side, violation), violation]));
    const reported = [...different.values()].slice(0, MAX_BREAKS);
    const examples = yield* this.#counterexamples(side, reported);
    const breaks: SchemaBreak[] = [];
    for (const [index, violation] of reported.entries()) {
      yield;
      breaks.push(breakOf(side, violation, examples[index]));
    }
    if (different.size > reported.length) breaks.push(manyMore(side, different.size - reported.length));
    if (isCut) breaks.push(tooLong(side));
    return { breaks, total: different.size + (isCut ? 1 : 0) };
  }

  *violations(side: Side): Steps<Found> {
    const [left, right] = side === "producer" ? [this.#old, this.#next] : [this.#next, this.#old];
    try {
      return {
        violations: yield* new InclusionProver(side, this.#old, this.#texts).compare(left, right),
        isCut: false,
      };
    } catch (error) {
      if (!isTooMuch(error)) throw error;
      return { violations: [], isCut: true };
    }
  }

  /** For each violation a payload that proves it, if one is found. */
  *#counterexamples(side: Side, violations: readonly Violation[]): Steps<({ value: unknown } | undefined)[]> {
    const examples = new CounterexampleSearch(side, this.#texts);
    const found: ({ value: unknown } | undefined)[] = [];
    const remaining = new StepBudget(COUNTEREXAMPLE_STEPS);
    try {
      for (const violation of violations) {
        yield;
        found.push(yield* within(remaining, this.#counterexample(side, examples.payloads(violation))));
      }
    } catch (error) {
      if (!isTooMuch(error)) throw error;
    }
    this.counterexampleSteps += COUNTEREXAMPLE_STEPS - remaining.left;
    return found;
  }

  *#counterexample(side: Side, payloads: Iterable<unknown>): Steps<{ value: unknown } | undefined> {
    const [old, next] = [this.#old, this.#next];
    for (const value of payloads) {
      if (value === undefined) {
        yield;
        continue;
      }
      const shows =
        side === "producer"
          ? matches(old, value) && !matches(next, value)
          : matches(next, value) && !matches(old, value) && !matches(old, value, true);
      if (shows) return { value };
    }
    return undefined;
  }
}

/** Out of steps, or of stack: references chained hundreds deep take much of it. */
function isTooMuch(error: unknown): boolean {
  return error instanceof StepsExceeded || error instanceof RangeError;
}

/** Stands for the breaks that are not listed one by one. */
function manyMore(side: Side, count: number): SchemaBreak {
  const [noun, verb] = count === 1 ? ["place", "breaks"] : ["places", "break"];
  const who = side === "producer" ? "producers" : "consumers";
  const message = `${count.toLocaleString("en")} more ${noun} ${verb} ${who}; the first ${MAX_BREAKS} are listed.`;
  const remedy = "Fix those and check again, or create the schema as a new version of the action.";
  return { side, pointer: "", message, remedy, certainty: "cannot_prove" };
}

function tooLong(side: Side): SchemaBreak {
  const message =
    side === "producer"
      ? "The schemas take too many steps to compare. It cannot be proven that all a producer may send today is still accepted."
      : "The schemas take too many steps to compare. It cannot be proven that a consumer written for the old schema understands all that may come.";
  const remedy =
    "Create the schema as a new version of the action, or apply it without a comparison (compatibility: none).";
  return { side, pointer: "", message, remedy, certainty: "cannot_prove" };
}
