import type { Schemata } from "../domain/action.ts";
import type { Clock } from "../runtime/clock.ts";
import { loopPace } from "../runtime/pace.ts";
import { budget } from "../schema/budget.ts";
import type { Failure } from "../schema/failure.ts";
import type { Validator } from "../schema/compile.ts";
import { publishSteps, SHORT_CHECK_STEPS } from "../schema/limits.ts";
import type { LoadedAction } from "./action-cache.ts";
import type { CheckThread } from "./check-thread.ts";

/** A check of so many steps may take the thread a millisecond or two, and one of the most it takes itself, some 10. */
const LONG_STEPS = 50_000;
/** The same goes for reading so many bytes into a value. */
const LONG_BYTES = 64 * 1024;
/** V8 may have dropped the code of a validator that was not run for so long. */
const COLD_MS = 10_000;
/** One of fewer parts has it again soon enough. */
const MANY_PARTS = 8;

export interface PayloadChecksParts {
  readonly clock: Pick<Clock, "now">;
  readonly thread: Pick<CheckThread, "check">;
  /** The schema of a revision, `undefined` when there is none any more. */
  readonly schemaOf: (action: string, revision: number) => Promise<Schemata | undefined>;
}

/** A schema with its compiled form. */
export interface Candidate {
  readonly schemata: Schemata;
  readonly validator: Validator;
}

/**
 * Holds what is published to its schema: at once where that is done soon, and on another thread where it is not. Counting
 * tells which, so a verdict is the same whoever gives it.
 *
 * No check follows a long one in the same turn of the event loop: one alone is bounded, and those of many requests that
 * come together are not. To ask costs next to nothing while all are short, as nearly all are.
 */
export class PayloadChecks {
  readonly #parts: PayloadChecksParts;
  #isAfterLong = false;
  /** When those of many parts were run last. */
  readonly #runMs = new WeakMap<Validator, number>();

  constructor(parts: PayloadChecksParts) {
    this.#parts = parts;
  }

  /** To be waited for before a payload is read and checked, where there is anything to wait for. */
  pause(bytes: Uint8Array): Promise<void> | undefined {
    // A payload of that size comes out of a body that has taken its time as well.
    return this.#isAfterLong || bytes.length >= LONG_BYTES ? loopPace.breathe() : undefined;
  }

  /**
   * Why a payload does not conform, or `undefined` when it does.
   * @param value what its bytes stand for
   */
  failureOf(
    name: string,
    action: LoadedAction,
    bytes: Uint8Array,
    value: unknown,
  ): Failure | undefined | Promise<Failure | undefined> {
    const { validator } = action;
    if (!this.#isCold(validator)) return this.#check(name, action, bytes, value);
    return loopPace.walk(validator.warming()).then(() => this.#check(name, action, bytes, value));
  }

  /** The same for a schema that is not in force. */
  failureUnder(
    { schemata, validator }: Candidate,
    bytes: Uint8Array,
    value: unknown,
  ): Failure | undefined | Promise<Failure | undefined> {
    const failure = this.#try(validator, value);
    return failure === "long" ? this.#elsewhere(schemata, bytes) : failure;
  }

  #check(
    name: string,
    { validator, revision }: LoadedAction,
    bytes: Uint8Array,
    value: unknown,
  ): Failure | undefined | Promise<Failure | undefined> {
    const failure = this.#try(validator, value);
    if (failure !== "long") return failure;
    return this.#parts.schemaOf(name, revision).then((schemata) => {
      // Where there is none the action is another one by now, and the store refuses the event for it.
      return schemata === undefined ? undefined : this.#elsewhere(schemata, bytes);
    });
  }

  #try(validator: Validator, value: unknown): Failure | undefined | "long" {
    const failure = validator.validate(value, SHORT_CHECK_STEPS);
    this.#took(SHORT_CHECK_STEPS - budget.left);
    return budget.left < 0 ? "long" : failure;
  }

  #elsewhere(schemata: Schemata, bytes: Uint8Array): Promise<Failure | undefined> {
    const maxSteps = publishSteps(bytes.length);
    const payload = new Uint8Array(bytes);
    return this.#parts.thread.check({ schemata: JSON.stringify(schemata), payload, maxSteps });
  }

  #isCold(validator: Validator): boolean {
    if (validator.parts <= MANY_PARTS) return false;
    const nowMs = this.#parts.clock.now();
    const runMs = this.#runMs.get(validator);
    this.#runMs.set(validator, nowMs);
    return runMs !== undefined && nowMs - runMs > COLD_MS;
  }

  #took(steps: number): void {
    if (steps < LONG_STEPS || this.#isAfterLong) return;
    this.#isAfterLong = true;
    setImmediate(() => {
      this.#isAfterLong = false;
    });
  }
}
