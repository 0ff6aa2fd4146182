import { messageOf } from "../domain/error.ts";
import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import type { Schemata } from "../domain/action.ts";
import type { Random } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Yielder } from "../runtime/yielding.ts";
import { FILTER_STEPS, SHORT_CHECK_BYTES } from "../schema/limits.ts";
import { compileSchemaSteps, type OffThreadValidator, type Validator } from "../schema/validate/compile.ts";
import type { Claim, ClaimedEvent } from "../store/queue.ts";

/** What compiled filters may take: some 6,000 of a few properties, or 250 of 300. */
const MAX_COMPILED_BYTES = 64 * 1024 * 1024;
/** What a filter counts for that cannot be compiled; it is cached so that it is not tried again for each event. */
const UNUSABLE_BYTES = 1_024;

/** How many verdicts on large payloads wait to be used; each is, unless its delivery is released. */
const MAX_VERDICTS = 1_000;

interface CompiledFilter {
  filter: Schemata;
  /** `undefined` where it cannot be compiled. */
  readonly validator: Validator | undefined;
}

/** Whether a payload conforms to a filter; `undefined` where that takes too long to find out. */
type Verdict = boolean | undefined;

interface LargeCheck {
  readonly filter: Schemata;
  /** Until there is a verdict. */
  pending: Promise<void> | undefined;
  conforms: Verdict;
}

interface FiltersDependencies {
  readonly logger: Logger;
  readonly random: Random;
  /** Shares the thread with what else runs long on it. */
  readonly yielder: Pick<Yielder, "run">;
  readonly longChecks: OffThreadValidator;
  readonly maxCompiledBytes?: number;
}

/**
 * The filters of subscriptions. They decide before the first attempt of a delivery, and before the next one after it was
 * cut short or requested by a person; not between a failed attempt and its retry.
 *
 * Where a filter cannot decide, the event is sent: handlers can do with one too many, and not with one too few.
 */
export class Filters {
  readonly #dependencies: FiltersDependencies;
  readonly #maxCompiledBytes: number;
  /** By subscription. */
  readonly #compiled: LRUCache<number, CompiledFilter>;
  /** Of payloads that would take this thread long to read, by delivery. One evicted was released, and is checked anew. */
  readonly #largeChecks = new LRUCache<number, LargeCheck>({ max: MAX_VERDICTS });
  /** Of an event that goes to many, the payload is read once. */
  #last: { readonly event: ClaimedEvent; readonly value: unknown } | undefined;

  constructor(dependencies: FiltersDependencies) {
    this.#dependencies = dependencies;
    this.#maxCompiledBytes = dependencies.maxCompiledBytes ?? MAX_COMPILED_BYTES;
    this.#compiled = new LRUCache({ maxSize: this.#maxCompiledBytes });
  }

  /**
   * What happens to a delivery of a subscription with this filter. Takes the thread some microseconds; 10 ms at most.
   * @returns a promise where the filter is not ready; `verdict` is to be called again when it resolves. Compiling takes up
   * to a hundred milliseconds, in steps; a large payload is read by another thread.
   */
  verdict(claim: Claim, filter: Schemata): "send" | "exclude" | Promise<void> {
    const { deliveryId, failures, event, subscription } = claim;
    const { subscriptionId } = subscription;
    const { payload } = event;
    // One that is damaged fails as an attempt, where it can be seen.
    if (failures > 0 || payload === undefined) return "send";
    let conforms: Verdict;
    if (payload.byteLength > SHORT_CHECK_BYTES) {
      const check = this.#largeChecks.get(deliveryId);
      if (check === undefined || !isDeepStrictEqual(check.filter, filter)) {
        return this.#checkLarge(claim, payload, filter);
      }
      if (check.pending !== undefined) return check.pending;
      this.#largeChecks.delete(deliveryId);
      ({ conforms } = check);
    } else {
      const compiled = this.#compiledOf(subscriptionId, filter);
      if (compiled === undefined) return this.#compile(subscriptionId, filter);
      const { validator } = compiled;
      conforms = validator === undefined || validator.conforms(this.#payloadOf(event, payload), FILTER_STEPS);
    }
    if (conforms === undefined) {
      this.#dependencies.logger.warn(
        { delivery: deliveryId, event: event.eventId, subscription: subscriptionId },
        "The payload takes too long to check against the subscription's filter; it is sent.",
      );
    }
    return conforms === false ? "exclude" : "send";
  }

  #compiledOf(subscriptionId: number, filter: Schemata): CompiledFilter | undefined {
    const compiled = this.#compiled.get(subscriptionId);
    if (compiled === undefined) return undefined;
    // The same filter is nearly always the same object; to compare it takes far less than to compile it.
    if (compiled.filter !== filter && !isDeepStrictEqual(compiled.filter, filter)) return undefined;
    compiled.filter = filter;
    return compiled;
  }

  /**
   * Evicts at random, and not what was used longest ago: an action's events use its filters one after the other, so that
   * with one filter too many each would be evicted just before its next use, and all be compiled for each event.
   */
  #cache(subscriptionId: number, compiled: CompiledFilter, bytes: number): void {
    const cache = this.#compiled;
    cache.delete(subscriptionId);
    while (cache.size > 0 && cache.calculatedSize + bytes > this.#maxCompiledBytes) {
      const index = Math.floor(this.#dependencies.random.fraction() * cache.size);
      cache.delete([...cache.keys()][index]!);
    }
    cache.set(subscriptionId, compiled, { size: bytes });
  }

  async #compile(subscriptionId: number, filter: Schemata): Promise<void> {
    const { logger, yielder } = this.#dependencies;
    let validator: Validator | undefined;
    try {
      validator = await yielder.run(compileSchemaSteps(filter));
    } catch (error) {
      logger.error(
        { subscription: subscriptionId, error: messageOf(error) },
        "A subscription's filter cannot be used, and all of its events are sent; give it another one.",
      );
    }
    this.#cache(subscriptionId, { filter, validator }, validator?.bytes ?? UNUSABLE_BYTES);
  }

  #checkLarge(claim: Claim, payload: Uint8Array, filter: Schemata): Promise<void> {
    const check: LargeCheck = { filter, pending: undefined, conforms: undefined };
    this.#largeChecks.set(claim.deliveryId, check);
    return (check.pending = this.#decideLarge(claim, payload, check));
  }

  async #decideLarge(
    { deliveryId, subscription }: Claim,
    { buffer, byteOffset, byteLength }: Uint8Array,
    check: LargeCheck,
  ): Promise<void> {
    const { longChecks, logger } = this.#dependencies;
    const payload = new Uint8Array(buffer, byteOffset, byteLength);
    try {
      const { failure, isDecided } = await longChecks.check(
        { schemata: check.filter, payload, maxSteps: FILTER_STEPS },
        // What waits here are claims, of which the engine holds only so many and so many bytes.
        { caller: this, boundsItself: true },
      );
      check.conforms = isDecided ? failure === undefined : undefined;
    } catch (error) {
      check.conforms = true;
      logger.error(
        { delivery: deliveryId, subscription: subscription.subscriptionId, error: messageOf(error) },
        "A large payload could not be checked against the subscription's filter; it is sent.",
      );
    }
    check.pending = undefined;
  }

  #payloadOf(event: ClaimedEvent, { buffer, byteOffset, byteLength }: Uint8Array): unknown {
    if (this.#last?.event !== event) {
      const text = Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
      this.#last = { event, value: JSON.parse(text) as unknown };
    }
    return this.#last.value;
  }
}
