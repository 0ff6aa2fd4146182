import { isDeepStrictEqual } from "node:util";
import type { Schemata } from "../domain/action.ts";
import type { Logger } from "../runtime/logger.ts";
import { FILTER_STEPS } from "../schema/limits.ts";
import type { LongChecks } from "../schema/long-check.ts";
import type { Claim } from "../store/claims.ts";

/** Verdicts that wait to be asked for; each is, unless its delivery is handed back. */
const MOST_KEPT = 1_000;

/** What a filter says of a payload: `undefined` where it cannot tell. */
export type Verdict = boolean | undefined;

interface Asked {
  readonly filter: Schemata;
  /** Until there is a verdict. */
  asking: Promise<void> | undefined;
  conforms: Verdict;
}

/** What filters say of payloads that would take this thread long to read: another one does. */
export class LargeVerdicts {
  readonly #longChecks: LongChecks;
  readonly #logger: Logger;
  /** By delivery. */
  readonly #asked = new Map<number, Asked>();

  constructor(longChecks: LongChecks, logger: Logger) {
    this.#longChecks = longChecks;
    this.#logger = logger;
  }

  /** @returns `undefined` once there is a verdict; else it resolves when that may be so, and is to be asked again */
  prepare(claim: Claim, payload: Uint8Array, filter: Schemata): Promise<void> | undefined {
    const known = this.#asked.get(claim.deliveryId);
    if (known !== undefined && isDeepStrictEqual(known.filter, filter)) return known.asking;
    const asked: Asked = { filter, asking: undefined, conforms: undefined };
    // The one asked about longest ago was handed back, and is asked about anew when it comes again.
    if (this.#asked.size >= MOST_KEPT) this.#asked.delete(this.#asked.keys().next().value!);
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
