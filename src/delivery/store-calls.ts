import type { DeliveryConfig } from "../config/keys.ts";
import { EvregError, messageOf } from "../domain/error.ts";
import { type ClockStep, sleep } from "../runtime/clock.ts";
import type {
  AttemptResult,
  ClaimAnswer,
  ClaimRequest,
  DeliveryQueue,
  FinishOptions,
  FinishOutcome,
} from "../store/queue.ts";
import { logAttempt, type ShownAttempt, shownResult } from "./attempt.ts";
import type { EngineParts } from "./parts.ts";

type RetryParts = Pick<EngineParts, "clock" | "logger">;

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;

/**
 * Repeats a kind of call to the store after a failure: after a quarter of a second, then twice as long each time, up to five
 * seconds. Calls that fail side by side share one wait.
 */
export class StoreRetry {
  readonly #parts: RetryParts;
  readonly #failing: string;
  #waitMs = FIRST_WAIT_MS;
  #failingSinceMs: number | undefined;
  #waiting: Promise<void> | undefined;

  /** @param failing logged at the first failure */
  constructor(parts: RetryParts, failing: string) {
    this.#parts = parts;
    this.#failing = failing;
  }

  get failingMs(): number {
    return this.#failingSinceMs === undefined ? 0 : this.#parts.clock.monotonicMs() - this.#failingSinceMs;
  }

  /**
   * Calls once, after the wait for others.
   * @returns `undefined` after a failure, when the call may be made again, or at once where it was stopped
   */
  async once<T>(call: () => Promise<T>, stop: AbortSignal): Promise<T | undefined> {
    const { clock, logger } = this.#parts;
    if (this.#waiting !== undefined) await this.#waiting;
    try {
      const answer = await call();
      if (this.#failingSinceMs !== undefined) logger.info({}, "The store answers again.");
      this.#failingSinceMs = undefined;
      this.#waitMs = FIRST_WAIT_MS;
      return answer;
    } catch (error) {
      if (stop.aborted) return undefined;
      if (this.#failingSinceMs === undefined) logger.warn({ error: messageOf(error) }, this.#failing);
      this.#failingSinceMs ??= clock.monotonicMs();
      await (this.#waiting ??= this.#wait(stop));
      return undefined;
    }
  }

  /** Calls until it is answered; `undefined` where it was stopped first. */
  async untilAnswered<T>(call: () => Promise<T>, stop: AbortSignal): Promise<T | undefined> {
    let answer: T | undefined;
    while (answer === undefined && !stop.aborted) answer = await this.once(call, stop);
    return answer;
  }

  async #wait(stop: AbortSignal): Promise<void> {
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(MAX_WAIT_MS, waitMs * 2);
    await sleep(this.#parts.clock, waitMs, stop);
    this.#waiting = undefined;
  }
}

/** A server that cannot claim for so long does not do its work. */
const LONG_FAILING_MS = 10_000;
/** Far less than the time between the latest end of an attempt and the end of its lease. */
const BEHIND_MS = 1_000;

interface StoreCallsParts extends Pick<
  EngineParts,
  "clock" | "logger" | "counts" | "onResult" | "onDeactivated"
> {
  readonly store: Pick<DeliveryQueue, "claim" | "finish" | "moveWaits" | "releaseExpired">;
  readonly config: Pick<DeliveryConfig, "disableAfter" | "retrySchedule">;
}

/** What the engine asks of the store: claims, storing results, releasing expired leases, and moving waits with the clock. */
export class StoreCalls {
  readonly #parts: StoreCallsParts;
  readonly #finishOptions: FinishOptions;
  readonly #claimRetry: StoreRetry;
  readonly #finishRetry: StoreRetry;
  readonly #moveRetry: StoreRetry;
  readonly #claimStop = new AbortController();
  readonly #finishStop = new AbortController();
  /** Results that are not stored yet, the oldest first. */
  readonly #unstored = new Set<{ readonly sinceMs: number }>();

  constructor(parts: StoreCallsParts) {
    const { disableAfter, retrySchedule } = parts.config;
    this.#parts = parts;
    this.#finishOptions = {
      ...(disableAfter === 0 ? {} : { disableAfterMs: disableAfter }),
      ...(retrySchedule === undefined ? {} : { retryScheduleMs: retrySchedule }),
    };
    this.#claimRetry = new StoreRetry(parts, "Due deliveries cannot be read; trying again.");
    this.#finishRetry = new StoreRetry(parts, "Finished attempts cannot be recorded; trying again.");
    this.#moveRetry = new StoreRetry(parts, "Waits cannot be moved with the clock; trying again.");
  }

  /** Whether nothing could be claimed for some time. */
  get isFailing(): boolean {
    return this.#claimRetry.failingMs >= LONG_FAILING_MS;
  }

  /** @returns `undefined` after a failure, when it is time to try again */
  claim(request: ClaimRequest): Promise<ClaimAnswer | undefined> {
    return this.#claimRetry.once(() => this.#parts.store.claim(request), this.#claimStop.signal);
  }

  /** A claim that has failed waits no longer, and waits that are not moved by now are moved at the next start. */
  stopClaims(): void {
    this.#claimStop.abort();
  }

  /** Moves what waits with a clock that was set back. Answers whether that is done. */
  async moveWaits({ byMs, nowMs }: ClockStep): Promise<boolean> {
    const { store, logger } = this.#parts;
    const move = (): Promise<number> => store.moveWaits(-byMs, nowMs);
    const waits = await this.#moveRetry.untilAnswered(move, this.#claimStop.signal);
    if (waits === undefined) return false;
    logger.warn({ backMs: -byMs, waits }, "The clock was set back, and what waits was moved with it.");
    return true;
  }

  /**
   * Makes deliveries due again whose lease has expired, as whoever sent them has died or was cut off.
   * @returns how many
   */
  async releaseExpired(): Promise<number> {
    const { store, clock, logger } = this.#parts;
    const [oldest] = this.#unstored;
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
  async finish(result: AttemptResult, shown: ShownAttempt): Promise<FinishOutcome | undefined> {
    const { signal } = this.#finishStop;
    const retry = this.#finishRetry;
    const unstored = { sinceMs: this.#parts.clock.monotonicMs() };
    this.#unstored.add(unstored);
    const finish = (): Promise<FinishOutcome> => this.#finishOne(result, shown);
    const outcome = (await retry.untilAnswered(finish, signal)) ?? (await retry.once(finish, signal));
    this.#unstored.delete(unstored);
    return outcome;
  }

  /** @throws EvregError `unavailable` */
  async #finishOne(result: AttemptResult, shown: ShownAttempt): Promise<FinishOutcome> {
    try {
      const [outcome] = await this.finishTogether([result], [shown]);
      return outcome!;
    } catch (error) {
      if (error instanceof EvregError && error.code === "unavailable") throw error;
      // Something about this one. Its lease will end, and it is sent again.
      const { deliveryId: delivery } = result;
      this.#parts.logger.error({ delivery, error: messageOf(error) }, "An attempt cannot be recorded.");
      return { kind: "fenced" };
    }
  }

  /**
   * Stores results once: whoever reports them hears of a failure, and reports them again.
   * @param shown of each, in order
   * @throws EvregError `unavailable`; some may be stored then, and are fenced the next time
   */
  async finishTogether(
    results: readonly AttemptResult[],
    shown: readonly ShownAttempt[],
  ): Promise<readonly FinishOutcome[]> {
    const { store, clock } = this.#parts;
    const outcomes = await store.finish(results, clock.now(), this.#finishOptions);
    for (const [index, outcome] of outcomes.entries()) this.#report(results[index]!, shown[index]!, outcome);
    return outcomes;
  }

  /** What is not stored is tried once more, without waiting for a store that fails. */
  stopResults(): void {
    this.#finishStop.abort();
  }

  /** Counts, logs and tells what was made of a result. */
  #report(result: AttemptResult, shown: ShownAttempt, outcome: FinishOutcome): void {
    const { clock, logger, counts, onResult, onDeactivated } = this.#parts;
    // One that goes back is as if it had never been claimed.
    if (result.ending === "never started") return;
    if (outcome.kind === "fenced") {
      logger.warn(
        { delivery: result.deliveryId },
        "An attempt ended after its lease; its delivery had moved on.",
      );
      return;
    }
    const { state, deactivated } = outcome;
    const nowMs = clock.now();
    if (state !== "pending") counts.finished[state] += 1;
    logAttempt(logger, shown, result, outcome, nowMs);
    onResult?.(shownResult(shown, result, outcome, nowMs));
    if (deactivated === undefined) return;
    const { subscriptionId, reason } = deactivated;
    logger.warn({ subscription: subscriptionId, reason }, "Subscription deactivated.");
    onDeactivated?.(subscriptionId);
  }
}
