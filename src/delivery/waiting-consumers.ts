import { EvregError } from "../domain/error.ts";
import {
  type ConsumerClaim,
  type FinishedPull,
  PULL_LIMITS,
  type PulledDelivery,
  type PullResult,
} from "../domain/pull.ts";
import type { Subscription } from "../domain/subscription.ts";
import { Alarm } from "../runtime/clock.ts";
import { Shares } from "../runtime/shares.ts";
import type { Claim, ConsumerAnswer, PullConsumer } from "../store/queue.ts";
import type { EngineParts } from "./parts.ts";
import type { PullAttempts } from "./pull-attempts.ts";

/** How many consumers may wait at once. */
const MAX_WAITING = 1_000;

/** Deliveries and bytes of payload that one claim in the store may bring, for all callers together. */
const MAX_CLAIMED = 256;
const MAX_CLAIM_BYTES = 1_024 * 1_024;

/** Much that is signalled is not for those who wait. After a claim that brought nothing, the next signal waits so long. */
const EMPTY_GAP_MS = 10;
/** Ends of leases within so much are looked at together. */
const EXPIRY_STEP_MS = 1_000;

interface WaitingConsumersParts extends Pick<EngineParts, "store" | "clock"> {
  readonly attempts: PullAttempts;
  /** Makes deliveries due again whose lease has ended. */
  readonly releaseExpired: () => Promise<void>;
}

interface Waiter {
  readonly request: ConsumerClaim;
  /** Its time is up: it is answered by the next claim, whatever that brings. */
  isOver: boolean;
  /** Its caller has left. */
  isGone: boolean;
  readonly answer: PromiseWithResolvers<readonly PulledDelivery[]>;
}

/**
 * Where consumers wait for deliveries of pull subscriptions. One claim in the store is for the first caller of each
 * subscription, so callers of one are served in turn. What the engine is signalled, this is too.
 */
export class WaitingConsumers {
  readonly #parts: WaitingConsumersParts;
  readonly #alarm: Alarm;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiter>();
  readonly #places = new Shares(MAX_WAITING);
  /** When something may be due for those who wait. */
  #dueAtMs = Infinity;
  /** When leases that were given end, in steps. */
  readonly #expiries = new Set<number>();
  #lastEmptyMs = -Infinity;
  #claiming: Promise<void> | undefined;
  /** What was claimed is being prepared for its callers. */
  readonly #serving = new Set<Promise<void>>();
  #isClosed = false;

  constructor(parts: WaitingConsumersParts) {
    this.#parts = parts;
    this.#alarm = new Alarm(parts.clock, () => this.#advance());
  }

  /**
   * Leases deliveries that are due, or waits for the first.
   * @param signal of a caller that leaves: it then rejects with its reason, and leases nothing
   * @throws EvregError `rate_limited` or `unavailable` when too many wait, see `Shares`; `unavailable` while the store is, and after the stop
   */
  async claim(request: ConsumerClaim, signal?: AbortSignal): Promise<readonly PulledDelivery[]> {
    if (this.#isClosed) {
      throw new EvregError("unavailable", "The server is being stopped. Ask again once it has started.");
    }
    signal?.throwIfAborted();
    this.#places.take(request.caller, "consumers wait for deliveries");
    const answer = Promise.withResolvers<readonly PulledDelivery[]>();
    const isOver = request.wait_ms <= 0;
    const waiter: Waiter = { request, isOver, isGone: false, answer };
    const leave = (): void => this.#refuse(waiter, signal!.reason);
    signal?.addEventListener("abort", leave);
    const cancelEnd = this.#parts.clock.setTimer(() => {
      waiter.isOver = true;
      this.#dueAtMs = -Infinity;
      this.#advance();
    }, request.wait_ms);
    this.#add(waiter);
    try {
      return await answer.promise;
    } finally {
      cancelEnd();
      signal?.removeEventListener("abort", leave);
      this.#places.release(request.caller);
    }
  }

  /** How many wait for deliveries of a subscription. */
  waitingFor(subscription: number): number {
    return [...this.#waiting].filter(({ request }) => request.subscription === subscription).length;
  }

  /** Stores what became of some of them, see `PullAttempts`. */
  async finish(from: Subscription, results: readonly PullResult[]): Promise<readonly FinishedPull[]> {
    const finished = await this.#parts.attempts.finish(from, results);
    for (const [index, { expires_at }] of finished.entries()) {
      if (expires_at !== null) this.#leasedFor(results[index]!.lease_ms ?? PULL_LIMITS.leaseDefaultMs);
    }
    // The next in an order may be taken now, and what failed at its time.
    this.wake();
    return finished;
  }

  /** Something may be due now. Cheap; does nothing while nobody waits. */
  wake(): void {
    if (this.#waiting.size === 0) return;
    this.#dueAtMs = Math.min(this.#dueAtMs, this.#lastEmptyMs + EMPTY_GAP_MS);
    this.#advance();
  }

  /** Answers those who wait. Leases go on, and are known to the store alone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#alarm.clear();
    for (const waiter of this.#waiting) this.#answerNothing(waiter);
    await this.#claiming;
    await Promise.all(this.#serving);
  }

  #add(waiter: Waiter): void {
    this.#waiting.add(waiter);
    this.#dueAtMs = -Infinity;
    this.#advance();
  }

  #answerNothing(waiter: Waiter): void {
    this.#waiting.delete(waiter);
    waiter.answer.resolve([]);
  }

  #refuse(waiter: Waiter, error: unknown): void {
    waiter.isGone = true;
    this.#waiting.delete(waiter);
    waiter.answer.reject(error);
  }

  /** Leases end after so long, unless their deliveries have ended. */
  #leasedFor(leaseMs: number): void {
    const { clock, releaseExpired } = this.#parts;
    const nowMs = clock.monotonicMs();
    const stepMs = Math.ceil((nowMs + leaseMs) / EXPIRY_STEP_MS) * EXPIRY_STEP_MS;
    if (this.#expiries.has(stepMs)) return;
    this.#expiries.add(stepMs);
    clock.setTimer(() => {
      this.#expiries.delete(stepMs);
      if (!this.#isClosed) void releaseExpired();
    }, stepMs - nowMs);
  }

  #advance(): void {
    if (this.#isClosed || this.#waiting.size === 0 || this.#claiming !== undefined) return;
    if (this.#dueAtMs <= this.#parts.clock.monotonicMs()) this.#claiming = this.#claim();
    else if (this.#dueAtMs !== Infinity) this.#alarm.at(this.#dueAtMs);
  }

  async #claim(): Promise<void> {
    // The claim is then for all who came in this turn, and includes all that became due in it.
    await Promise.resolve();
    await this.#claimForAll();
    this.#claiming = undefined;
    this.#advance();
  }

  /** Claims for the first who waits of each subscription. */
  async #claimForAll(): Promise<void> {
    const { clock, store } = this.#parts;
    this.#dueAtMs = Infinity;
    const nowMs = clock.monotonicMs();
    const claimedAtMs = clock.now();
    // Who comes while the claim is under way is none of those.
    const bySubscription = Map.groupBy(this.#waiting, ({ request }) => request.subscription);
    const asking = [...bySubscription].map(([id, waiters]) => ({ id, waiters, head: waiters[0]! }));
    const consumers = asking.map(({ id, head: { request } }): [number, PullConsumer] => {
      const { consumer, lease_ms: leaseMs, max: maxClaims } = request;
      return [id, { consumer, leaseMs, maxClaims }];
    });
    const limits = { maxClaims: MAX_CLAIMED, maxPayloadBytes: MAX_CLAIM_BYTES };
    let answer: ConsumerAnswer;
    try {
      answer = await store.claimForConsumers({ nowMs: claimedAtMs, consumers, ...limits });
    } catch (error) {
      // One that has waited for as long as it asked for gets what it then always gets: nothing.
      for (const { head } of asking) {
        if (head.isOver && head.request.wait_ms > 0) this.#answerNothing(head);
        else this.#refuse(head, error);
      }
      this.#dueAtMs = -Infinity;
      return;
    }
    const { claims, nextDueAtMs } = answer;
    const claimed = Map.groupBy(claims, ({ subscription }) => subscription.subscriptionId);
    const isFull = claims.length >= MAX_CLAIMED;
    for (const { id, waiters, head } of asking) {
      const own = claimed.get(id);
      if (own !== undefined) {
        const serving = this.#serve(head, own, claimedAtMs).finally(() => this.#serving.delete(serving));
        this.#serving.add(serving);
        continue;
      }
      // Where nothing was due for the first of a subscription, nothing was for those behind it, unless others took all there was room for.
      for (const waiter of isFull ? [head] : waiters) if (waiter.isOver) this.#answerNothing(waiter);
    }
    if (claims.length > 0) this.#dueAtMs = -Infinity;
    else {
      this.#lastEmptyMs = nowMs;
      if (nextDueAtMs !== undefined)
        this.#dueAtMs = Math.min(this.#dueAtMs, nextDueAtMs - claimedAtMs + nowMs);
    }
  }

  async #serve(waiter: Waiter, claims: readonly Claim[], nowMs: number): Promise<void> {
    this.#waiting.delete(waiter);
    const { lease_ms: leaseMs } = waiter.request;
    this.#leasedFor(leaseMs);
    const isWanted = (): boolean => !waiter.isGone && !this.#isClosed;
    let deliveries: readonly PulledDelivery[];
    try {
      deliveries = await this.#parts.attempts.prepare(claims, nowMs, leaseMs, isWanted);
    } catch (error) {
      return waiter.answer.reject(error);
    }
    if (deliveries.length > 0 || this.#isClosed) waiter.answer.resolve(deliveries);
    // All of them were excluded by the filter: it is its turn again.
    else if (!waiter.isGone) this.#add(waiter);
    this.#dueAtMs = -Infinity;
    this.#advance();
  }
}
