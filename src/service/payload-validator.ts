import type { Schemata } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import type { RawJson } from "../json/raw-json.ts";
import { eventLoop } from "../runtime/yielding.ts";
import { budget, publishSteps, SHORT_CHECK_BYTES, SHORT_CHECK_STEPS } from "../schema/limits.ts";
import type { OffThreadValidator, ValidationCaller, Validator } from "../schema/validate/compile.ts";
import type { Failure } from "../schema/validate/errors.ts";

/** A check of so many steps takes this thread a millisecond or two; the longest that it runs itself takes some 10. */
const LONG_STEPS = 50_000;
/** With more of a caller's checks waiting, a refusal names only the first broken rule. */
const MAX_EXPLANATIONS_WAITING = 32;

export interface CompiledSchema {
  readonly schemata: Schemata;
  readonly validator: Validator;
}

type Verdict = Failure | undefined | Promise<Failure | undefined>;

/**
 * Validates payloads: short checks at once, long ones on another thread. Counted steps decide which, so that both give the
 * same verdict. Many requests may bring a long one each: checks after it wait for a slice of a later turn of the event loop.
 */
export class PayloadValidator {
  readonly #offThread: OffThreadValidator;
  #isAfterLong = false;
  /** Those under which a stored payload took too many steps for this thread: the next ones would, too. */
  readonly #longCandidates = new WeakSet<Validator>();

  constructor(offThread: OffThreadValidator) {
    this.#offThread = offThread;
  }

  /** Await it before a check, unless it is `undefined`. */
  pause(): Promise<void> | undefined {
    return this.#isAfterLong ? eventLoop.yield() : undefined;
  }

  /** Why a payload does not conform, or `undefined` when it does. */
  failureOf({ schemata, validator }: CompiledSchema, payload: RawJson, caller: ValidationCaller): Verdict {
    const failure = this.#try(validator, payload);
    if (failure === "long") return this.#validateOffThread(schemata, payload, caller);
    if (failure === undefined || !wantsExplanation(caller)) return failure;
    return this.#explained(failure, schemata, payload, caller);
  }

  /** Whether it conforms; a payload that takes too many steps does not. */
  conforms(
    { schemata, validator }: CompiledSchema,
    payload: RawJson,
    caller: ValidationCaller,
  ): Promise<boolean> | boolean {
    if (payload.bytes.length <= SHORT_CHECK_BYTES && !this.#longCandidates.has(validator)) {
      const conforms = validator.conforms(payload.value(), SHORT_CHECK_STEPS);
      if (conforms !== undefined) return conforms;
      this.#longCandidates.add(validator);
    }
    return this.#validateOffThread(schemata, payload, caller).then((failure) => failure === undefined);
  }

  /** With all other broken rules, unless the other thread has too much to do. */
  async #explained(
    failure: Failure,
    schemata: Schemata,
    payload: RawJson,
    caller: ValidationCaller,
  ): Promise<Failure> {
    try {
      const bounded = { ...caller, maxWaiting: MAX_EXPLANATIONS_WAITING };
      return (await this.#validateOffThread(schemata, payload, bounded)) ?? failure;
    } catch (error) {
      if (error instanceof EvregError && error.code === "unavailable") return failure;
      throw error;
    }
  }

  /** A large payload would take long even to parse. */
  #try(validator: Validator, payload: RawJson): Failure | undefined | "long" {
    if (payload.bytes.length > SHORT_CHECK_BYTES) return "long";
    const failure = validator.validate(payload.value(), SHORT_CHECK_STEPS);
    if (SHORT_CHECK_STEPS - budget.left >= LONG_STEPS && !this.#isAfterLong) {
      this.#isAfterLong = true;
      setImmediate(() => (this.#isAfterLong = false));
    }
    return budget.left < 0 ? "long" : failure;
  }

  async #validateOffThread(
    schemata: Schemata,
    payload: RawJson,
    caller: ValidationCaller,
  ): Promise<Failure | undefined> {
    const { bytes } = payload;
    const explains = wantsExplanation(caller);
    const check = { schemata, payload: bytes, maxSteps: publishSteps(bytes.length), explains };
    const { failure } = await this.#offThread.check(check, caller);
    if (explains && failure !== undefined) caller.explained!.left -= 1;
    return failure;
  }
}

function wantsExplanation({ explained }: ValidationCaller): boolean {
  return explained !== undefined && explained.left > 0;
}
