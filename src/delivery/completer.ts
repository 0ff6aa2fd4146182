import { EvregError } from "../domain/error.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import { Backoff, type Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { AttemptResult, DeliveryQueue, FinishOutcome } from "../store/queue.ts";

/** Far less than what a lease has beyond the deadline of its attempt. */
const BEHIND_MS = 1_000;

export interface FinisherParts {
  readonly store: Pick<DeliveryQueue, "finish">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly counts: DeliveryCounts;
  readonly disableAfterMs: number | undefined;
  /** Called for each result once it is stored, or counts for nothing (`isFenced`): its delivery is leased anew. */
  readonly onStored: (result: AttemptResult, isFenced: boolean) => void;
  /** Called for a subscription that was deactivated by that, before `onStored`. */
  readonly onDeactivated: (subscriptionId: number) => void;
}

/** A result that is not stored yet. */
interface Unstored {
  readonly result: AttemptResult;
  readonly sinceMs: number;
  isDone: boolean;
}

/**
 * Stores finished attempts: each at once, as the store gathers them, and again after a failure, so that what a handler has
 * taken is not sent to it once more because the store was away for a while.
 */
export class Finisher {
  readonly #parts: FinisherParts;
  readonly #backoff: Backoff;
  /** The oldest first; some may be done behind it. */
  readonly #unstored: Unstored[] = [];
  #count = 0;
  /** Those that the store could not take, until it is tried again. */
  #failed: Unstored[] = [];
  #retry: Promise<void> | undefined;
  #givenUp = 0;
  #idle: PromiseWithResolvers<void> | undefined;
  readonly #closing = new AbortController();

  constructor(parts: FinisherParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(parts.clock);
  }

  /** Results not stored yet. */
  get backlog(): number {
    return this.#count;
  }

  /** Whether the store takes so long, or fails, that leases may end whose results are here. */
  get isBehind(): boolean {
    const [oldest] = this.#unstored;
    return oldest !== undefined && this.#parts.clock.now() - oldest.sinceMs > BEHIND_MS;
  }

  add(result: AttemptResult): void {
    const unstored = { result, sinceMs: this.#parts.clock.now(), isDone: false };
    this.#unstored.push(unstored);
    this.#count += 1;
    if (this.#retry === undefined) void this.#store(unstored);
    else this.#failed.push(unstored);
  }

  /** Resolves when all there is has been stored or, once closing, given up. */
  async idle(): Promise<void> {
    if (this.#count === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  /** Tries once more to store what is left, without waiting for a store that fails. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.idle();
  }

  async #store(unstored: Unstored): Promise<void> {
    const { store, clock, logger, disableAfterMs } = this.#parts;
    const { result } = unstored;
    let outcome: FinishOutcome;
    try {
      const options = disableAfterMs === undefined ? {} : { disableAfterMs };
      outcome = (await store.finish([result], clock.now(), options))[0]!;
      this.#backoff.reset();
    } catch (error) {
      if (error instanceof EvregError && error.code === "unavailable") {
        this.#unavailable(unstored, error);
        return;
      }
      // Something about this one. Its lease will end, and it is sent again.
      logger.error(
        { delivery: result.deliveryId, error: messageOf(error) },
        "An attempt cannot be recorded.",
      );
      outcome = { kind: "fenced" };
      this.#done(unstored, () => this.#parts.onStored(result, true));
      return;
    }
    this.#done(unstored, () => this.#report(result, outcome));
  }

  #report(result: AttemptResult, outcome: FinishOutcome): void {
    const { logger, counts, onStored, onDeactivated } = this.#parts;
    if (outcome.kind === "fenced") {
      // One that was never begun has nothing to be stored.
      if (result.next.kind !== "unsent") {
        const delivery = result.deliveryId;
        logger.warn({ delivery }, "An attempt ended after its lease; its delivery had moved on.");
      }
    } else {
      if (outcome.state !== "pending") counts.finished[outcome.state] += 1;
      if (outcome.deactivated !== undefined) {
        const { subscriptionId, reason } = outcome.deactivated;
        logger.warn({ subscription: subscriptionId, reason }, "Subscription deactivated.");
        onDeactivated(subscriptionId);
      }
    }
    onStored(result, outcome.kind === "fenced");
  }

  #unavailable(unstored: Unstored, error: EvregError): void {
    const { logger } = this.#parts;
    if (this.#closing.signal.aborted) {
      this.#givenUp += 1;
      this.#done(unstored, () => {
        if (this.#count > 0) return;
        logger.error(
          { attempts: this.#givenUp, error: error.message },
          "Finished attempts were not recorded before the stop; their deliveries are sent again when their leases end.",
        );
      });
      return;
    }
    this.#failed.push(unstored);
    if (this.#retry !== undefined) return;
    if (!this.#backoff.isFailing) {
      logger.warn({ error: error.message }, "Finished attempts cannot be recorded; trying on.");
    }
    this.#retry = this.#storeAgain();
  }

  async #storeAgain(): Promise<void> {
    await this.#backoff.wait(this.#closing.signal);
    this.#retry = undefined;
    const again = this.#failed;
    this.#failed = [];
    for (const one of again) void this.#store(one);
  }

  /** @param report called before anybody who waits goes on */
  #done(unstored: Unstored, report: () => void): void {
    unstored.isDone = true;
    this.#count -= 1;
    while (this.#unstored[0]?.isDone === true) this.#unstored.shift();
    report();
    if (this.#count > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
