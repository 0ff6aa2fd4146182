import type { RegExpEngine, RegExpLike } from "ajv/dist/types/index.js";
import { RE2JS } from "re2js";
import { runSync, type Steps } from "../../runtime/yielding.ts";
import { SCHEMA_LIMITS, spend, StepBudget, StepsExceeded } from "../limits.ts";
import { type Automaton, END_TEXT, kindsOf, type AutomatonState, startOf, UNANCHORED } from "./automaton.ts";
import { PatternSyntaxError, toRe2Syntax } from "./syntax.ts";

const ESCAPE = String.raw`\\[dDwWsS^$\\.*+?()[\]{}|/]`;
const CHARACTER = String.raw`[^^$\\.*+?()[\]{}|/\ud800-\udfff]`;
const CLASS = String.raw`\[(?:${ESCAPE}|\\-|[^\\[\]\ud800-\udfff])+\]`;
const ATOM = `(?:[.]|${CHARACTER}|${ESCAPE}|${CLASS})`;
/** `^`, atoms each once or counted, and at most one that may repeat freely, in the last place. */
const STRAIGHT = new RegExp(
  String.raw`^\^(?:${ATOM}(?:\{\d{1,3}\})?)*(?:${ATOM}(?:[*+?]|\{\d{1,3},\d{0,3}\}))?\$?$`,
);

/**
 * V8's own expression for a pattern in which it never backtracks, so that it takes linear time too, such as
 * `^A-[0-9]{8}$`; `undefined` for all others.
 * @param pattern one that `toRe2Syntax` has taken
 */
export function nativePattern(pattern: string): RegExp | undefined {
  if (!STRAIGHT.test(pattern)) return undefined;
  try {
    return new RegExp(pattern, "u");
  } catch {
    // Such as `[a-\d]`, which only the older dialect has.
    return undefined;
  }
}

/** Some 30 ms on a slow machine. RE2 itself only bounds how often something is repeated, to a thousand times. */
const MAX_INSTRUCTIONS = 20_000;
/** `\p{L}` has some 700 ranges of characters; to tell those of `^\p{L}{1000}$` apart takes 10 ms. */
const CATEGORY_WEIGHT = 10;
/** Whether a pattern could be matched in one pass takes time with the cube of its optional parts in a row to find out. */
const LONG = 128;
const TOKEN = /(\(\?:)|(\))|\{(\d+)(?:,(\d*))?\}|\[(?:\\.|[^\]\\])*\]|\\[pPx]\{\w+\}|\\?[^]/gu;

/** Instructions of a pattern of RE2, about, with its counted repetitions written out. */
function writtenLength(source: string): number {
  const outer: number[] = [];
  let [written, last] = [0, 0];
  for (const [token, opening, closing, least, most] of source.matchAll(TOKEN)) {
    if (opening !== undefined) {
      outer.push(written);
      written = 0;
    } else if (least !== undefined) {
      const repeated = (last + 1) * Number(most || least);
      written += repeated - last;
      last = repeated;
    } else {
      last =
        closing === undefined ? 1 + CATEGORY_WEIGHT * (token.match(/\\[pP]/g)?.length ?? 0) : written + 1;
      written = closing === undefined ? written + last : outer.pop()! + last;
    }
  }
  return written;
}

/**
 * RE2's expression for a pattern of ECMA-262. RE2 compiles in one go, so patterns that would take long are refused.
 * @throws `PatternSyntaxError` with a sentence part on why a pattern cannot be used
 */
export function expressionOf(pattern: string): RE2JS {
  const source = toRe2Syntax(pattern);
  if (writtenLength(source) > MAX_INSTRUCTIONS) {
    throw new PatternSyntaxError("is too long once its counted repetitions are written out; shorten them");
  }
  // Only a pattern that begins with `^` may be matched in one pass.
  return parse(pattern.length > LONG && /^(?:\(\?:)*\^/.test(source) ? `(?:$)?(?:${source})` : source);
}

function parse(source: string): RE2JS {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    if (reason.includes("repeat count"))
      throw new PatternSyntaxError("repeats something more than 1,000 times");
    throw new PatternSyntaxError(`cannot be used: ${reason.replace(/^error parsing regexp: /, "")}`);
  }
}

/** Steps of building an automaton between two yields, about a millisecond. */
const STEPS_PER_SLICE = 10_000;

/** Steps for the memory of a state, besides one for each of its places in the pattern and each class of characters. */
const STEPS_PER_STATE = 25;

/**
 * Builds all states of a pattern's automaton.
 *
 * With more states than it can hold (`a[ab]{900}c` has 2^900), re2js simulates at up to 20 µs a character, a second for
 * 64 KiB. Such a pattern is refused when its schema is registered, instead of stalling a publish later.
 * @throws `StepsExceeded` where they exceed the budget
 */
function* buildAutomaton({ re2Input }: RE2JS, budget: StepBudget): Steps<void> {
  // Two kinds of pattern never use the automaton: a plain text, and one with a single way to match it.
  if (re2Input.prefixComplete || re2Input.onepass !== null) return;
  const automaton = re2Input.dfa as Automaton;
  const first = startOf(automaton);
  if (automaton.failed || first === null) budget.exceeded();
  const kinds = kindsOf([automaton], [0], (steps) => budget.spend(steps));
  const moves = [
    ...kinds.map(([[character]]) => [automaton.runeClass(character), character] as const),
    [automaton.numClasses, END_TEXT] as const,
  ];
  const known = new Set<AutomatonState>([first]);
  let pauseAt = budget.left - STEPS_PER_SLICE;
  for (const state of known) {
    budget.spend(STEPS_PER_STATE + state.nfaStates.length + automaton.numClasses);
    for (const [characterClass, character] of moves) {
      if (budget.left < pauseAt) {
        pauseAt = budget.left - STEPS_PER_SLICE;
        yield;
      }
      budget.spend(1 + state.nfaStates.length);
      const next = automaton.step(state, characterClass, character, UNANCHORED);
      if (next === null) budget.exceeded();
      known.add(next);
    }
  }
}

const STEPS_PER_TEST = 5;
/** Memory for each step of building an automaton, at most. */
const BYTES_PER_STEP = 8;
/** Measured over patterns of 6 to 450 instructions, besides the states of their automata. */
const BYTES_PER_INSTRUCTION = 768;
/** A character of ASCII takes one. */
const STEPS_PER_OTHER_UNIT = 2;
// oxlint-disable-next-line no-control-regex
const NOT_ASCII = /[^\0-\x7f]/;

/** Compiles the patterns of one schema, each to an expression that takes linear time on any text. */
export class PatternCompiler {
  readonly #budget = new StepBudget(SCHEMA_LIMITS.automatonSteps);
  readonly #compiled = new Map<string, RegExpLike>();
  #instructions = 0;

  /** Memory of the patterns compiled so far, about. */
  get bytes(): number {
    const steps = SCHEMA_LIMITS.automatonSteps - this.#budget.left;
    return BYTES_PER_STEP * steps + BYTES_PER_INSTRUCTION * this.#instructions;
  }

  /** @throws `PatternSyntaxError` with a sentence part on why a pattern cannot be used */
  compile(pattern: string): RegExpLike {
    return runSync(this.compileSteps(pattern));
  }

  /** Compiles a pattern in steps; one that was compiled before takes none. */
  *compileSteps(pattern: string): Steps<RegExpLike> {
    let compiled = this.#compiled.get(pattern);
    if (compiled === undefined) {
      yield;
      compiled = yield* this.#building(pattern);
      this.#compiled.set(pattern, compiled);
    }
    return compiled;
  }

  engine(): RegExpEngine {
    return Object.assign((pattern: string) => this.compile(pattern), { code: "evreg.pattern" });
  }

  *#building(pattern: string): Steps<RegExpLike> {
    const expression = expressionOf(pattern);
    yield;
    try {
      yield* buildAutomaton(expression, this.#budget);
    } catch (error) {
      if (!(error instanceof StepsExceeded)) throw error;
      throw new PatternSyntaxError(
        "takes too many states to be checked fast; begin it with ^ or shorten its counted repetitions",
      );
    }
    const native = nativePattern(pattern);
    if (native === undefined) this.#instructions += expression.re2Input.prog.numInst();
    const engine = native ?? expression;
    return {
      test(text) {
        spend(STEPS_PER_TEST + text.length * (NOT_ASCII.test(text) ? STEPS_PER_OTHER_UNIT : 1));
        return engine.test(text);
      },
      // Ajv shares one expression among all with the same text.
      toString: () => `re2:${pattern}`,
    } as RegExpLike;
  }
}
