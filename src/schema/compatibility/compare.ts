import {
  type CompatibilityMode,
  notCompared,
  type SchemaBreak,
  type Schemata,
  sidesOf,
} from "../../domain/action.ts";
import { EvregError } from "../../domain/error.ts";
import { runSync } from "../../runtime/yielding.ts";
import { budget, StepsExceeded } from "../limits.ts";
import { TextWitness } from "../patterns/search.ts";
import { compilePatternsSteps, readSchema } from "../read.ts";
import { CounterexampleSearch } from "./counterexamples.ts";
import { matches } from "../validate/evaluate.ts";
import { InclusionProver } from "./prover.ts";
import { breakKey, breakOf, type BreakSide } from "./report.ts";
import type { SchemaNode } from "../node.ts";

export interface CompareOptions {
  readonly mode?: CompatibilityMode;
  /** How much work each side may take; the verdict does not depend on the machine. */
  readonly steps?: number;
}

/** Steps for one side, of 0.1 to 0.2 µs. GitHub's largest schema needs 190,000, AsyncAPI's of 90 KB up to 2,600,000. */
const COMPARISON_STEPS = 3_000_000;
const COUNTEREXAMPLE_STEPS = 400_000;
const MAX_BREAKS = 100;
const ALL_THE_SAME =
  "Create the schema as a new version of the action, or apply it without a comparison (compatibility: none).";

/**
 * Compares a schema with the one that is to replace it, by the rules of docs/compatibility.md. What cannot be decided within
 * the steps is a break that says `cannot_prove`. The next one has passed `checkSchema`. Takes up to some seconds.
 */
export function compare(
  old: Schemata,
  next: Schemata,
  { mode = "full", steps = COMPARISON_STEPS }: CompareOptions = {},
): readonly SchemaBreak[] {
  const sides = sidesOf(mode);
  if (sides.length === 0) return [];
  const nextRoot = rootOf(next);
  let oldRoot: SchemaNode;
  try {
    oldRoot = rootOf(old);
  } catch (error) {
    // A version with other limits took it, and events may have been published by it.
    if (!(error instanceof EvregError)) throw error;
    const { message } = error;
    const change = `The old schema is one that evreg does not take any more: ${message}.`;
    return sides.map((side) => notCompared(side, change, ALL_THE_SAME));
  }
  const texts = new TextWitness();
  return sides.flatMap((side) => breaksFor({ side, old: oldRoot, next: nextRoot }, texts, steps));
}

function rootOf(schemata: Schemata): SchemaNode {
  const document = readSchema(schemata);
  runSync(compilePatternsSteps(document));
  return document.root;
}

/** The two schemas, and for whom a change from one to the other is looked at. */
interface ComparedSide {
  readonly side: BreakSide;
  readonly old: SchemaNode;
  readonly next: SchemaNode;
}

function breaksFor(compared: ComparedSide, texts: TextWitness, maxSteps: number): readonly SchemaBreak[] {
  const { side, old, next } = compared;
  const [left, right] = side === "producer" ? [old, next] : [next, old];
  budget.left = maxSteps;
  const violations = unlessTooMuch(() => new InclusionProver(side, old, texts).compare(left, right));
  const distinct = new Map(violations?.map((violation) => [breakKey(side, violation), violation]));
  const listed = [...distinct.values()].slice(0, MAX_BREAKS);
  budget.left = COUNTEREXAMPLE_STEPS;
  const search = new CounterexampleSearch(side, texts);
  const breaks = listed.map((violation) => {
    const example = unlessTooMuch(() => counterexample(compared, search.payloads(violation)));
    return breakOf(side, violation, example);
  });
  if (distinct.size > listed.length) breaks.push(manyMore(side, distinct.size - listed.length));
  if (violations === undefined) {
    breaks.push(notCompared(side, "The schemas take too many steps to compare.", ALL_THE_SAME));
  }
  return breaks;
}

/** The first of some payloads that proves a break. */
function counterexample(
  { side, old, next }: ComparedSide,
  payloads: Iterable<unknown>,
): { readonly value: unknown } | undefined {
  for (const value of payloads) {
    const shows =
      side === "producer"
        ? matches(old, value) && !matches(next, value)
        : matches(next, value) && !matches(old, value) && !matches(old, value, true);
    if (shows) return { value };
  }
  return undefined;
}

/** `undefined` where it takes too many steps or too much stack: references chained hundreds deep take much of it. */
function unlessTooMuch<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof StepsExceeded || error instanceof RangeError)) throw error;
    return undefined;
  }
}

function manyMore(side: BreakSide, count: number): SchemaBreak {
  const [noun, verb] = count === 1 ? ["place", "breaks"] : ["places", "break"];
  const who = side === "producer" ? "producers" : "consumers";
  const change = `${count.toLocaleString("en")} more ${noun} ${verb} ${who}; the first ${MAX_BREAKS} are listed.`;
  const remedy = "Fix those and check again, or create the schema as a new version of the action.";
  return { ...notCompared(side, change, remedy), message: change };
}
