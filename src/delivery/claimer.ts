import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { ClaimAnswer, ClaimRequest, DeliveryQueue } from "../store/queue.ts";
import { StoreRetry } from "./store-calls.ts";

/** A server that cannot claim for so long does not do its work. */
const LONG_FAILING_MS = 10_000;

interface ClaimerDependencies {
  readonly store: Pick<DeliveryQueue, "claim">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Claims what is due. */
export class Claimer {
  readonly #store: ClaimerDependencies["store"];
  readonly #retry: StoreRetry;
  readonly #stopping = new AbortController();

  constructor({ store, clock, logger }: ClaimerDependencies) {
    this.#store = store;
    this.#retry = new StoreRetry({
      clock,
      logger,
      failing: "Due deliveries cannot be read; trying on.",
      recovered: "Deliveries go on.",
    });
  }

  /** Whether nothing could be claimed for some time. */
  get isFailing(): boolean {
    return this.#retry.failingMs >= LONG_FAILING_MS;
  }

  /** @returns `undefined` after a failure, when it is time to try again */
  async claim(request: ClaimRequest): Promise<ClaimAnswer | undefined> {
    const { signal } = this.#stopping;
    try {
      const answer = await this.#store.claim(request);
      this.#retry.succeeded();
      return answer;
    } catch (error) {
      if (!signal.aborted) await this.#retry.failed(error, signal);
      return undefined;
    }
  }

  /** Waits for the store no longer. */
  stop(): void {
    this.#stopping.abort();
  }
}

interface LeaseRescuerDependencies {
  readonly store: Pick<DeliveryQueue, "releaseExpired">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly intervalMs: number;
  /** While results wait long to be stored, leases that seem to have ended may be their own, and stay as they are. */
  readonly isSuspended: () => boolean;
  /** Called after each round, with the number of deliveries that are due again. */
  readonly onRound: (released: number) => void;
}

/**
 * Makes deliveries due again whose lease has expired: whoever sent them has died or was cut off. It is the one thing that
 * the engine asks for at a steady pace, as nothing announces it.
 */
export class LeaseRescuer {
  readonly #dependencies: LeaseRescuerDependencies;
  #cancelTimer: () => void = () => {};
  #isStopped = false;

  constructor(dependencies: LeaseRescuerDependencies) {
    this.#dependencies = dependencies;
  }

  /** Does a round at once, then one every `intervalMs`. */
  start(): void {
    void this.#round();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer();
  }

  async #round(): Promise<void> {
    const { store, clock, logger, intervalMs, isSuspended, onRound } = this.#dependencies;
    try {
      const released = isSuspended() ? 0 : await store.releaseExpired(clock.now());
      if (released > 0) {
        logger.warn({ deliveries: released }, "Deliveries whose attempt never ended are due again.");
      }
      onRound(released);
    } catch {
      // The claim that fails for the same reason is logged.
    }
    if (!this.#isStopped) this.#cancelTimer = clock.setTimer(() => void this.#round(), intervalMs);
  }
}
