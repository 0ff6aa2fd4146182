import {
  type CompatibilityMode,
  notCompared,
  type SchemaBreak,
  type Schemata,
  sidesOf,
} from "../../domain/action.ts";
import { runSync } from "../../runtime/yielding.ts";
import { budget, StepsExceeded } from "../limits.ts";
import { TextWitness } from "../patterns/search.ts";
import { compilePatternsSteps, readSchema } from "../read.ts";
import { CounterexampleSearch } from "./counterexamples.ts";
import { matches } from "../validate/evaluate.ts";
import type { Violation } from "./obligation.ts";
import { InclusionProver } from "./prover.ts";
import { breakKey, breakOf, type BreakSide } from "./report.ts";
import type { SchemaNode } from "../node.ts";

export interface ComparisonResult {
  readonly breaks: readonly SchemaBreak[];
  /** How many there are, with those not listed one by one. */
  readonly total: number;
  /** What it took to find them, without reading the schemas. */
  readonly steps: number;
}

export interface CompareOptions {
  readonly mode?: CompatibilityMode;
  /** How much work each side may take; the verdict does not depend on the machine. */
  readonly steps?: number;
}

/** Steps for one side, of 0.1 to 0.2 µs. GitHub's largest schema needs 190,000, AsyncAPI's of 90 KB up to 2,600,000. */
const COMPARISON_STEPS = 3_000_000;
const COUNTEREXAMPLE_STEPS = 400_000;
const MAX_BREAKS = 100;

/**
 * Compares a schema with the one that is to replace it, by the rules of docs/compatibility.md. What cannot be decided within
 * the steps is a break that says `cannot_prove`. Both have passed `checkSchema`. Takes up to some seconds.
 */
export function compare(
  old: Schemata,
  next: Schemata,
  { mode = "full", steps = COMPARISON_STEPS }: CompareOptions = {},
): ComparisonResult {
  const sides = sidesOf(mode);
  if (sides.length === 0) return { breaks: [], total: 0, steps: 0 };
  const [oldRoot, nextRoot] = [rootOf(old), rootOf(next)];
  const texts = new TextWitness();
  const breaks: SchemaBreak[] = [];
  let [total, taken] = [0, 0];
  for (const side of sides) {
    const result = new Comparison(side, oldRoot, nextRoot, texts).run(steps);
    breaks.push(...result.breaks);
    total += result.total;
    taken += result.steps;
  }
  return { breaks, total, steps: taken };
}

function rootOf(schemata: Schemata): SchemaNode {
  const document = readSchema(schemata);
  runSync(compilePatternsSteps(document));
  return document.root;
}

type Counterexample = { readonly value: unknown } | undefined;

class Comparison {
  readonly #side: BreakSide;
  readonly #old: SchemaNode;
  readonly #next: SchemaNode;
  readonly #texts: TextWitness;

  constructor(side: BreakSide, old: SchemaNode, next: SchemaNode, texts: TextWitness) {
    this.#side = side;
    this.#old = old;
    this.#next = next;
    this.#texts = texts;
  }

  run(maxSteps: number): ComparisonResult {
    const side = this.#side;
    budget.left = maxSteps;
    const violations = this.#violations();
    const proving = maxSteps - budget.left;
    const distinct = new Map(violations?.map((violation) => [breakKey(side, violation), violation]));
    const listed = [...distinct.values()].slice(0, MAX_BREAKS);
    budget.left = COUNTEREXAMPLE_STEPS;
    const examples = this.#counterexamples(listed);
    const searching = COUNTEREXAMPLE_STEPS - budget.left;
    const breaks = listed.map((violation, index) => breakOf(side, violation, examples[index]));
    if (distinct.size > listed.length) breaks.push(manyMore(side, distinct.size - listed.length));
    if (violations === undefined) breaks.push(tooLong(side));
    return {
      breaks,
      total: distinct.size + (violations === undefined ? 1 : 0),
      steps: proving + searching,
    };
  }

  /** What the one schema allows and the other does not; `undefined` where that takes too many steps. */
  #violations(): readonly Violation[] | undefined {
    const [old, next] = [this.#old, this.#next];
    const [left, right] = this.#side === "producer" ? [old, next] : [next, old];
    try {
      return new InclusionProver(this.#side, old, this.#texts).compare(left, right);
    } catch (error) {
      if (!isTooMuch(error)) throw error;
      return undefined;
    }
  }

  /** Looks for a payload that proves each violation. */
  #counterexamples(violations: readonly Violation[]): readonly Counterexample[] {
    const search = new CounterexampleSearch(this.#side, this.#texts);
    const counterexamples: Counterexample[] = [];
    try {
      for (const violation of violations)
        counterexamples.push(this.#counterexample(search.payloads(violation)));
    } catch (error) {
      if (!isTooMuch(error)) throw error;
    }
    return counterexamples;
  }

  #counterexample(payloads: Iterable<unknown>): Counterexample {
    const [old, next] = [this.#old, this.#next];
    for (const value of payloads) {
      const shows =
        this.#side === "producer"
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

function manyMore(side: BreakSide, count: number): SchemaBreak {
  const [noun, verb] = count === 1 ? ["place", "breaks"] : ["places", "break"];
  const who = side === "producer" ? "producers" : "consumers";
  const change = `${count.toLocaleString("en")} more ${noun} ${verb} ${who}; the first ${MAX_BREAKS} are listed.`;
  const remedy = "Fix those and check again, or create the schema as a new version of the action.";
  return { ...notCompared(side, change, remedy), message: change };
}

function tooLong(side: BreakSide): SchemaBreak {
  return notCompared(
    side,
    "The schemas take too many steps to compare.",
    "Create the schema as a new version of the action, or apply it without a comparison (compatibility: none).",
  );
}
