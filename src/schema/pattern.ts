import type { RegExpEngine, RegExpLike } from "ajv/dist/types/index.js";
import { AutomatonBudget, fittingAutomaton } from "./automaton.ts";
import { spend } from "./budget.ts";
import { expressionOf } from "./expression.ts";
import { nativePattern } from "./native-pattern.ts";
import { PatternSyntaxError } from "./pattern-syntax.ts";
import { finish, type Task } from "./task.ts";

const STEPS_PER_TEST = 5;
/** Measured over patterns of 6 to 450 instructions, besides the states of their automata. */
const BYTES_PER_INSTRUCTION = 768;
/** A character of ASCII takes one. */
const STEPS_PER_OTHER_UNIT = 2;
// oxlint-disable-next-line no-control-regex
const NOT_ASCII = /[^\0-\x7f]/;

/**
 * Compiles the patterns of one schema, each to an expression that takes linear time on any text.
 * @throws `PatternSyntaxError` with a sentence part on why a pattern cannot be used
 */
export class PatternCompiler {
  readonly #budget = new AutomatonBudget();
  readonly #compiled = new Map<string, RegExpLike>();
  #instructions = 0;

  /** About what the patterns compiled so far keep in memory. */
  get bytes(): number {
    return this.#budget.bytes + BYTES_PER_INSTRUCTION * this.#instructions;
  }

  compile(pattern: string): RegExpLike {
    return finish(this.compiling(pattern));
  }

  /** The same in steps; one that was compiled before takes none. */
  *compiling(pattern: string): Task<RegExpLike> {
    let compiled = this.#compiled.get(pattern);
    if (compiled === undefined) {
      yield;
      compiled = yield* this.#building(pattern);
      this.#compiled.set(pattern, compiled);
    }
    return compiled;
  }

  /** This compiler in the shape Ajv asks for. */
  engine(): RegExpEngine {
    return Object.assign((pattern: string) => this.compile(pattern), { code: "evreg.pattern" });
  }

  *#building(pattern: string): Task<RegExpLike> {
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
      // Ajv keeps one expression for all whose text is the same.
      toString: () => `re2:${pattern}`,
    } as RegExpLike;
  }
}
