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

interface FiltersParts {
  readonly logger: Logger;
  readonly random: Random;
  /** Shares the thread with what else runs long on it. */
  readonly yielder: Pick<Yielder, "run">;
  readonly longChecks: OffThreadValidator;
  readonly maxCompiledBytes?: number;
}

/**
 * The filters of subscriptions. They decide before the first attempt of a delivery, and before the next one after it was
 * cut short or asked for anew; between a failed attempt and its retry they are not asked.
 *
 * A filter that cannot tell lets pass: an event too many is what handlers can do with, one too few is not.
 */
export class Filters {
  readonly #logger: Logger;
  readonly #random: Random;
  readonly #yielder: FiltersParts["yielder"];
  readonly #maxCompiledBytes: number;
  /** By subscription. */
  readonly #compiled: LRUCache<number, CompiledFilter>;
  readonly #large: LargeVerdicts;
  /** Of an event that goes to many, the payload is read once. */
  #last: { readonly event: ClaimedEvent; readonly value: unknown } | undefined;

  constructor({ logger, random, yielder, longChecks, maxCompiledBytes = MAX_COMPILED_BYTES }: FiltersParts) {
    this.#logger = logger;
    this.#random = random;
    this.#yielder = yielder;
    this.#large = new LargeVerdicts(longChecks, logger);
    this.#maxCompiledBytes = maxCompiledBytes;
    this.#compiled = new LRUCache({ maxSize: maxCompiledBytes });
  }

  /**
   * Gets ready to decide about a delivery: compiles its filter, which takes up to a hundred milliseconds, in steps; has a
   * large payload, which would take long to be read alone, checked on another thread.
   * @returns `undefined` where `keepsBack` can be asked at once; else it resolves when that may be so, and is to be asked again
   */
  prepare(claim: Claim): Promise<void> | undefined {
    const { failures, event, subscription } = claim;
    const { filter } = subscription.settings;
    if (filter === null || failures > 0 || event.payload === undefined) return undefined;
    const { subscriptionId } = subscription;
    if (isLarge(event.payload)) return this.#large.prepare(claim, event.payload, filter);
    return this.#compiledOf(subscriptionId, filter) === undefined
      ? this.#compile(subscriptionId, filter)
      : undefined;
  }

  /**
   * Whether this delivery ends here. Takes the thread some microseconds, of a payload made for it some 10 ms. To be asked
   * right after `prepare` had nothing to do.
   */
  keepsBack(claim: Claim): boolean {
    const { deliveryId, failures, event, subscription } = claim;
    const { filter } = subscription.settings;
    const { payload } = event;
    // One that is damaged fails as an attempt, where it can be seen.
    if (filter === null || failures > 0 || payload === undefined) return false;
    const { subscriptionId } = subscription;
    const conforms = isLarge(payload)
      ? this.#large.take(claim)
      : this.#verdict(subscriptionId, filter, event, payload);
    if (conforms === undefined) {
      this.#logger.warn(
        { delivery: deliveryId, event: event.eventId, subscription: subscriptionId },
        "The payload takes too long to check against the subscription's filter; it is sent.",
      );
    }
    return conforms === false;
  }

  #verdict(subscriptionId: number, filter: Schemata, event: ClaimedEvent, payload: Uint8Array): Verdict {
    const kept = this.#compiledOf(subscriptionId, filter);
    if (kept === undefined) throw new Error(`The filter of subscription ${subscriptionId} is not ready.`);
    if (kept.validator === undefined) return true;
    return kept.validator.conforms(this.#payloadOf(event, payload), FILTER_STEPS);
  }

  #compiledOf(subscriptionId: number, filter: Schemata): CompiledFilter | undefined {
    const kept = this.#compiled.get(subscriptionId);
    if (kept === undefined) return undefined;
    // The same filter is nearly always the same object; to compare it takes far less than to compile it.
    if (kept.filter !== filter && !isDeepStrictEqual(kept.filter, filter)) return undefined;
    kept.filter = filter;
    return kept;
  }

  /**
   * Evicts at random, and not what was used longest ago: an action's events ask its filters one after the other, so that
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
      const reason = error instanceof Error ? error.message : String(error);
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

/** Verdicts that wait to be asked for; each is, unless its delivery is handed back. */
const MAX_VERDICTS = 1_000;

/** What a filter says of a payload: `undefined` where it cannot tell. */
type Verdict = boolean | undefined;

interface Asked {
  readonly filter: Schemata;
  /** Until there is a verdict. */
  asking: Promise<void> | undefined;
  conforms: Verdict;
}

/** What filters say of payloads that would take this thread long to read: another one does. */
class LargeVerdicts {
  readonly #longChecks: OffThreadValidator;
  readonly #logger: Logger;
  /** By delivery. */
  readonly #asked = new LRUCache<number, Asked>({ max: MAX_VERDICTS });

  constructor(longChecks: OffThreadValidator, logger: Logger) {
    this.#longChecks = longChecks;
    this.#logger = logger;
  }

  /** @returns `undefined` once there is a verdict; else it resolves when that may be so, and is to be asked again */
  prepare(claim: Claim, payload: Uint8Array, filter: Schemata): Promise<void> | undefined {
    const known = this.#asked.get(claim.deliveryId);
    if (known !== undefined && isDeepStrictEqual(known.filter, filter)) return known.asking;
    const asked: Asked = { filter, asking: undefined, conforms: undefined };
    // The one evicted was handed back, and is asked about anew when it comes again.
    this.#asked.set(claim.deliveryId, asked);
    return (asked.asking = this.#ask(claim, payload, asked));
  }

  /** The verdict, which is not kept any longer. */
  take({ deliveryId }: Claim): Verdict {
    const asked = this.#asked.get(deliveryId);
    this.#asked.delete(deliveryId);
    return asked?.conforms;
  }

  async #ask(
    { deliveryId, subscription }: Claim,
    { buffer, byteOffset, byteLength }: Uint8Array,
    asked: Asked,
  ): Promise<void> {
    const payload = new Uint8Array(buffer, byteOffset, byteLength);
    const check = { schemata: asked.filter, payload, maxSteps: FILTER_STEPS };
    try {
      // What waits here are claims, of which the engine holds only so many and so many bytes.
      const { failure, isDecided } = await this.#longChecks.check(check, {
        caller: this,
        boundsItself: true,
      });
      asked.conforms = isDecided ? failure === undefined : undefined;
    } catch (error) {
      asked.conforms = true;
      const reason = error instanceof Error ? error.message : String(error);
      this.#logger.error(
        { delivery: deliveryId, subscription: subscription.subscriptionId, error: reason },
        "A large payload could not be held to the subscription's filter; it is sent.",
      );
    }
    asked.asking = undefined;
  }
}
