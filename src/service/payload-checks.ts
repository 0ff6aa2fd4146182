import type { Schemata } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import type { RawJson } from "../json/raw-json.ts";
import type { Clock } from "../runtime/clock.ts";
import { loopPace } from "../runtime/pace.ts";
import { budget } from "../schema/budget.ts";
import type { Validator } from "../schema/compile.ts";
import type { Failure } from "../schema/failure.ts";
import { publishSteps, SHORT_CHECK_BYTES, SHORT_CHECK_STEPS } from "../schema/limits.ts";
import type { LongCheckAsker, LongChecks } from "../schema/long-check.ts";
import type { LoadedAction } from "./action-cache.ts";

/** A check of so many steps may take the thread a millisecond or two, and one of the most it takes itself, some 10. */
const LONG_STEPS = 50_000;
/** With more of a caller's checks waiting, the first rule that a payload breaks is answered at once. */
const MOST_EXPLANATIONS_WAITING = 32;
/** V8 may have dropped the code of a validator that was not run for so long. */
const COLD_MS = 10_000;
/** One of fewer parts has it again soon enough. */
const MANY_PARTS = 8;

export interface PayloadChecksParts {
  readonly clock: Pick<Clock, "now">;
  readonly elsewhere: LongChecks;
  /** The schema of a revision, `undefined` when there is none any more. */
  readonly schemaOf: (action: string, revision: number) => Promise<Schemata | undefined>;
}

/** A schema with its compiled form. */
export interface Candidate {
  readonly schemata: Schemata;
  readonly validator: Validator;
}

/**
 * Holds payloads to schemas: at once where that is done soon, and on another thread where it is not. Counting tells which,
 * so a verdict is the same whoever gives it.
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

  /** To be waited for before a check, where there is anything to wait for. */
  pause(): Promise<void> | undefined {
    return this.#isAfterLong ? loopPace.breathe() : undefined;
  }

  /** Why a payload does not conform to an action's schema, or `undefined` when it does. */
  failureOf(
    name: string,
    action: LoadedAction,
    payload: RawJson,
    asker: LongCheckAsker,
  ): Failure | undefined | Promise<Failure | undefined> {
    const { validator } = action;
    if (!this.#isCold(validator)) return this.#check(name, action, payload, asker);
    return loopPace.walk(validator.warming()).then(() => this.#check(name, action, payload, asker));
  }

  /** The same for a schema that is not in force. */
  failureUnder(
    { schemata, validator }: Candidate,
    payload: RawJson,
    asker: LongCheckAsker,
  ): Failure | undefined | Promise<Failure | undefined> {
    const failure = this.#try(validator, payload);
    return failure === "long" ? this.#elsewhere(schemata, payload, asker) : failure;
  }

  #check(
    name: string,
    { validator, revision }: LoadedAction,
    payload: RawJson,
    asker: LongCheckAsker,
  ): Failure | undefined | Promise<Failure | undefined> {
    const failure = this.#try(validator, payload);
    if (failure === undefined || (failure !== "long" && !isExplained(asker))) return failure;
    const known = failure === "long" ? undefined : failure;
    return this.#parts.schemaOf(name, revision).then((schemata) => {
      // Where there is none the action is another one by now, and the store refuses the event for it.
      if (schemata === undefined) return known;
      return known === undefined
        ? this.#elsewhere(schemata, payload, asker)
        : this.#explained(known, schemata, payload, asker);
    });
  }

  /** With all else that the payload breaks, or as it is where the other thread has too much to do to find that out. */
  async #explained(
    failure: Failure,
    schemata: Schemata,
    payload: RawJson,
    asker: LongCheckAsker,
  ): Promise<Failure> {
    try {
      const patient = { ...asker, maxWaiting: MOST_EXPLANATIONS_WAITING };
      return (await this.#elsewhere(schemata, payload, patient)) ?? failure;
    } catch (error) {
      if (error instanceof EvregError && error.code === "unavailable") return failure;
      throw error;
    }
  }

  /** A large payload would take long to be read alone. */
  #try(validator: Validator, payload: RawJson): Failure | undefined | "long" {
    if (payload.bytes.length > SHORT_CHECK_BYTES) return "long";
    const failure = validator.validate(payload.value(), SHORT_CHECK_STEPS);
    this.#took(SHORT_CHECK_STEPS - budget.left);
    return budget.left < 0 ? "long" : failure;
  }

  async #elsewhere(
    schemata: Schemata,
    payload: RawJson,
    asker: LongCheckAsker,
  ): Promise<Failure | undefined> {
    const { bytes } = payload;
    const explains = isExplained(asker);
    const check = { schemata, payload: bytes, maxSteps: publishSteps(bytes.length), explains };
    const { failure } = await this.#parts.elsewhere.check(check, asker);
    if (explains && failure !== undefined) asker.explained!.left -= 1;
    return failure;
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

function isExplained({ explained }: LongCheckAsker): boolean {
  return explained !== undefined && explained.left > 0;
}
