import { isDeepStrictEqual } from "node:util";
import type { Schemata } from "../domain/action.ts";
import type { Logger } from "../runtime/logger.ts";
import { compileSchema, type Validator } from "../schema/compile.ts";
import { FILTER_STEPS } from "../schema/limits.ts";
import type { Claim, ClaimedEvent, ClaimedSubscription } from "../store/claims.ts";

/** Compiled filters that are kept. */
const MOST_KEPT = 1_000;

interface Kept {
  readonly filter: Schemata;
  /** `undefined` where it cannot be compiled. */
  readonly validator: Validator | undefined;
}

/**
 * The filters of subscriptions. They decide before the first attempt of a delivery, and before the next one after it was
 * cut short or asked for anew; between a failed attempt and its retry they are not asked.
 *
 * A filter that cannot tell lets pass: an event too many is what handlers can do with, one too few is not.
 */
export class Filters {
  readonly #logger: Logger;
  /** By subscription, those used last behind the others. */
  readonly #kept = new Map<number, Kept>();
  /** Of an event that goes to many, the payload is read once. */
  #last: { readonly event: ClaimedEvent; readonly value: unknown } | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Whether this delivery ends here. May take the thread some 25 ms, mostly some microseconds. */
  keepsBack({ deliveryId, failures, event, subscription }: Claim): boolean {
    const { filter } = subscription.settings;
    if (filter === null || failures > 0) return false;
    const validator = this.#validatorOf(subscription, filter);
    if (validator === undefined) return false;
    const conforms = validator.conforms(this.#payloadOf(event), FILTER_STEPS);
    if (conforms === undefined) {
      const { subscriptionId } = subscription;
      this.#logger.warn(
        { delivery: deliveryId, event: event.eventId, subscription: subscriptionId },
        "The payload takes too long to check against the subscription's filter; it is sent.",
      );
    }
    return conforms === false;
  }

  #validatorOf({ subscriptionId }: ClaimedSubscription, filter: Schemata): Validator | undefined {
    const kept = this.#kept.get(subscriptionId);
    // The same filter is nearly always the same object; to compare it takes far less than to compile it.
    const isKept = kept !== undefined && (kept.filter === filter || isDeepStrictEqual(kept.filter, filter));
    const validator = isKept ? kept.validator : this.#compile(subscriptionId, filter);
    this.#kept.delete(subscriptionId);
    this.#kept.set(subscriptionId, { filter, validator });
    if (this.#kept.size > MOST_KEPT) {
      const [oldest] = this.#kept.keys();
      this.#kept.delete(oldest!);
    }
    return validator;
  }

  #compile(subscriptionId: number, filter: Schemata): Validator | undefined {
    try {
      return compileSchema(filter);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#logger.error(
        { subscription: subscriptionId, error: reason },
        "A subscription's filter cannot be used, and all of its events are sent; give it another one.",
      );
      return undefined;
    }
  }

  #payloadOf(event: ClaimedEvent): unknown {
    if (this.#last?.event !== event) {
      const { buffer, byteOffset, byteLength } = event.payload;
      const text = Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
      this.#last = { event, value: JSON.parse(text) as unknown };
    }
    return this.#last.value;
  }
}
