import { EvregError, messageOf } from "../domain/error.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { AttemptResult, DeliveryQueue, FinishOutcome } from "../store/queue.ts";
import { StoreRetry } from "./store-calls.ts";
import { Fifo } from "./subscription-state.ts";

/** Far less than what a lease has beyond the deadline of its attempt. */
const BEHIND_MS = 1_000;

interface CompleterDependencies {
  readonly store: Pick<DeliveryQueue, "finish">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly counts: DeliveryCounts;
  readonly disableAfterMs: number | undefined;
}

/** A result that is not stored yet. */
interface Unstored {
  readonly sinceMs: number;
  isDone: boolean;
}

/**
 * Stores results: each at once, as the store collects them, and again after a failure, so that what a handler has taken is
 * not sent to it once more because the store was away for a while.
 */
export class Completer {
  readonly #dependencies: CompleterDependencies;
  readonly #retry: StoreRetry;
  /** The oldest first; some may be done behind it. */
  readonly #unstored = new Fifo<Unstored>();
  #givenUp = 0;
  readonly #closing = new AbortController();

  constructor(dependencies: CompleterDependencies) {
    const { clock, logger } = dependencies;
    this.#dependencies = dependencies;
    this.#retry = new StoreRetry({
      clock,
      logger,
      failing: "Finished attempts cannot be recorded; trying on.",
    });
  }

  /** Whether the store takes so long, or fails, that leases may end whose results are here. */
  get isBehind(): boolean {
    const { head } = this.#unstored;
    return head !== undefined && this.#dependencies.clock.now() - head.sinceMs > BEHIND_MS;
  }

  /** @returns what the store made of it; `undefined` when it was given up after `close` */
  async store(result: AttemptResult): Promise<FinishOutcome | undefined> {
    const { store, clock, logger, disableAfterMs } = this.#dependencies;
    const options = disableAfterMs === undefined ? {} : { disableAfterMs };
    const { signal } = this.#closing;
    const unstored: Unstored = { sinceMs: clock.now(), isDone: false };
    this.#unstored.push(unstored);
    for (;;) {
      if (this.#retry.waiting !== undefined) await this.#retry.waiting;
      try {
        const [outcome] = await store.finish([result], clock.now(), options);
        this.#retry.succeeded();
        this.#done(unstored);
        this.#report(result, outcome!);
        return outcome;
      } catch (error) {
        if (!(error instanceof EvregError) || error.code !== "unavailable") {
          // Something about this one. Its lease will end, and it is sent again.
          logger.error(
            { delivery: result.deliveryId, error: messageOf(error) },
            "An attempt cannot be recorded.",
          );
          this.#done(unstored);
          return { kind: "fenced" };
        }
        if (signal.aborted) {
          this.#done(unstored);
          this.#giveUp(error);
          return undefined;
        }
        await this.#retry.failed(error, signal);
      }
    }
  }

  /** What is not stored is tried once more, without waiting for a store that fails. */
  close(): void {
    this.#closing.abort();
  }

  #report({ deliveryId, next }: AttemptResult, outcome: FinishOutcome): void {
    const { logger, counts } = this.#dependencies;
    if (outcome.kind === "stored") {
      const { state, deactivated } = outcome;
      if (state !== "pending") counts.finished[state] += 1;
      if (deactivated === undefined) return;
      const { subscriptionId, reason } = deactivated;
      logger.warn({ subscription: subscriptionId, reason }, "Subscription deactivated.");
    } else if (next.kind !== "unsent") {
      // One that was never started has nothing to be stored.
      logger.warn({ delivery: deliveryId }, "An attempt ended after its lease; its delivery had moved on.");
    }
  }

  #done(unstored: Unstored): void {
    unstored.isDone = true;
    while (this.#unstored.head?.isDone === true) this.#unstored.shift();
  }

  #giveUp(error: unknown): void {
    this.#givenUp += 1;
    if (this.#unstored.size > 0) return;
    this.#dependencies.logger.error(
      { attempts: this.#givenUp, error: messageOf(error) },
      "Finished attempts were not recorded before the stop; their deliveries are sent again when their leases end.",
    );
    this.#givenUp = 0;
  }
}
