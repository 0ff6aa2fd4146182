import type { Schemata } from "../domain/action.ts";
import type { RawJson } from "../json/raw-json.ts";
import { eventLoop } from "../runtime/yielding.ts";
import { budget, publishSteps, SHORT_CHECK_BYTES, SHORT_CHECK_STEPS } from "../schema/limits.ts";
import type { OffThreadValidator, ValidationCaller, Validator } from "../schema/validate/compile.ts";
import type { Failure } from "../schema/validate/errors.ts";

export interface CompiledSchema {
  readonly schemata: Schemata;
  readonly validator: Validator;
}

/** A check of so many steps takes this thread a millisecond or two; the longest that it runs itself takes some 10. */
const LONG_STEPS = 50_000;

/**
 * Validates payloads: short checks at once, long ones on another thread. Counted steps decide which, so that both give the
 * same verdict. Many requests may bring a long one each: checks after it wait for a slice of a later turn of the event loop.
 */
export class PayloadValidator {
  readonly #offThread: OffThreadValidator;
  #isAfterLong = false;

  constructor(offThread: OffThreadValidator) {
    this.#offThread = offThread;
  }

  /** Await it before a check, unless it is `undefined`. */
  pause(): Promise<void> | undefined {
    return this.#isAfterLong ? eventLoop.yield() : undefined;
  }

  /**
   * Why a payload does not conform, or `undefined` when it does.
   * @param maxFailures how many failures are looked for
   */
  failureOf(
    { schemata, validator }: CompiledSchema,
    payload: RawJson,
    caller: ValidationCaller,
    maxFailures = 1,
  ): Failure | undefined | Promise<Failure | undefined> {
    // A large payload would take long even to parse.
    if (payload.bytes.length <= SHORT_CHECK_BYTES) {
      const failure = validator.validate(payload.value(), SHORT_CHECK_STEPS, maxFailures);
      if (SHORT_CHECK_STEPS - budget.left >= LONG_STEPS) this.#noteLong();
      // None are left also where they were not enough to say why it does not conform.
      if (budget.left > 0) return failure;
    }
    return this.#validateOffThread(schemata, payload, caller, maxFailures);
  }

  #noteLong(): void {
    if (this.#isAfterLong) return;
    this.#isAfterLong = true;
    setImmediate(() => (this.#isAfterLong = false));
  }

  /** Whether it conforms; a payload that takes too many steps does not. */
  conforms(
    { schemata, validator }: CompiledSchema,
    payload: RawJson,
    caller: ValidationCaller,
  ): Promise<boolean> | boolean {
    if (payload.bytes.length <= SHORT_CHECK_BYTES) {
      const conforms = validator.conforms(payload.value(), SHORT_CHECK_STEPS);
      if (conforms !== undefined) return conforms;
    }
    return this.#validateOffThread(schemata, payload, caller).then((failure) => failure === undefined);
  }

  async #validateOffThread(
    schemata: Schemata,
    payload: RawJson,
    caller: ValidationCaller,
    maxFailures = 1,
  ): Promise<Failure | undefined> {
    const { bytes } = payload;
    const check = { schemata, payload: bytes, maxSteps: publishSteps(bytes.length), maxFailures };
    return (await this.#offThread.check(check, caller)).failure;
  }
}
