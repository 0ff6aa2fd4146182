import type { RegExpEngine, RegExpLike } from "ajv/dist/types/index.js";
import { RE2JS } from "re2js";
import { runSync, type Steps } from "../../runtime/yielding.ts";
import { SCHEMA_LIMITS, spend, StepBudget } from "../limits.ts";
import { patternCost, readPattern } from "./ast.ts";
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
/** `^\p{L}{1000}$` has half of it; to distinguish its characters takes 10 ms. */
const MAX_RANGES = 1_500_000;
/** Some 20 ms; `^\p{L}{1,200}$`, as it may stand for a name, has a third of it. */
const MAX_MERGED = 1_000_000;

/**
 * RE2's expression for a pattern of ECMA-262. RE2 compiles in one go, so patterns that would take long are refused.
 * @throws `PatternSyntaxError` with a sentence part on why a pattern cannot be used
 */
export function expressionOf(pattern: string): RE2JS {
  const source = toRe2Syntax(pattern);
  const { instructions, ranges, merged } = patternCost(readPattern(source));
  if (instructions > MAX_INSTRUCTIONS || ranges > MAX_RANGES) {
    throw new PatternSyntaxError("is too long once its counted repetitions are written out; shorten them");
  }
  // A pattern that does not begin with `^` is never matched in one pass. To find out whether it could be takes time with
  // the cube of the number of optional parts in a row.
  return parse(merged > MAX_MERGED ? `(?:$)?(?:${source})` : source);
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

/** What the automata of one schema's patterns may still take. */
class PatternBudget extends StepBudget {
  bytes = 0;

  constructor() {
    super(SCHEMA_LIMITS.automatonWork, STEPS_PER_SLICE);
  }

  get isSpent(): boolean {
    return this.bytes > SCHEMA_LIMITS.automatonBytes || this.left < 0;
  }
}

/** A state of re2js's lazy automaton. */
export interface State {
  readonly isMatch: boolean;
  readonly nfaStates: readonly number[];
}

interface Instruction {
  readonly runes: Int32Array;
  matchRune(character: number): boolean;
}

export interface Automaton {
  readonly prog: { numInst(): number; getInst(at: number): Instruction };
  readonly numClasses: number;
  readonly classBounds: Int32Array;
  readonly failed: boolean;
  runeClass(character: number): number;
  step(state: State, characterClass: number, character: number, anchor: number): State | null;
  start(input: { context(at: number): number; step(at: number): number }, at: number): State | null;
  /** Forgets the states there are. */
  clearCache(): void;
}

export const UNANCHORED = 0;
const BEGIN_TEXT_AND_LINE = 0b101;
export const END_TEXT = -1;
const LAST_CHARACTER = 0x10ffff;
const STATE_BYTES = 200;
const REFERENCE_BYTES = 8;

/** The state before the first character of a text. */
export function startOf(automaton: Automaton): State | null {
  return automaton.start({ context: () => BEGIN_TEXT_AND_LINE, step: () => END_TEXT }, 0);
}

/**
 * Builds all states of a pattern's automaton. False where they exceed the budget.
 *
 * With more states than it can hold (`a[ab]{900}c` has 2^900), re2js simulates at up to 20 µs a character, a second for
 * 64 KiB. Such a pattern is refused when its schema is registered, instead of stalling a publish later.
 */
function* fittingAutomaton(expression: RE2JS, budget: PatternBudget): Steps<boolean> {
  const { re2Input } = expression;
  // Two kinds of pattern never use the automaton: a plain text, and one with a single way to match it.
  if (re2Input.prefixComplete || re2Input.onepass !== null) return true;
  const automaton = re2Input.dfa as Automaton;
  const first = startOf(automaton);
  if (automaton.failed || first === null) return false;
  const characters = yield* characterKinds(automaton, budget);
  const known = new Set([first]);
  for (const state of known) {
    budget.bytes += STATE_BYTES + REFERENCE_BYTES * (state.nfaStates.length + automaton.numClasses);
    for (const [characterClass, character] of characters) {
      if (budget.isSpent) return false;
      if (budget.shouldYield()) yield;
      budget.left -= 1 + state.nfaStates.length;
      const next = automaton.step(state, characterClass, character, UNANCHORED);
      if (next === null) return false;
      known.add(next);
    }
  }
  return !budget.isSpent;
}

/**
 * One character for each kind that the pattern distinguishes, by its class, and the end of the text. Many classes are of
 * one kind: `\p{L}` has more than a thousand ranges.
 */
function* characterKinds(automaton: Automaton, budget: PatternBudget): Steps<Map<number, number>> {
  const tests = new Map<Int32Array, Instruction>();
  for (let at = 0; at < automaton.prog.numInst(); at++) {
    const instruction = automaton.prog.getInst(at);
    if (instruction.runes.length > 0) tests.set(instruction.runes, instruction);
  }
  const characters = new Map([[automaton.numClasses, END_TEXT]]);
  const kinds = new Set<string>();
  for (let characterClass = 0; characterClass < automaton.numClasses; characterClass++) {
    budget.left -= tests.size;
    if (budget.isSpent) return characters;
    if (budget.shouldYield()) yield;
    const character = characterClass === 0 ? 0 : automaton.classBounds[characterClass - 1]!;
    if (character > LAST_CHARACTER) continue;
    let kind = `${character === 0x0a} ${/\w/.test(String.fromCodePoint(character))} `;
    for (const test of tests.values()) kind += test.matchRune(character) ? "1" : "0";
    if (kinds.has(kind)) continue;
    kinds.add(kind);
    characters.set(characterClass, character);
  }
  return characters;
}

const STEPS_PER_TEST = 5;
/** Measured over patterns of 6 to 450 instructions, besides the states of their automata. */
const BYTES_PER_INSTRUCTION = 768;
/** A character of ASCII takes one. */
const STEPS_PER_OTHER_UNIT = 2;
// oxlint-disable-next-line no-control-regex
const NOT_ASCII = /[^\0-\x7f]/;

/** Compiles the patterns of one schema, each to an expression that takes linear time on any text. */
export class PatternCompiler {
  readonly #budget = new PatternBudget();
  readonly #compiled = new Map<string, RegExpLike>();
  #instructions = 0;

  /** Memory of the patterns compiled so far, about. */
  get bytes(): number {
    return this.#budget.bytes + BYTES_PER_INSTRUCTION * this.#instructions;
  }

  /** @throws `PatternSyntaxError` with a sentence part on why a pattern cannot be used */
  compile(pattern: string): RegExpLike {
    return runSync(this.compileSteps(pattern));
  }

  /** The same in steps; one that was compiled before takes none. */
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
    if (!(yield* fittingAutomaton(expression, this.#budget))) {
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
