import type { DeliveryConfig } from "../config/schema.ts";
import { EvregError, messageOf } from "../domain/error.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type {
  AttemptResult,
  ClaimAnswer,
  ClaimRequest,
  DeliveryQueue,
  FinishOptions,
  FinishOutcome,
} from "../store/queue.ts";
import { Fifo } from "./fifo.ts";

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;

/**
 * When a kind of call to the store is repeated after a failure: after a quarter of a second, then twice as long each time, up
 * to five seconds. Calls that fail side by side share one wait.
 */
export class StoreRetry {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #failing: string;
  readonly #recovered: string | undefined;
  #waitMs = FIRST_WAIT_MS;
  #failingSinceMs: number | undefined;
  #waiting: Promise<void> | undefined;

  /**
   * @param failing logged at the first failure
   * @param recovered logged at the first success after it
   */
  constructor(
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
    failing: string,
    recovered?: string,
  ) {
    this.#clock = clock;
    this.#logger = logger;
    this.#failing = failing;
    this.#recovered = recovered;
  }

  get failingMs(): number {
    return this.#failingSinceMs === undefined ? 0 : this.#clock.monotonicMs() - this.#failingSinceMs;
  }

  /** Resolves when the next call may be made; `undefined` for now. */
  get waiting(): Promise<void> | undefined {
    return this.#waiting;
  }

  succeeded(): void {
    if (this.#failingSinceMs === undefined) return;
    if (this.#recovered !== undefined) this.#logger.info({}, this.#recovered);
    this.#failingSinceMs = undefined;
    this.#waitMs = FIRST_WAIT_MS;
  }

  /** Resolves when the call may be made again, or once the signal is aborted. */
  failed(error: unknown, signal: AbortSignal): Promise<void> {
    if (this.#failingSinceMs === undefined) {
      this.#logger.warn({ error: messageOf(error) }, this.#failing);
      this.#failingSinceMs = this.#clock.monotonicMs();
    }
    return (this.#waiting ??= this.#wait(signal));
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(MAX_WAIT_MS, waitMs * 2);
    await sleep(this.#clock, waitMs, signal);
    this.#waiting = undefined;
  }
}

/** A server that cannot claim for so long does not do its work. */
const LONG_FAILING_MS = 10_000;
/** Far less than the time between the latest end of an attempt and the end of its lease. */
const BEHIND_MS = 1_000;

interface StoreCallsDependencies {
  readonly store: Pick<DeliveryQueue, "claim" | "finish" | "releaseExpired">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly counts: DeliveryCounts;
}

/** What the configuration says about results. */
export function finishOptions({
  disableAfter,
  retrySchedule,
}: Pick<DeliveryConfig, "disableAfter" | "retrySchedule">): FinishOptions {
  return {
    ...(disableAfter === 0 ? {} : { disableAfterMs: disableAfter }),
    ...(retrySchedule === undefined ? {} : { retryScheduleMs: retrySchedule }),
  };
}

interface Unstored {
  readonly sinceMs: number;
  isDone: boolean;
}

/** What the engine asks of the store: claims, storing results, and releasing expired leases. */
export class StoreCalls {
  readonly #dependencies: StoreCallsDependencies;
  readonly #finishOptions: FinishOptions;
  readonly #claimRetry: StoreRetry;
  readonly #finishRetry: StoreRetry;
  readonly #claimStop = new AbortController();
  readonly #finishStop = new AbortController();
  /** The oldest first; some may be done behind it. */
  readonly #unstored = new Fifo<Unstored>();
  #givenUp = 0;

  constructor(dependencies: StoreCallsDependencies, options: FinishOptions) {
    this.#dependencies = dependencies;
    this.#finishOptions = options;
    this.#claimRetry = new StoreRetry(
      dependencies,
      "Due deliveries cannot be read; trying again.",
      "Deliveries go on.",
    );
    this.#finishRetry = new StoreRetry(dependencies, "Finished attempts cannot be recorded; trying again.");
  }

  /** Whether nothing could be claimed for some time. */
  get isFailing(): boolean {
    return this.#claimRetry.failingMs >= LONG_FAILING_MS;
  }

  /** @returns `undefined` after a failure, when it is time to try again */
  async claim(request: ClaimRequest): Promise<ClaimAnswer | undefined> {
    const { signal } = this.#claimStop;
    try {
      const answer = await this.#dependencies.store.claim(request);
      this.#claimRetry.succeeded();
      return answer;
    } catch (error) {
      if (!signal.aborted) await this.#claimRetry.failed(error, signal);
      return undefined;
    }
  }

  /** A claim that has failed waits no longer. */
  stopClaims(): void {
    this.#claimStop.abort();
  }

  /**
   * Makes deliveries due again whose lease has expired, as whoever sent them has died or was cut off.
   * @returns how many
   */
  async releaseExpired(): Promise<number> {
    const { store, clock, logger } = this.#dependencies;
    const { head: oldest } = this.#unstored;
    // The store is slow or fails. What seems to have expired may be what has its result here.
    if (oldest !== undefined && clock.monotonicMs() - oldest.sinceMs > BEHIND_MS) return 0;
    try {
      const released = await store.releaseExpired(clock.now());
      if (released > 0) {
        logger.warn({ deliveries: released }, "Deliveries whose attempt never ended are due again.");
      }
      return released;
    } catch {
      // The claim that fails for the same reason is logged.
      return 0;
    }
  }

  /**
   * Stores a result at once, as the store collects them, and again after a failure: what a handler has accepted is not sent
   * again because the store was unavailable for a while.
   * @returns what the store made of it; `undefined` when it was given up after `stopResults`
   */
  async finish(result: AttemptResult): Promise<FinishOutcome | undefined> {
    const { store, clock, logger } = this.#dependencies;
    const { signal } = this.#finishStop;
    const unstored: Unstored = { sinceMs: clock.monotonicMs(), isDone: false };
    this.#unstored.push(unstored);
    for (;;) {
      if (this.#finishRetry.waiting !== undefined) await this.#finishRetry.waiting;
      try {
        const [outcome] = await store.finish([result], clock.now(), this.#finishOptions);
        this.#finishRetry.succeeded();
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
        await this.#finishRetry.failed(error, signal);
      }
    }
  }

  /**
   * Stores results once: whoever reports them hears of a failure, and reports them again.
   * @throws EvregError `unavailable`; some may be stored then, and are fenced the next time
   */
  async finishTogether(results: readonly AttemptResult[]): Promise<readonly FinishOutcome[]> {
    const { store, clock } = this.#dependencies;
    const outcomes = await store.finish(results, clock.now(), this.#finishOptions);
    for (const [index, outcome] of outcomes.entries()) this.#report(results[index]!, outcome);
    return outcomes;
  }

  /** What is not stored is tried once more, without waiting for a store that fails. */
  stopResults(): void {
    this.#finishStop.abort();
  }

  #report({ deliveryId, ending }: AttemptResult, outcome: FinishOutcome): void {
    const { logger, counts } = this.#dependencies;
    if (outcome.kind === "stored") {
      const { state, deactivated } = outcome;
      if (state !== "pending") counts.finished[state] += 1;
      if (deactivated === undefined) return;
      const { subscriptionId, reason } = deactivated;
      logger.warn({ subscription: subscriptionId, reason }, "Subscription deactivated.");
    } else if (ending !== "never started") {
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
