import { throttleBackoffMs } from "../domain/retry.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { Claim, ClaimQuota } from "../store/queue.ts";
import {
  AdaptiveLimit,
  dynamicThreshold,
  FAST,
  RateLimiter,
  SLOW,
  slowThreshold,
  type Tier,
  UNKNOWN,
} from "./limits.ts";

/** An answer within this is a fast one; a claim that waits longer to be started is released. */
export const FAST_MS = 1_000;
/** A fast subscription prefetches what its handler takes in about this time. */
const PREFETCH_MS = 100;
const MAX_PREFETCH = 512;
/** How many claims may wait for a filter: as many as one request brings. */
const MAX_FOR_FILTER = 256;
/** The weight of the last answer in the usual time of answers. */
const LAST_SHARE = 1 / 8;
/** How many empty items a `Fifo` collects before it cuts them off. */
const CUT_AT = 256;

/**
 * Whether a subscription can start an attempt: it has nothing buffered, a blocker holds, it has as many in flight as its
 * limit allows, its rate allows none yet, or it can. It is derived, never stored.
 */
export type Readiness = "idle" | "blocked" | "full" | "limited" | "ready";

/** How readiness changes, and by what. CONTRIBUTING.md draws it, and a test holds the scheduler to it. */
export const READINESS_CHANGES: Readonly<Record<Readiness, Partial<Record<Readiness, string>>>> = {
  idle: { ready: "claimed", full: "claimed", limited: "claimed", blocked: "claimed" },
  ready: {
    full: "started",
    limited: "started",
    blocked: "filter not ready",
    idle: "last started, excluded or released",
  },
  full: { ready: "ended", limited: "ended", idle: "released" },
  limited: { ready: "slot reached", full: "limit halved", idle: "released" },
  blocked: { ready: "cleared", full: "cleared", idle: "released" },
};

/**
 * What prevents a subscription from starting an attempt until something has happened. Several may hold at a time.
 * `releases` says which claims, buffered when it begins, go back to the store; `rejectsClaims`, whether those do that come
 * while it lasts.
 */
export const BLOCKERS = {
  /** The filter of the next claim is being compiled, or judges its payload on another thread. */
  filter: { releases: "none", rejectsClaims: false },
  /** The handler wants a pause, and that is not stored: once it is, the store omits the subscription from claims. */
  throttle: { releases: "all", rejectsClaims: true },
  /** The subscription was changed, and no claim was requested since: what comes may be as it was before. */
  stale: { releases: "all", rejectsClaims: true },
} as const;
export type Blocker = keyof typeof BLOCKERS;

/** A delivery that is leased and not started. */
export interface BufferedClaim {
  readonly claim: Claim;
  readonly leasedAtMs: number;
}

/** What the engine knows of one subscription. Pure: it has no clock and does nothing by itself. */
export class SubscriptionState {
  readonly subscriptionId: number;
  /** What the last claim request allowed it. */
  requested: { readonly tier: Tier; readonly maxLeased: number } = { tier: UNKNOWN, maxLeased: 0 };
  /** More may be due than it was allowed to lease. */
  hasBacklog = false;
  isInRing = false;
  /** Which of all changes was its last. */
  lastChange = 0;
  readonly #adaptiveLimit: AdaptiveLimit;
  /** The service's limit for each subscription; its own is among its settings. */
  readonly #maxInFlight: number;
  #settings: SubscriptionSettings = NO_SETTINGS;
  #rateLimiter: RateLimiter | undefined;
  readonly #buffer = new Fifo<BufferedClaim>();
  readonly #blockers: Record<Blocker, number> = { filter: 0, throttle: 0, stale: 0 };
  #inFlight = 0;
  #inFlightBytes = 0;
  /** Deliveries that may be leased as they are made, see `RecordClaim`. */
  #reserved = 0;
  #lastTier: Tier = UNKNOWN;
  /** How long answers take, lately. */
  #answerMs: number | undefined;
  #answeredAtMs = -Infinity;
  /** Since when at least one attempt has always been in flight. */
  #busySinceMs = 0;
  /** Throttling answers one after the other while it had one attempt at a time. */
  #throttles = 0;
  #isThrottling = false;
  /** Of attempts that started before it, another throttling answer shows nothing new. */
  #throttledAtMs = -Infinity;
  #unansweredAtMs = -Infinity;
  /** How many its filter excludes one after the other, lately. */
  #excluded = 0;

  constructor(subscriptionId: number, maxInFlight: number) {
    this.subscriptionId = subscriptionId;
    this.#maxInFlight = maxInFlight;
    this.#adaptiveLimit = new AdaptiveLimit(maxInFlight);
  }

  /** As a claim or a change brought them. */
  applySettings(settings: SubscriptionSettings): void {
    if (settings === this.#settings) return;
    this.#settings = settings;
    this.#adaptiveLimit.max = Math.min(this.#maxInFlight, settings.max_in_flight ?? Infinity);
    const { rate_limit: perSecond } = settings;
    if (perSecond === null) this.#rateLimiter = undefined;
    else if (this.#rateLimiter?.perSecond !== perSecond) {
      this.#rateLimiter = new RateLimiter(perSecond, this.#rateLimiter);
    }
  }

  get isOrdered(): boolean {
    return this.#settings.ordered !== false;
  }

  get limit(): number {
    return this.#adaptiveLimit.size;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get buffered(): number {
    return this.#buffer.size;
  }

  /** All its leases: buffered, in flight and reserved. */
  get leased(): number {
    return this.buffered + this.#inFlight + this.#reserved;
  }

  get head(): BufferedClaim | undefined {
    return this.#buffer.head;
  }

  buffer(claim: BufferedClaim): void {
    this.#buffer.push(claim);
  }

  shift(): BufferedClaim | undefined {
    return this.#buffer.shift();
  }

  block(blocker: Blocker): void {
    this.#blockers[blocker] += 1;
  }

  unblock(blocker: Blocker): void {
    this.#blockers[blocker] -= 1;
  }

  isBlockedBy(blocker: Blocker): boolean {
    return this.#blockers[blocker] > 0;
  }

  /** Whether what a claim brings now must go back to the store. */
  get rejectsClaims(): boolean {
    return this.#blockers.throttle + this.#blockers.stale > 0;
  }

  readiness(nowMs: number): Readiness {
    if (this.buffered === 0) return "idle";
    const { filter, throttle, stale } = this.#blockers;
    if (filter + throttle + stale > 0) return "blocked";
    if (this.#inFlight >= this.limit) return "full";
    return this.#rateLimiter?.allows(nowMs) === false ? "limited" : "ready";
  }

  nextSlotMs(nowMs: number): number {
    return this.#rateLimiter?.allowedAtMs(0, nowMs) ?? nowMs;
  }

  /**
   * Whether the others leave it enough to start the attempt that it is ready for.
   * @param attempts that may be started
   * @param payloadBytes that may be in flight beside those that are
   */
  canStart(attempts: number, payloadBytes: number, nowMs: number): boolean {
    // One attempt is allowed whatever its size.
    if (this.#inFlight > 0 && this.#inFlightBytes >= payloadBytes) return false;
    const limit = this.tier(nowMs) === FAST ? dynamicThreshold(this.limit, attempts) : this.limit;
    return this.#inFlight < limit;
  }

  /**
   * What the next claim may lease for it, which is noted. It is more than can be started, by what the handler gets through
   * in a moment, and by what the filter is going to exclude, which takes no capacity.
   * @param slowLeases how many more deliveries slow subscriptions may lease
   */
  requestQuota(slowLeases: number, nowMs: number): ClaimQuota {
    const { leased, filterAllowance } = this;
    const tier = this.tier(nowMs);
    const toSend = tier === SLOW ? slowThreshold(this.limit, slowLeases) : this.limit + this.prefetch(nowMs);
    const maxLeased = toSend + filterAllowance;
    this.requested = { tier, maxLeased };
    if (this.isBlockedBy("throttle")) return { leased, capacity: 0, tier };
    const startable = Math.max(0, this.#startableSoon(nowMs) - this.buffered);
    const capacity = Math.max(0, Math.min(maxLeased - leased, startable + filterAllowance));
    return { leased, capacity, tier };
  }

  /**
   * Reserves capacity for a delivery that is about to be made, so that it can be leased at once. Not while older ones may
   * be due: claims take those first.
   * @returns whether there is capacity
   */
  reserve(nowMs: number): boolean {
    if (this.hasBacklog || this.rejectsClaims || this.tier(nowMs) !== FAST) return false;
    if (this.leased >= this.limit + this.prefetch(nowMs)) return false;
    if (this.#startableSoon(nowMs) <= this.buffered + this.#reserved) return false;
    this.#reserved += 1;
    return true;
  }

  endReservation(): void {
    this.#reserved -= 1;
  }

  /** How many its rate lets it start soon. */
  #startableSoon(nowMs: number): number {
    return this.#rateLimiter?.allowance(nowMs + PREFETCH_MS, nowMs) ?? Infinity;
  }

  /** How many may be leased beyond the limit, so that the next is there when an attempt ends. */
  prefetch(nowMs: number): number {
    if (this.#isThrottling || this.tier(nowMs) !== FAST) return 0;
    return Math.min(MAX_PREFETCH, Math.floor((this.limit * PREFETCH_MS) / Math.max(1, this.#answerMs ?? 0)));
  }

  /** How many may be leased beyond that because the filter is going to exclude them. */
  get filterAllowance(): number {
    return this.#isAtLimit ? 0 : Math.min(MAX_FOR_FILTER, this.#excluded);
  }

  /** Whether claims wait for the filter behind an attempt that may take long. */
  filterStalled(nowMs: number): boolean {
    return this.#excluded > 0 && this.#isAtLimit && this.tier(nowMs) !== FAST;
  }

  get #isAtLimit(): boolean {
    return this.#inFlight >= this.limit;
  }

  /** Whether it may lease more of its backlog by now, and not only one or two deliveries. */
  wantsClaim(nowMs: number): boolean {
    if (!this.hasBacklog || this.isBlockedBy("throttle")) return false;
    const startable = this.#startableSoon(nowMs);
    if (startable === 0 || this.buffered * 2 > startable) return false;
    const soonDone = this.prefetch(nowMs) + this.filterAllowance;
    return this.leased < this.requested.maxLeased && this.buffered * 2 <= soonDone;
  }

  /** If only its rate prevents another claim: when half of what is buffered will have started. */
  nextClaimAtMs(nowMs: number): number | undefined {
    if (this.#rateLimiter === undefined || !this.hasBacklog || this.isBlockedBy("throttle")) return undefined;
    if (this.leased >= this.requested.maxLeased) return undefined;
    return this.#rateLimiter.allowedAtMs(Math.ceil(this.buffered / 2), nowMs);
  }

  tier(nowMs: number): Tier {
    const isStalled = this.#inFlight > 0 && nowMs - Math.max(this.#busySinceMs, this.#answeredAtMs) > FAST_MS;
    return isStalled ? SLOW : this.#lastTier;
  }

  /** Whether forgetting it would lose only what is known of its handler. */
  isIdle(nowMs: number): boolean {
    return this.leased === 0 && !this.isBlockedBy("throttle") && this.#rateLimiter?.isIdle(nowMs) !== false;
  }

  excluded(): void {
    this.#excluded = Math.min(2 * MAX_FOR_FILTER, this.#excluded + 1);
  }

  started(nowMs: number, bytes = 0): void {
    this.#excluded >>= 1;
    if (this.#inFlight === 0) this.#busySinceMs = nowMs;
    this.#inFlight += 1;
    this.#inFlightBytes += bytes;
    this.#rateLimiter?.started(nowMs);
  }

  /** @param isFault whether the answer shows that something is wrong with the handler */
  answered(nowMs: number, durationMs: number, isFault: boolean, bytes = 0): void {
    if (isFault) this.#adaptiveLimit.faulted();
    else this.#adaptiveLimit.answered(durationMs, this.#inFlight);
    this.#noteAnswer(nowMs, durationMs, bytes);
    this.#isThrottling = false;
    this.#throttles = 0;
  }

  /**
   * The answer means "too much" or "not now": fewer at once from now on or, with one at a time, growing gaps.
   * @returns how long no attempt may start
   */
  throttled(nowMs: number, durationMs: number, startedAtMs: number, bytes = 0): number {
    this.#noteAnswer(nowMs, durationMs, bytes);
    this.#isThrottling = true;
    if (startedAtMs < this.#throttledAtMs) return 0;
    this.#throttledAtMs = nowMs;
    // In one order there is one at a time, whatever the limit.
    if (this.limit > 1 && this.#settings.ordered !== true) {
      this.#adaptiveLimit.halve();
      return 0;
    }
    this.#throttles += 1;
    return throttleBackoffMs(this.#throttles);
  }

  unanswered(nowMs: number, startedAtMs: number, bytes = 0): void {
    this.aborted(bytes);
    // Another failure of attempts that started before it, while others are answered, shows nothing new.
    if (startedAtMs >= this.#unansweredAtMs || this.#answeredAtMs < this.#unansweredAtMs) {
      this.#adaptiveLimit.halve();
      this.#unansweredAtMs = nowMs;
    }
    // One of many may fail while the others are answered.
    if (this.#lastTier !== FAST || nowMs - this.#answeredAtMs > FAST_MS) this.#lastTier = SLOW;
  }

  /** An attempt was aborted, which shows nothing. */
  aborted(bytes = 0): void {
    this.#inFlight -= 1;
    this.#inFlightBytes -= bytes;
  }

  #noteAnswer(nowMs: number, durationMs: number, bytes: number): void {
    this.aborted(bytes);
    const before = this.#answerMs ?? durationMs;
    this.#answerMs = before + (durationMs - before) * LAST_SHARE;
    this.#answeredAtMs = nowMs;
    this.#lastTier = durationMs <= FAST_MS ? FAST : SLOW;
  }
}

const MAX_IDLE = 1_000;
/** How many pairs of an action and a subscription to it are known at most; patterns may make millions. */
const MAX_RECEIVING = 100_000;

export class SubscriptionTable implements Iterable<SubscriptionState> {
  readonly #maxInFlight: number;
  readonly #states = new Map<number, SubscriptionState>();
  /** Those that had deliveries of an action, by its name. */
  readonly #receiving = new Map<string, Set<SubscriptionState>>();
  /** About how many they are. */
  #received = 0;

  /** @param maxInFlight of each subscription */
  constructor(maxInFlight: number) {
    this.#maxInFlight = maxInFlight;
  }

  [Symbol.iterator](): Iterator<SubscriptionState> {
    return this.#states.values();
  }

  of(subscriptionId: number): SubscriptionState {
    let state = this.#states.get(subscriptionId);
    if (state === undefined) {
      state = new SubscriptionState(subscriptionId, this.#maxInFlight);
      this.#states.set(subscriptionId, state);
    }
    return state;
  }

  receives(state: SubscriptionState, action: string): void {
    const receiving = this.#receiving.get(action);
    if (receiving?.has(state) === true) return;
    // What is forgotten is learnt again by the next claim.
    if (this.#received >= MAX_RECEIVING) this.#receiving.clear();
    this.#received = this.#receiving.size === 0 ? 1 : this.#received + 1;
    const known = this.#receiving.get(action);
    if (known === undefined) this.#receiving.set(action, new Set([state]));
    else known.add(state);
  }

  receivingFrom(action: string): Iterable<SubscriptionState> {
    return this.#receiving.get(action) ?? [];
  }

  /** Forgets those that are idle, the oldest first, while there are too many. */
  evictIdle(nowMs: number): void {
    if (this.#states.size <= MAX_IDLE) return;
    for (const [id, state] of this.#states) {
      if (state.isIdle(nowMs)) this.#evict(id, state);
      if (this.#states.size <= MAX_IDLE) return;
    }
  }

  #evict(id: number, state: SubscriptionState): void {
    this.#states.delete(id);
    for (const [action, receiving] of this.#receiving) {
      if (receiving.delete(state) && receiving.size === 0) this.#receiving.delete(action);
    }
  }
}

/**
 * First in, first out. Not a Set: each table that a Set empties refers to the next one, so once V8 has taken one for
 * long-lived, it retains all that follow. Empty items are cut off by the hundred, as each cut moves the whole list.
 */
export class Fifo<T> {
  readonly #items: (T | undefined)[] = [];
  #first = 0;

  get size(): number {
    return this.#items.length - this.#first;
  }

  get head(): T | undefined {
    return this.#items[this.#first];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#items[this.#first] = undefined;
    this.#first += 1;
    if (this.#first === this.#items.length || this.#first >= CUT_AT) {
      this.#items.splice(0, this.#first);
      this.#first = 0;
    }
    return item;
  }
}
