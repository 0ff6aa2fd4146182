import type { DeliveryConfig } from "../config/keys.ts";
import type { DeliveryStatus } from "../domain/delivery.ts";
import { EvregError, messageOf } from "../domain/error.ts";
import type { DeliveryResult } from "../domain/stream.ts";
import { ATTEMPT_LOG, tlsReasonText } from "../domain/words/attempts.ts";
import { type ClockStep, sleep, toIso } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type {
  AttemptEnding,
  AttemptResult,
  Claim,
  ClaimAnswer,
  ClaimedEvent,
  ClaimedSubscription,
  ClaimRequest,
  DeliveryQueue,
  FinishOptions,
  FinishOutcome,
} from "../store/queue.ts";
import type { EngineParts } from "./parts.ts";
import { destinationOf } from "./sender.ts";

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

interface StoreCallsParts extends Pick<EngineParts, "clock" | "logger" | "counts" | "onResult"> {
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

  /** Moves what waits with a clock that was set back. */
  async moveWaits({ byMs, nowMs }: ClockStep): Promise<void> {
    const { store, logger } = this.#parts;
    const move = (): Promise<number> => store.moveWaits(-byMs, nowMs);
    const waits = await this.#moveRetry.untilAnswered(move, this.#claimStop.signal);
    if (waits === undefined) return;
    logger.warn({ backMs: -byMs, waits }, "The clock was set back, and what waits was moved with it.");
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
    const { clock, logger, counts, onResult } = this.#parts;
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
  }
}

type StoredOutcome = FinishOutcome & { readonly kind: "stored" };

/** What the log and streams show of an attempt beside its result. */
export interface ShownAttempt extends Pick<Claim, "deliveryId" | "attempt" | "failures"> {
  readonly event: Pick<ClaimedEvent, "eventId" | "action">;
  /** A pull subscription has no handler. */
  readonly subscription: Pick<ClaimedSubscription, "subscriptionId" | "application" | "name"> & {
    readonly handler?: string;
  };
}

/** The status of a delivery after an attempt. What is to be sent again waits where it has failed. */
export function statusAfter(
  { ending }: AttemptResult,
  failures: number,
  { state }: StoredOutcome,
): DeliveryStatus {
  const hasFailed = failures > 0 || ending === "failed";
  return state === "pending" && hasFailed ? "waiting" : state;
}

/**
 * What is kept of a claim while its attempt is under way and its result is stored: not the payload, which may be a view of the
 * bytes of many.
 */
export function shownOf({ deliveryId, attempt, failures, event, subscription }: Claim): ShownAttempt {
  const { eventId, action } = event;
  return { deliveryId, attempt, failures, event: { eventId, action }, subscription };
}

/** A result as others see it. */
function shownResult(
  { deliveryId, event, attempt, failures, subscription }: ShownAttempt,
  result: AttemptResult,
  outcome: StoredOutcome,
  nowMs: number,
): DeliveryResult {
  const { statusCode, errorCode, durationMs, ending } = result;
  return {
    rowid: deliveryId,
    event_id: event.eventId,
    subscription_id: subscription.subscriptionId,
    application: subscription.application,
    subscription: subscription.name,
    action: event.action,
    status: statusAfter(result, failures, outcome),
    // No attempt was made of one that the filter excluded.
    attempt: ending === "filtered" ? attempt - 1 : attempt,
    status_code: statusCode ?? null,
    error_code: errorCode ?? (ending === "interrupted" ? "interrupted" : null),
    duration_ms: ending === "filtered" ? null : durationMs,
    timestamped: toIso(nowMs),
  };
}

function loggedOutcome(ending: AttemptEnding, { state }: StoredOutcome): keyof typeof ATTEMPT_LOG {
  if (ending === "delivered" || ending === "filtered" || ending === "interrupted") return ending;
  if (state === "pending") return "retried";
  return ending === "gone" ? "gone" : "failed";
}

/**
 * Logs each attempt, and what a filter excluded, once it is known what became of the delivery. Of the handler's URL only the
 * origin is logged: paths and queries of webhook addresses are often as good as a password. Successes come by the thousand each
 * second, and are for debugging.
 */
function logAttempt(
  logger: Logger,
  attempted: ShownAttempt,
  result: AttemptResult,
  outcome: StoredOutcome,
  nowMs: number,
): void {
  const { deliveryId, event, subscription, attempt, failures } = attempted;
  const { statusCode, errorCode, tlsReason, refusal, durationMs, ending } = result;
  const logged = loggedOutcome(ending, outcome);
  const [usualLevel, message] = ATTEMPT_LOG[logged];
  // After a failure that was logged, the success is logged as well.
  const level = usualLevel === "debug" && failures > 0 ? "info" : usualLevel;
  if (level === "debug" && !logger.isDebugEnabled) return;
  const handler = destinationOf(subscription.handler ?? "")?.origin;
  const { retryAtMs } = outcome;
  const fields = {
    outcome: logged,
    delivery: deliveryId,
    event: event.eventId,
    subscription: subscription.subscriptionId,
    action: event.action,
    to: `${subscription.application}/${subscription.name}`,
    attempt,
    // What is undefined is not written.
    status: statusCode,
    error: errorCode,
    tls: tlsReason,
    why: tlsReason && tlsReasonText(tlsReason),
    refusal,
    durationMs,
    ...(handler === undefined ? { consumer: true } : { handler }),
    // Storing the result took a moment.
    retryInMs: retryAtMs === undefined ? undefined : Math.max(0, retryAtMs - nowMs),
  };
  logger[level](fields, message);
}
