import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { Schemata } from "../domain/action.ts";
import { messageOf } from "../domain/error.ts";
import { resize } from "../runtime/cache.ts";
import type { Yielder } from "../runtime/yielding.ts";
import { FILTER_STEPS, SHORT_CHECK_BYTES } from "../schema/limits.ts";
import { compileSchemaSteps, type Validator } from "../schema/validate/compile.ts";
import type { Claim, ClaimedEvent } from "../store/queue.ts";
import type { EngineParts } from "./parts.ts";
import { parseText } from "../json/parse.ts";

/** What compiled filters may take: some 6,000 of a few properties, or 250 of 300. */
const MAX_COMPILED_BYTES = 64 * 1024 * 1024;
/** What a filter counts for until it is compiled, and if it cannot be: it is kept so that it is not tried again for each event. */
const UNCOMPILED_BYTES = 1_024;

interface CompiledFilter {
  filter: Schemata;
  /** Resolves when it is compiled; `undefined` from then on. */
  compiling: Promise<void> | undefined;
  /** `undefined` where it cannot be compiled. */
  validator: Validator | undefined;
}

interface FilterParts extends Pick<EngineParts, "logger" | "longChecks"> {
  /** Shares the thread with what else runs long on it. */
  readonly yielder: Pick<Yielder, "run">;
}

/**
 * The filters of subscriptions. They decide before the first attempt of a delivery, and before the next one after it was
 * cut short or requested by a person; not between a failed attempt and its retry.
 *
 * Where a filter cannot decide, the event is sent: handlers can do with one too many, and not with one too few.
 */
export class Filters {
  readonly #parts: FilterParts;
  /** The compiled filters by the rowid of the subscription. */
  readonly #compiled = new LRUCache<number, CompiledFilter>({ maxSize: MAX_COMPILED_BYTES });
  /** The last payload that was read: an event that goes to many is read once. */
  #last: { readonly event: ClaimedEvent; readonly value: unknown } | undefined;

  constructor(parts: FilterParts) {
    this.#parts = parts;
  }

  /**
   * Whether a delivery is sent. It takes the thread some microseconds, or 10 ms at most.
   * @returns a promise where the filter is compiled first, in steps, or where another thread reads a large payload
   */
  passes(claim: Claim): boolean | Promise<boolean> {
    const { failures, event, subscription } = claim;
    const { filter } = subscription.settings;
    const { payload } = event;
    // One that is damaged fails as an attempt, where it can be seen.
    if (filter === null || failures > 0 || payload === undefined) return true;
    if (payload.byteLength > SHORT_CHECK_BYTES) return this.#passesLarge(claim, payload, filter);
    const compiled = this.#compiledOf(subscription.subscriptionId, filter);
    const decide = (): boolean => {
      const { validator } = compiled;
      if (validator === undefined) return true;
      return this.#decided(claim, validator.conforms(this.#payloadOf(event, payload), FILTER_STEPS));
    };
    return compiled.compiling === undefined ? decide() : compiled.compiling.then(decide);
  }

  #compiledOf(subscriptionId: number, filter: Schemata): CompiledFilter {
    const known = this.#compiled.get(subscriptionId);
    // The same filter is nearly always the same object; to compare it takes far less than to compile it.
    if (known !== undefined && (known.filter === filter || isDeepStrictEqual(known.filter, filter))) {
      known.filter = filter;
      return known;
    }
    const compiled: CompiledFilter = { filter, compiling: undefined, validator: undefined };
    this.#compiled.set(subscriptionId, compiled, { size: UNCOMPILED_BYTES });
    compiled.compiling = this.#compile(subscriptionId, compiled);
    return compiled;
  }

  async #compile(subscriptionId: number, compiled: CompiledFilter): Promise<void> {
    const { logger, yielder } = this.#parts;
    try {
      const validator = await yielder.run(compileSchemaSteps(compiled.filter));
      compiled.validator = validator;
      resize(this.#compiled, subscriptionId, compiled, validator.bytes);
    } catch (error) {
      logger.error(
        { subscription: subscriptionId, error: messageOf(error) },
        "A subscription's filter cannot be used, and all of its events are sent; give it another one.",
      );
    }
    compiled.compiling = undefined;
  }

  async #passesLarge(claim: Claim, payload: Uint8Array, filter: Schemata): Promise<boolean> {
    const { longChecks, logger } = this.#parts;
    try {
      const { failure, isDecided } = await longChecks.check(
        { schemata: filter, payload, maxSteps: FILTER_STEPS },
        // What waits here are attempts, of which the engine has only so many and so many bytes.
        { caller: this, maxWaiting: Infinity },
      );
      return this.#decided(claim, isDecided ? failure === undefined : undefined);
    } catch (error) {
      const { deliveryId: delivery, subscription } = claim;
      logger.error(
        { delivery, subscription: subscription.subscriptionId, error: messageOf(error) },
        "A large payload could not be checked against the subscription's filter; it is sent.",
      );
      return true;
    }
  }

  /** @param conforms `undefined` where that takes too long to find out */
  #decided({ deliveryId, event, subscription }: Claim, conforms: boolean | undefined): boolean {
    if (conforms === undefined) {
      this.#parts.logger.warn(
        { delivery: deliveryId, event: event.eventId, subscription: subscription.subscriptionId },
        "The payload takes too long to check against the subscription's filter; it is sent.",
      );
    }
    return conforms !== false;
  }

  #payloadOf(event: ClaimedEvent, { buffer, byteOffset, byteLength }: Uint8Array): unknown {
    if (this.#last?.event !== event) {
      const text = Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
      this.#last = { event, value: parseText(text) };
    }
    return this.#last.value;
  }
}
