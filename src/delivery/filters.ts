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
/** What one counts for that cannot be compiled, and is cached so that it is not tried again for each event. */
const UNUSABLE_BYTES = 1_024;

interface CompiledFilter {
  filter: Schemata;
  /** `undefined` where it cannot be compiled. */
  readonly validator: Validator | undefined;
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
  readonly #logger: Logger;
  readonly #random: Random;
  readonly #yielder: FiltersDependencies["yielder"];
  readonly #maxCompiledBytes: number;
  /** By subscription. */
  readonly #compiled: LRUCache<number, CompiledFilter>;
  readonly #large: LargePayloadFilter;
  /** Of an event that goes to many, the payload is read once. */
  #last: { readonly event: ClaimedEvent; readonly value: unknown } | undefined;

  constructor({
    logger,
    random,
    yielder,
    longChecks,
    maxCompiledBytes = MAX_COMPILED_BYTES,
  }: FiltersDependencies) {
    this.#logger = logger;
    this.#random = random;
    this.#yielder = yielder;
    this.#large = new LargePayloadFilter(longChecks, logger);
    this.#maxCompiledBytes = maxCompiledBytes;
    this.#compiled = new LRUCache({ maxSize: maxCompiledBytes });
  }

  /**
   * What happens to a delivery. Takes the thread some microseconds; of a payload made for it, some 10 ms.
   * @returns a promise where the filter is not ready; `verdict` is to be called again when it resolves. Compiling takes up
   * to a hundred milliseconds, in steps; a large payload, which would take long to be read alone, goes to another thread.
   */
  verdict(claim: Claim, filter: Schemata): "send" | "exclude" | Promise<void> {
    const { deliveryId, failures, event } = claim;
    const { payload } = event;
    // One that is damaged fails as an attempt, where it can be seen.
    if (failures > 0 || payload === undefined) return "send";
    const { subscriptionId } = claim.subscription;
    let conforms: Verdict;
    if (isLarge(payload)) {
      const pending = this.#large.prepare(claim, payload, filter);
      if (pending !== undefined) return pending;
      conforms = this.#large.take(claim);
    } else {
      const compiled = this.#compiledOf(subscriptionId, filter);
      if (compiled === undefined) return this.#compile(subscriptionId, filter);
      const { validator } = compiled;
      conforms = validator === undefined || validator.conforms(this.#payloadOf(event, payload), FILTER_STEPS);
    }
    if (conforms === undefined) {
      this.#logger.warn(
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
      let place = Math.floor(this.#random.fraction() * cache.size);
      for (const each of cache.keys()) {
        if (place === 0) {
          cache.delete(each);
          break;
        }
        place -= 1;
      }
    }
    cache.set(subscriptionId, compiled, { size: bytes });
  }

  async #compile(subscriptionId: number, filter: Schemata): Promise<void> {
    let validator: Validator | undefined;
    try {
      validator = await this.#yielder.run(compileSchemaSteps(filter));
    } catch (error) {
      const reason = messageOf(error);
      this.#logger.error(
        { subscription: subscriptionId, error: reason },
        "A subscription's filter cannot be used, and all of its events are sent; give it another one.",
      );
    }
    this.#cache(subscriptionId, { filter, validator }, validator?.bytes ?? UNUSABLE_BYTES);
  }

  #payloadOf(event: ClaimedEvent, { buffer, byteOffset, byteLength }: Uint8Array): unknown {
    if (this.#last?.event !== event) {
      const text = Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
      this.#last = { event, value: JSON.parse(text) as unknown };
    }
    return this.#last.value;
  }
}

function isLarge(payload: Uint8Array): boolean {
  return payload.byteLength > SHORT_CHECK_BYTES;
}

/** Verdicts that were not taken yet; each is, unless its delivery is released. */
const MAX_VERDICTS = 1_000;

/** Whether a payload conforms to a filter; `undefined` where that takes too long to find out. */
type Verdict = boolean | undefined;

interface LargeCheck {
  readonly filter: Schemata;
  /** Until there is a verdict. */
  pending: Promise<void> | undefined;
  conforms: Verdict;
}

/** Verdicts on payloads that would take this thread long to read: another one does. */
class LargePayloadFilter {
  readonly #longChecks: OffThreadValidator;
  readonly #logger: Logger;
  /** By delivery. */
  readonly #checks = new LRUCache<number, LargeCheck>({ max: MAX_VERDICTS });

  constructor(longChecks: OffThreadValidator, logger: Logger) {
    this.#longChecks = longChecks;
    this.#logger = logger;
  }

  /** @returns `undefined` once there is a verdict; else it resolves when there may be one */
  prepare(claim: Claim, payload: Uint8Array, filter: Schemata): Promise<void> | undefined {
    const known = this.#checks.get(claim.deliveryId);
    if (known !== undefined && isDeepStrictEqual(known.filter, filter)) return known.pending;
    const check: LargeCheck = { filter, pending: undefined, conforms: undefined };
    // The one evicted was released, and is checked anew when it comes again.
    this.#checks.set(claim.deliveryId, check);
    return (check.pending = this.#check(claim, payload, check));
  }

  /** The verdict, which is not cached any longer. */
  take({ deliveryId }: Claim): Verdict {
    const check = this.#checks.get(deliveryId);
    this.#checks.delete(deliveryId);
    return check?.conforms;
  }

  async #check(
    { deliveryId, subscription }: Claim,
    { buffer, byteOffset, byteLength }: Uint8Array,
    large: LargeCheck,
  ): Promise<void> {
    const payload = new Uint8Array(buffer, byteOffset, byteLength);
    const check = { schemata: large.filter, payload, maxSteps: FILTER_STEPS };
    try {
      // What waits here are claims, of which the engine holds only so many and so many bytes.
      const { failure, isDecided } = await this.#longChecks.check(check, {
        caller: this,
        boundsItself: true,
      });
      large.conforms = isDecided ? failure === undefined : undefined;
    } catch (error) {
      large.conforms = true;
      const reason = messageOf(error);
      this.#logger.error(
        { delivery: deliveryId, subscription: subscription.subscriptionId, error: reason },
        "A large payload could not be held to the subscription's filter; it is sent.",
      );
    }
    large.pending = undefined;
  }
}
