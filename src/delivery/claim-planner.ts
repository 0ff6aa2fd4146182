import { LRUCache } from "lru-cache";
import type { ClaimAnswer, ClaimQuota, ClaimRequest } from "../store/queue.ts";
import { FAST, FAST_MS, type ItemCounts, Lane, SLOW, type Tier, UNKNOWN } from "./lane.ts";
import { FIRST_LIMIT } from "./limits.ts";

/** How many deliveries one claim may bring: so many take the store's thread 2 ms or so, in which it does nothing else. */
const MAX_CLAIMED = 256;
/** How many items may be queued, and how many bytes of their payloads. */
const MAX_QUEUED = 1_024;
const MAX_QUEUED_BYTES = 32 * 1_024 * 1_024;
/** Below this many queued ones more are claimed, so that claims are large and come before it is empty. */
const LOW_WATERMARK = MAX_QUEUED / 4;
const MAX_CLAIM_BYTES = 8 * 1_024 * 1_024;
/** While there is no capacity for unknown subscriptions, a claim is tried this often. */
const UNKNOWN_INTERVAL_MS = FAST_MS / 4;
/** Claims for subscriptions with a rate limit are no closer together, as one claim leases for longer. */
const RATE_INTERVAL_MS = 20;

/** Nothing is claimed while so many results for each possible attempt, or in all, are not stored. */
const UNSTORED_PER_ATTEMPT = 4;
const MAX_UNSTORED = 4_096;

/** Who may have how much. */
export const SHARES = {
  /** The part of all attempts that unknown and slow subscriptions may have together. */
  unproven: 3 / 4,
  /** The part of all attempts that slow subscriptions may have together. */
  slow: 1 / 2,
  /**
   * Slow subscriptions leave some of `unproven`; unknown ones may have this part of that. They are known after a second,
   * one way or the other, so however many of them hang, there is soon some capacity for the next.
   */
  unknown: 1 / 2,
  /** A single slow subscription may have this part of what is free for all slow ones. */
  oneSlow: 1 / 8,
  /** Deliveries are leased as they are made while less than this part of all attempts is in use. */
  reserved: 1 / 2,
} as const;

/**
 * When to claim, and how much. A claim is wanted when something may have become due, and when there is capacity again for
 * what the last claim did not take; it never polls. Pure.
 */
export class ClaimPlanner {
  readonly #lanes: Lanes;
  readonly #maxInFlight: number;
  /** The schedule's counts of all items. */
  readonly #counts: ItemCounts;
  #isWanted = false;
  #atMs = Infinity;
  /** A claim was asked for, and not answered yet. */
  #isInProgress = false;
  #plan: ClaimRequest | undefined;
  /** The last answer was not evaluated yet. */
  #isAnswered = false;
  /** Tiers of which more may be due than the last claim was allowed to lease. */
  #limitedTiers: readonly number[] = [];
  /** There was no capacity for anything. */
  #wasFull = false;
  /** Subscriptions whose capacity has grown since that was checked last. */
  readonly #freed: Lane[] = [];

  constructor(lanes: Lanes, maxInFlight: number, counts: ItemCounts) {
    this.#lanes = lanes;
    this.#maxInFlight = maxInFlight;
    this.#counts = counts;
  }

  /** Whether so many results wait to be stored that nothing more is claimed. */
  get isBehind(): boolean {
    return this.#counts.items.storing >= Math.min(MAX_UNSTORED, this.#maxInFlight * UNSTORED_PER_ATTEMPT);
  }

  /** Something may be due now, or at that time. */
  dueAt(atMs = -Infinity): void {
    if (atMs < this.#atMs) this.#atMs = atMs;
  }

  /** A lane has capacity again. */
  freed(lane: Lane): void {
    if (this.#freed.at(-1) !== lane) this.#freed.push(lane);
  }

  get nextAtMs(): number {
    return this.#atMs;
  }

  /**
   * Whether a claim begins: one is wanted, none is in progress, and results are stored as fast as they come. To be followed by
   * `request`.
   */
  begins(nowMs: number): boolean {
    if (this.#atMs <= nowMs) {
      this.#atMs = Infinity;
      this.#isWanted = true;
    }
    if (this.#isInProgress) return false;
    if (this.#isAnswered) {
      this.#isAnswered = false;
      this.#lanes.evictIdle(nowMs);
      for (const lane of this.#lanes) this.#noteBacklog(lane, nowMs);
      this.#isWanted ||= this.#belowLowWatermark;
    }
    const hasMoreUnproven = this.#limitedTiers.some((tier) => tier !== FAST);
    for (const lane of this.#freed) {
      const isUnproven = lane.requested.tier !== FAST;
      if ((isUnproven && hasMoreUnproven) || this.#belowLowWatermark) this.#isWanted = true;
      else this.#noteBacklog(lane, nowMs);
    }
    this.#freed.length = 0;
    this.#isInProgress = this.#isWanted && !this.isBehind;
    return this.#isInProgress;
  }

  /** The claim that is wanted; `undefined` without capacity. To be followed by `answered` or `failed`. */
  request(nowMs: number, leaseMs: number, aheadMs: number): ClaimRequest | undefined {
    const { sending } = this.#counts.items;
    this.#isWanted = false;
    const plan = this.#planned(nowMs, leaseMs, aheadMs);
    this.#isInProgress = plan.tiers[FAST]!.maxClaims > 0 && this.#counts.bytes.queued < MAX_QUEUED_BYTES;
    this.#wasFull = !this.#isInProgress || sending >= this.#maxInFlight;
    if (!this.#isInProgress) return undefined;
    this.#plan = plan;
    return plan;
  }

  /**
   * Notes what the claim brought: of each subscription, whether it was allowed all that may be due.
   * @param asOf which changes of subscriptions it knew: of those changed since it says nothing
   * @param aheadMs see `Schedule.claimed`
   */
  answered({ claims, limitedTiers, nextDueAtMs }: ClaimAnswer, asOf: number, aheadMs: number): void {
    const { tiers, defaultQuota } = this.#plan!;
    const quotas = new Map(this.#plan!.quotas);
    this.#isInProgress = false;
    this.#isAnswered = true;
    this.#limitedTiers = limitedTiers;
    const claimed = new Map<Lane, number>();
    for (const { subscription } of claims) {
      const lane = this.#lanes.of(subscription.subscriptionId);
      claimed.set(lane, (claimed.get(lane) ?? 0) + 1);
    }
    for (const lane of this.#lanes) {
      const quota = quotas.get(lane.subscriptionId);
      if (quota === undefined) lane.requested = { tier: UNKNOWN, maxLeased: defaultQuota.capacity };
      if (lane.changedAt > asOf) continue;
      lane.hasBacklog = (claimed.get(lane) ?? 0) >= (quota ?? defaultQuota).capacity;
    }
    const ofTier = tiers.map(() => 0);
    for (const [{ requested }, count] of claimed) ofTier[requested.tier]! += count;
    // Others filled the claim first, and these have capacity of their own.
    this.#isWanted ||=
      claims.length > 0 &&
      limitedTiers.some((tier) => tier !== FAST && ofTier[tier]! < tiers[tier]!.maxClaims);
    if (nextDueAtMs !== undefined) this.dueAt(nextDueAtMs + aheadMs);
    // Those that stall will not count as unknown any more by then.
    if (limitedTiers.includes(UNKNOWN)) this.dueAt(this.#plan!.nowMs + aheadMs + UNKNOWN_INTERVAL_MS);
  }

  failed(): void {
    this.#isInProgress = false;
    this.#isWanted = true;
  }

  /** What can be started at once, and what the fast ones prefetch. Notes it in the subscriptions. */
  #planned(nowMs: number, leaseMs: number, aheadMs: number): ClaimRequest {
    const maxInFlight = this.#maxInFlight;
    const { sending: inFlight, queued } = this.#counts.items;
    const leased = { [FAST]: 0, [UNKNOWN]: 0, [SLOW]: 0 };
    for (const lane of this.#lanes) leased[lane.tier(nowMs)] += lane.leased;
    const limits = tierLimits({ maxInFlight, inFlight, unknown: leased[UNKNOWN], slow: leased[SLOW] });
    const slowShare = shareOfSlow(limits[SLOW]);
    const quotas = Array.from(this.#lanes, (lane): [subscriptionId: number, quota: ClaimQuota] => {
      return [lane.subscriptionId, lane.requestQuota(slowShare, nowMs)];
    });
    const maxClaims = Math.max(0, Math.min(MAX_CLAIMED, limits[FAST] + MAX_QUEUED - queued));
    return {
      nowMs: nowMs - aheadMs,
      tiers: [
        { maxClaims, isNewestFirst: false },
        // The last delivery is more likely for a handler that was well a moment ago than for one with a backlog.
        { maxClaims: limits[UNKNOWN], isNewestFirst: true },
        { maxClaims: limits[SLOW], isNewestFirst: false },
      ],
      quotas,
      defaultQuota: { leased: 0, capacity: FIRST_LIMIT, tier: UNKNOWN },
      leaseMs,
      maxPayloadBytes: MAX_CLAIM_BYTES,
    };
  }

  /** Whether the lane may lease more of what is due for it, now or when its rate allows it. */
  #noteBacklog(lane: Lane, nowMs: number): void {
    if (lane.wantsClaim(nowMs)) this.#isWanted = true;
    else {
      const atMs = lane.nextClaimAtMs(nowMs);
      if (atMs !== undefined) this.dueAt(Math.max(atMs, nowMs + RATE_INTERVAL_MS));
    }
  }

  /** Whether the last claim did not take all of fast subscriptions, or of all, and little of what it took is still there. */
  get #belowLowWatermark(): boolean {
    const { items, bytes } = this.#counts;
    const hasMore = this.#wasFull || this.#limitedTiers.includes(FAST);
    const isLow = items.queued < LOW_WATERMARK && bytes.queued < MAX_QUEUED_BYTES;
    return hasMore && isLow && items.sending < this.#maxInFlight;
  }
}

/**
 * How many more deliveries the unknown, the slow, and (as `FAST`) all subscriptions together may lease.
 * @param load what is in flight of all, and what is leased to the unknown and to the slow ones
 */
export function tierLimits({
  maxInFlight,
  inFlight,
  unknown,
  slow,
}: Readonly<Record<"maxInFlight" | "inFlight" | "unknown" | "slow", number>>): Readonly<
  Record<Tier, number>
> {
  const free = Math.max(0, maxInFlight - inFlight);
  const unproven = Math.ceil(maxInFlight * SHARES.unproven) - slow;
  const forUnknown = Math.max(1, Math.ceil(unproven * SHARES.unknown)) - unknown;
  const forSlow = Math.min(unproven - unknown, Math.ceil(maxInFlight * SHARES.slow) - slow);
  return {
    [FAST]: free,
    [UNKNOWN]: Math.max(0, Math.min(free, forUnknown)),
    [SLOW]: Math.max(0, Math.min(free, forSlow)),
  };
}

/** How many deliveries one slow subscription may lease, of all that slow ones may: each less than the one before, but one at least. */
export function shareOfSlow(free: number): number {
  return Math.max(1, Math.floor(free * SHARES.oneSlow));
}

const MAX_IDLE = 1_000;
/** How many actions, and subscriptions to each, are known at most; patterns may make millions of pairs. */
const MAX_ACTIONS = 2_000;
const MAX_RECEIVING = 256;

/** All subscriptions that are known. */
export class Lanes implements Iterable<Lane> {
  readonly #maxInFlight: number;
  readonly #lanes = new Map<number, Lane>();
  /** Subscriptions that had deliveries of an action. What is forgotten is learnt again by the next claim. */
  readonly #receiving = new LRUCache<string, Set<number>>({ max: MAX_ACTIONS });

  /** @param maxInFlight of each subscription */
  constructor(maxInFlight: number) {
    this.#maxInFlight = maxInFlight;
  }

  [Symbol.iterator](): Iterator<Lane> {
    return this.#lanes.values();
  }

  of(subscriptionId: number): Lane {
    let lane = this.#lanes.get(subscriptionId);
    if (lane === undefined) {
      lane = new Lane(subscriptionId, this.#maxInFlight);
      this.#lanes.set(subscriptionId, lane);
    }
    return lane;
  }

  receives({ subscriptionId }: Lane, action: string): void {
    const receiving = this.#receiving.get(action) ?? new Set();
    if (receiving.has(subscriptionId)) return;
    if (receiving.size >= MAX_RECEIVING) receiving.clear();
    this.#receiving.set(action, receiving.add(subscriptionId));
  }

  *receivingFrom(action: string): Iterable<Lane> {
    for (const subscriptionId of this.#receiving.get(action) ?? []) {
      const lane = this.#lanes.get(subscriptionId);
      if (lane !== undefined) yield lane;
    }
  }

  /** Forgets those that are idle, the oldest first, while there are too many. */
  evictIdle(nowMs: number): void {
    if (this.#lanes.size <= MAX_IDLE) return;
    for (const [id, lane] of this.#lanes) {
      if (lane.isIdle(nowMs)) this.#lanes.delete(id);
      if (this.#lanes.size <= MAX_IDLE) return;
    }
  }
}
