import { throttleBackoffMs } from "../domain/retry.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { Claim, ClaimQuota } from "../store/queue.ts";
import { AdaptiveLimit, RateLimiter } from "./limits.ts";

/**
 * How the last attempts of a subscription went: its handler answers soon, nothing is known yet, or it is slow, hangs or
 * cannot be reached. Fast ones may use all capacity, and always have some.
 */
export const FAST = 0;
export const UNKNOWN = 1;
export const SLOW = 2;
export type Tier = typeof FAST | typeof UNKNOWN | typeof SLOW;

/** An answer within this is a fast one; what is queued for longer is dropped. */
export const FAST_MS = 1_000;
/** A fast subscription prefetches what its handler takes in about this time. */
const PREFETCH_MS = 100;
const MAX_PREFETCH = 512;
/** How many items may wait for a filter: as many as one request brings. */
const MAX_FOR_FILTER = 256;
/** The weight of the last answer in the usual time of answers. */
const LAST_SHARE = 1 / 8;

/**
 * Whether a lane starts attempts, and if not, why: the pause that its handler asked for is not stored yet, it holds nothing, it has
 * as many under way as its limit allows, or its rate allows none yet. It is derived, never stored. CONTRIBUTING.md draws how it
 * changes, and a test holds the schedule to that.
 */
type LaneState = "ready" | "settling" | "empty" | "full" | "paced";

/** Where a delivery in hand is; see `LIFE`. */
export type ItemState = "queued" | "sending" | "storing" | "gone";

/** How many items are in each state, and the bytes of their payloads. */
export class ItemCounts {
  readonly items: Record<ItemState, number> = { queued: 0, sending: 0, storing: 0, gone: 0 };
  readonly bytes: Record<ItemState, number> = { queued: 0, sending: 0, storing: 0, gone: 0 };

  add(state: ItemState, bytes: number): void {
    this.items[state] += 1;
    this.bytes[state] += bytes;
  }

  move(from: ItemState, to: ItemState, bytes: number): void {
    this.items[from] -= 1;
    this.bytes[from] -= bytes;
    this.add(to, bytes);
  }
}

/** One delivery in hand. */
export interface Item {
  readonly lane: Lane;
  /** There while it is queued: its payload may be a view of the bytes of many. */
  claim: Claim | undefined;
  /** The bytes of its payload. An event that goes to several is counted several times. */
  readonly bytes: number;
  /** When it was leased. */
  readonly leasedAtMs: number;
  state: ItemState;
  /** While its result is stored: when its handler wants to be sent to again. The lane settles until it is stored. */
  pausedUntilMs?: number;
}

/** What is in hand of one subscription, and what is known of its handler. It has no clock and does nothing by itself. */
export class Lane {
  readonly subscriptionId: number;
  /** The lane's items that are queued, in the order of their leases. */
  readonly queued: Item[] = [];
  /** Only `Schedule` changes them. */
  readonly counts = new ItemCounts();
  /** What the last claim request allowed it. */
  requested: { readonly tier: Tier; readonly maxLeased: number } = { tier: UNKNOWN, maxLeased: 0 };
  /** More may be due than it was allowed to lease. */
  hasBacklog = false;
  isInRing = false;
  /** Which of all changes of subscriptions was its last: what was requested before it is outdated. */
  changedAt = 0;
  /** Pauses that its handler asked for and that are not stored. Once they are, the store leaves the lane out of claims. */
  settling = 0;
  readonly #adaptiveLimit: AdaptiveLimit;
  /** The service's limit for each subscription. */
  readonly #maxInFlight: number;
  /** Of its settings no more is kept: a filter is large, and there may be a lane for each of many subscriptions. */
  #ordered: SubscriptionSettings["ordered"] = false;
  #rateLimiter: RateLimiter | undefined;
  /** Deliveries that may be leased as they are made, see `RecordClaim`. */
  #reserved = 0;
  #lastTier: Tier = UNKNOWN;
  /** How long answers take, lately. */
  #answerMs: number | undefined;
  #answeredAtMs = -Infinity;
  /** At least one attempt has always been in flight since then. */
  #busySinceMs = 0;
  /** Throttling answers one after the other while it had one attempt at a time. */
  #throttles = 0;
  #isThrottling = false;
  /** An attempt that started before it shows nothing new by another throttling answer. */
  #throttledAtMs = -Infinity;
  #unansweredAtMs = -Infinity;
  /** How many its filter excludes one after the other, lately. */
  #excluded = 0;

  constructor(subscriptionId: number, maxInFlight: number) {
    this.subscriptionId = subscriptionId;
    this.#maxInFlight = maxInFlight;
    this.#adaptiveLimit = new AdaptiveLimit(maxInFlight);
  }

  /** Takes over the settings that a claim or a change brought. */
  applySettings({
    ordered,
    max_in_flight: maxInFlight,
    rate_limit: perSecond,
  }: Pick<SubscriptionSettings, "ordered" | "max_in_flight" | "rate_limit">): void {
    this.#ordered = ordered;
    this.#adaptiveLimit.max = Math.min(this.#maxInFlight, maxInFlight ?? Infinity);
    if (perSecond === this.#rateLimiter?.perSecond) return;
    this.#rateLimiter = perSecond === null ? undefined : new RateLimiter(perSecond, this.#rateLimiter);
  }

  get isOrdered(): boolean {
    return this.#ordered !== false;
  }

  get limit(): number {
    return this.#adaptiveLimit.size;
  }

  get sending(): number {
    return this.counts.items.sending;
  }

  /** All its leases: queued, under way and reserved. */
  get leased(): number {
    return this.queued.length + this.sending + this.#reserved;
  }

  state(nowMs: number): LaneState {
    if (this.settling > 0) return "settling";
    if (this.queued.length === 0) return "empty";
    if (this.#isAtLimit) return "full";
    return this.#rateLimiter?.allows(nowMs) === false ? "paced" : "ready";
  }

  nextSlotMs(nowMs: number): number {
    return this.#rateLimiter?.allowedAtMs(0, nowMs) ?? nowMs;
  }

  /**
   * Whether the others leave it enough to start the attempt that it is ready for. A fast one has at most as many as are free, so that
   * all busy ones have about the same and some remain for the next (the dynamic thresholds of shared-memory switches).
   * @param attempts that may be started, one at least
   * @param payloadBytes that may be in flight beside those that are
   */
  canStart(attempts: number, payloadBytes: number, nowMs: number): boolean {
    // One attempt is allowed whatever its size.
    if (this.sending > 0 && this.counts.bytes.sending >= payloadBytes) return false;
    return this.tier(nowMs) !== FAST || this.sending < attempts;
  }

  /**
   * What the next claim may lease for it, which is noted. It is more than can be started, by what the handler gets through
   * in a moment, and by what the filter is going to exclude, which takes no capacity.
   * @param slowShare how many deliveries a single slow subscription may lease
   */
  requestQuota(slowShare: number, nowMs: number): ClaimQuota {
    const { leased, filterAllowance } = this;
    const tier = this.tier(nowMs);
    const toSend = tier === SLOW ? Math.min(this.limit, slowShare) : this.limit + this.prefetch(nowMs);
    const maxLeased = toSend + filterAllowance;
    this.requested = { tier, maxLeased };
    if (this.settling > 0) return { leased, capacity: 0, tier };
    const startable = Math.max(0, this.#startableSoon(nowMs) - this.queued.length);
    const capacity = Math.max(0, Math.min(maxLeased - leased, startable + filterAllowance));
    return { leased, capacity, tier };
  }

  /**
   * Reserves capacity for a delivery that is about to be made, so that it can be leased at once. Not while older ones may
   * be due: claims take those first.
   * @returns whether there is capacity
   */
  reserve(nowMs: number): boolean {
    if (this.hasBacklog || this.settling > 0 || this.tier(nowMs) !== FAST) return false;
    if (this.leased >= this.limit + this.prefetch(nowMs)) return false;
    if (this.#startableSoon(nowMs) <= this.queued.length + this.#reserved) return false;
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

  get #isAtLimit(): boolean {
    return this.sending >= this.limit;
  }

  /** Whether it may lease more of its backlog by now, and not only one or two deliveries. */
  wantsClaim(nowMs: number): boolean {
    if (!this.hasBacklog || this.settling > 0) return false;
    const startable = this.#startableSoon(nowMs);
    if (startable === 0 || this.queued.length * 2 > startable) return false;
    const soonDone = this.prefetch(nowMs) + this.filterAllowance;
    return this.leased < this.requested.maxLeased && this.queued.length * 2 <= soonDone;
  }

  /** If only its rate prevents another claim: when half of what is queued will have started. */
  nextClaimAtMs(nowMs: number): number | undefined {
    if (this.#rateLimiter === undefined || !this.hasBacklog || this.settling > 0) return undefined;
    if (this.leased >= this.requested.maxLeased) return undefined;
    return this.#rateLimiter.allowedAtMs(Math.ceil(this.queued.length / 2), nowMs);
  }

  tier(nowMs: number): Tier {
    const isStalled = this.sending > 0 && nowMs - Math.max(this.#busySinceMs, this.#answeredAtMs) > FAST_MS;
    return isStalled ? SLOW : this.#lastTier;
  }

  /** Whether forgetting it would lose only what is known of its handler. */
  isIdle(nowMs: number): boolean {
    return this.leased === 0 && this.settling === 0 && this.#rateLimiter?.isIdle(nowMs) !== false;
  }

  /** Its filter has excluded one. */
  excluded(): void {
    this.#excluded = Math.min(2 * MAX_FOR_FILTER, this.#excluded + 1);
  }

  /** An attempt begins; it is not among those under way yet. */
  started(nowMs: number): void {
    this.#excluded >>= 1;
    if (this.sending === 0) this.#busySinceMs = nowMs;
    this.#rateLimiter?.started(nowMs);
  }

  /** @param isFault whether the answer shows that something is wrong with the handler */
  answered(nowMs: number, durationMs: number, isFault: boolean): void {
    if (isFault) this.#adaptiveLimit.faulted();
    else this.#adaptiveLimit.answered(durationMs, this.sending);
    this.#noteAnswer(nowMs, durationMs);
    this.#isThrottling = false;
    this.#throttles = 0;
  }

  /**
   * The answer means "too much" or "not now": fewer at once from now on or, with one at a time, growing gaps.
   * @returns how long no attempt may start
   */
  throttled(nowMs: number, durationMs: number, startedAtMs: number): number {
    this.#noteAnswer(nowMs, durationMs);
    this.#isThrottling = true;
    if (startedAtMs < this.#throttledAtMs) return 0;
    this.#throttledAtMs = nowMs;
    // In one order there is one at a time, whatever the limit.
    if (this.limit > 1 && this.#ordered !== true) {
      this.#adaptiveLimit.halve();
      return 0;
    }
    this.#throttles += 1;
    return throttleBackoffMs(this.#throttles);
  }

  unanswered(nowMs: number, startedAtMs: number): void {
    // Another failure of attempts that started before it, while others are answered, shows nothing new.
    if (startedAtMs >= this.#unansweredAtMs || this.#answeredAtMs < this.#unansweredAtMs) {
      this.#adaptiveLimit.halve();
      this.#unansweredAtMs = nowMs;
    }
    // One of many may fail while the others are answered.
    if (this.#lastTier !== FAST || nowMs - this.#answeredAtMs > FAST_MS) this.#lastTier = SLOW;
  }

  #noteAnswer(nowMs: number, durationMs: number): void {
    const before = this.#answerMs ?? durationMs;
    this.#answerMs = before + (durationMs - before) * LAST_SHARE;
    this.#answeredAtMs = nowMs;
    this.#lastTier = durationMs <= FAST_MS ? FAST : SLOW;
  }
}
