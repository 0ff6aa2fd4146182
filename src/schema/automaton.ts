import type { RE2JS } from "re2js";
import { SCHEMA_LIMITS } from "./limits.ts";
import type { Task } from "./task.ts";

/** Work one step of building may take, about a millisecond. */
const STEP_WORK = 10_000;

/** What the patterns of one schema have cost so far. */
export class AutomatonBudget {
  bytes = 0;
  work = 0;
  #stepEnd = STEP_WORK;

  get spent(): boolean {
    return this.bytes > SCHEMA_LIMITS.automatonBytes || this.work > SCHEMA_LIMITS.automatonWork;
  }

  /** Whether a step's work has been done since this was last so. */
  get isStepOver(): boolean {
    if (this.work < this.#stepEnd) return false;
    this.#stepEnd = this.work + STEP_WORK;
    return true;
  }
}

interface State {
  readonly nfaStates: readonly number[];
}

interface Instruction {
  readonly runes: Int32Array;
  matchRune(character: number): boolean;
}

/** The part of re2js's lazy automaton used here. */
interface LazyAutomaton {
  readonly prog: { numInst(): number; getInst(at: number): Instruction };
  readonly numClasses: number;
  readonly classBounds: Int32Array;
  readonly failed: boolean;
  start(input: { context(at: number): number; step(at: number): number }, at: number): State | null;
  step(state: State, characterClass: number, character: number, anchor: number): State | null;
}

const UNANCHORED = 0;
const BEGIN_TEXT_AND_LINE = 0b101;
const END_TEXT = -1;
const LAST_CHARACTER = 0x10ffff;
const STATE_BYTES = 200;
const REFERENCE_BYTES = 8;

/**
 * Builds the states of a pattern's automaton now, and tells whether they fit the budget. One small pattern may take all of
 * it, so that this is done in steps.
 *
 * re2js builds states as a text asks for them and costs some nanoseconds a character where they are there. A pattern with
 * more states than it can keep (`a[ab]{900}c` has 2^900) falls back to simulating, at up to 20 µs a character: linear, but
 * a second for 64 KiB. Such a pattern is refused when its schema is registered, instead of stalling a publish later.
 */
export function* fittingAutomaton(expression: RE2JS, budget: AutomatonBudget): Task<boolean> {
  const { re2Input } = expression;
  // Two kinds of pattern never use the automaton: a plain text, and one with a single way to match it.
  if (re2Input.prefixComplete || re2Input.onepass !== null) return true;
  const automaton = re2Input.dfa as LazyAutomaton;
  const first = automaton.start({ context: () => BEGIN_TEXT_AND_LINE, step: () => END_TEXT }, 0);
  if (automaton.failed || first === null) return false;
  const characters = yield* characterKinds(automaton, budget);
  const known = new Set([first]);
  for (const state of known) {
    budget.bytes += STATE_BYTES + REFERENCE_BYTES * (state.nfaStates.length + automaton.numClasses);
    for (const [characterClass, character] of characters) {
      if (budget.spent) return false;
      if (budget.isStepOver) yield;
      budget.work += 1 + state.nfaStates.length;
      const next = automaton.step(state, characterClass, character, UNANCHORED);
      if (next === null) return false;
      known.add(next);
    }
  }
  return !budget.spent;
}

/**
 * One character for each kind the pattern tells apart, with its class, and the end of the text. Classes are finer than
 * kinds: `\p{L}` has more than a thousand ranges, all of them the same to it.
 */
function* characterKinds(automaton: LazyAutomaton, budget: AutomatonBudget): Task<Map<number, number>> {
  const tests = new Map<Int32Array, Instruction>();
  for (let at = 0; at < automaton.prog.numInst(); at++) {
    const instruction = automaton.prog.getInst(at);
    if (instruction.runes.length > 0) tests.set(instruction.runes, instruction);
  }
  const characters = new Map([[automaton.numClasses, END_TEXT]]);
  const kinds = new Set<string>();
  for (let characterClass = 0; characterClass < automaton.numClasses; characterClass++) {
    budget.work += tests.size;
    if (budget.spent) return characters;
    if (budget.isStepOver) yield;
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
