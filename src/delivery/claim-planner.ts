import type { ClaimAnswer, ClaimQuota, ClaimRequest } from "../store/queue.ts";
import { FAST, FIRST_LIMIT, SLOW, tierLimits, UNKNOWN } from "./limits.ts";
import { FAST_MS, type SubscriptionState, type SubscriptionTable } from "./subscription-state.ts";

/** How many deliveries one claim may bring: so many take the store's thread 2 ms or so, in which it does nothing else. */
const MAX_CLAIMED = 256;
/** How many claims may be buffered, and how many bytes of their payloads. */
const MAX_BUFFERED = 1_024;
const MAX_BUFFERED_BYTES = 32 * 1_024 * 1_024;
/** Below this many the buffer is filled up again, so that claims are large and come before it is empty. */
const LOW_WATERMARK = MAX_BUFFERED / 4;
const MAX_CLAIM_BYTES = 8 * 1_024 * 1_024;
/** While there is no capacity for unknown subscriptions, a claim is tried this often. */
const UNKNOWN_INTERVAL_MS = FAST_MS / 4;
/** Claims for subscriptions with a rate limit are no closer together, as one claim leases for longer. */
const RATE_INTERVAL_MS = 20;

/** What the scheduler uses of its capacity. */
export interface Usage {
  readonly maxInFlight: number;
  readonly inFlight: number;
  /** Claims that are leased and not started, and the bytes of their payloads. */
  readonly buffered: number;
  readonly bufferedBytes: number;
  /** So many results wait to be stored that nothing more is claimed. */
  readonly isBehind: boolean;
}

/** A claim but for its time, which is that of stored times. */
type PlannedClaim = Omit<ClaimRequest, "nowMs">;

interface Plan extends Pick<ClaimRequest, "tiers" | "defaultQuota"> {
  readonly quotas: ReadonlyMap<number, ClaimQuota>;
}

/**
 * When to claim, and how much. A claim is wanted when something may have become due, and when there is capacity again for
 * what the last claim did not take; it never polls. Pure.
 */
export class ClaimPlanner {
  readonly #table: SubscriptionTable;
  readonly #usage: Usage;
  #isWanted = false;
  #atMs = Infinity;
  /** The claim in progress. */
  #plan: Plan | undefined;
  #requestedAtMs = 0;
  /** The last answer was not evaluated yet. */
  #isAnswered = false;
  /** Tiers of which more may be due than the last claim was allowed to lease. */
  #limitedTiers: readonly number[] = [];
  /** There was no capacity for anything. */
  #wasFull = false;
  /** There was capacity, but too many results were not stored. */
  #waitsForStore = false;
  /** Subscriptions whose capacity has grown since that was checked last. */
  readonly #freed: SubscriptionState[] = [];
  /** Among those freed while a claim was in progress is one that is not known to be fast. */
  #hasFreedUnproven = false;

  constructor(table: SubscriptionTable, usage: Usage) {
    this.#table = table;
    this.#usage = usage;
  }

  /** Something may be due now, or at that time. */
  dueAt(atMs = -Infinity): void {
    if (atMs < this.#atMs) this.#atMs = atMs;
  }

  /** A subscription has started, ended or released one. */
  freed(sub: SubscriptionState): void {
    if (this.#freed.at(-1) !== sub) this.#freed.push(sub);
  }

  stored(): void {
    this.#isWanted ||= this.#waitsForStore;
    this.#waitsForStore = false;
  }

  get nextAtMs(): number {
    return this.#atMs;
  }

  /** Whether a claim is wanted, and none is in progress. */
  isWanted(nowMs: number): boolean {
    if (this.#atMs <= nowMs) {
      this.#atMs = Infinity;
      this.#isWanted = true;
    }
    for (const sub of this.#freed) this.#noteFreed(sub, nowMs);
    this.#freed.length = 0;
    if (this.#plan !== undefined) return false;
    if (this.#isAnswered) {
      this.#isAnswered = false;
      this.#isWanted ||= this.#canTakeMore(nowMs);
    }
    return this.#isWanted;
  }

  /** The claim that is wanted; `undefined` without capacity. To be followed by `answered` or `failed`. */
  request(nowMs: number, leaseMs: number): PlannedClaim | undefined {
    const { maxInFlight, inFlight, bufferedBytes, isBehind } = this.#usage;
    this.#isWanted = false;
    this.#hasFreedUnproven = false;
    const plan = this.#planned(nowMs);
    const hasCapacity = plan.tiers[FAST]!.maxClaims > 0 && bufferedBytes < MAX_BUFFERED_BYTES;
    this.#wasFull = !hasCapacity || inFlight >= maxInFlight;
    this.#waitsForStore = hasCapacity && isBehind;
    if (!hasCapacity || isBehind) return undefined;
    this.#plan = plan;
    this.#requestedAtMs = nowMs;
    return { ...plan, quotas: [...plan.quotas], leaseMs, maxPayloadBytes: MAX_CLAIM_BYTES };
  }

  /**
   * Notes what the claim brought: of each subscription, whether it was allowed all that may be due.
   * @param aheadMs see `Scheduler.leased`
   */
  answered({ claims, limitedTiers, nextDueAtMs }: ClaimAnswer, aheadMs: number): void {
    const { tiers, quotas, defaultQuota } = this.#plan!;
    this.#plan = undefined;
    this.#isAnswered = true;
    this.#limitedTiers = limitedTiers;
    const claimed = new Map<SubscriptionState, number>();
    for (const { subscription } of claims) {
      const sub = this.#table.of(subscription.subscriptionId);
      claimed.set(sub, (claimed.get(sub) ?? 0) + 1);
    }
    for (const sub of this.#table) {
      const quota = quotas.get(sub.subscriptionId);
      if (quota === undefined) sub.requested = { tier: UNKNOWN, maxLeased: defaultQuota.capacity };
      sub.hasBacklog = (claimed.get(sub) ?? 0) >= (quota ?? defaultQuota).capacity;
    }
    const ofTier = tiers.map(() => 0);
    for (const [{ requested }, count] of claimed) ofTier[requested.tier]! += count;
    // Others filled the claim first, and these have capacity of their own.
    this.#isWanted ||=
      claims.length > 0 &&
      limitedTiers.some((tier) => tier !== FAST && ofTier[tier]! < tiers[tier]!.maxClaims);
    if (nextDueAtMs !== undefined) this.dueAt(nextDueAtMs + aheadMs);
    // Those that stall will not count as unknown any more by then.
    if (limitedTiers.includes(UNKNOWN)) this.dueAt(this.#requestedAtMs + UNKNOWN_INTERVAL_MS);
  }

  failed(): void {
    this.#plan = undefined;
    this.#isWanted = true;
  }

  /** What can be started at once, and what the fast ones prefetch. Notes it in the subscriptions. */
  #planned(nowMs: number): Plan {
    const { maxInFlight, inFlight, buffered } = this.#usage;
    const leased = { [FAST]: 0, [UNKNOWN]: 0, [SLOW]: 0 };
    for (const sub of this.#table) {
      // This claim brings it as it is.
      if (sub.isBlockedBy("stale")) sub.unblock("stale");
      leased[sub.tier(nowMs)] += sub.leased;
    }
    const limits = tierLimits({ maxInFlight, inFlight, unknown: leased[UNKNOWN], slow: leased[SLOW] });
    const quotas = new Map<number, ClaimQuota>();
    for (const sub of this.#table) quotas.set(sub.subscriptionId, sub.requestQuota(limits[SLOW], nowMs));
    const maxClaims = Math.max(0, Math.min(MAX_CLAIMED, limits[FAST] + MAX_BUFFERED - buffered));
    return {
      tiers: [
        { maxClaims, isNewestFirst: false },
        // The last delivery is more likely for a handler that was well a moment ago than for one with a backlog.
        { maxClaims: limits[UNKNOWN], isNewestFirst: true },
        { maxClaims: limits[SLOW], isNewestFirst: false },
      ],
      quotas,
      defaultQuota: { leased: 0, capacity: FIRST_LIMIT, tier: UNKNOWN },
    };
  }

  #noteFreed(sub: SubscriptionState, nowMs: number): void {
    const isUnproven = sub.requested.tier !== FAST;
    if (this.#plan !== undefined) this.#hasFreedUnproven ||= isUnproven;
    else if ((isUnproven && this.#hasMoreUnproven) || this.#belowLowWatermark || sub.wantsClaim(nowMs)) {
      this.#isWanted = true;
    } else this.#waitForRate(sub, nowMs);
  }

  /** Whether there is capacity by now for what the last claim did not take. */
  #canTakeMore(nowMs: number): boolean {
    this.#table.evictIdle(nowMs);
    let canTakeMore = (this.#hasFreedUnproven && this.#hasMoreUnproven) || this.#belowLowWatermark;
    for (const sub of this.#table) {
      canTakeMore ||= sub.wantsClaim(nowMs);
      this.#waitForRate(sub, nowMs);
    }
    return canTakeMore;
  }

  get #hasMoreUnproven(): boolean {
    return this.#limitedTiers.some((tier) => tier !== FAST);
  }

  /** Whether the last claim did not take all of fast subscriptions, or of all, and little of what it took is still there. */
  get #belowLowWatermark(): boolean {
    const { maxInFlight, inFlight, buffered, bufferedBytes } = this.#usage;
    const hasMore = this.#wasFull || this.#limitedTiers.includes(FAST);
    const isLow = buffered < LOW_WATERMARK && bufferedBytes < MAX_BUFFERED_BYTES;
    return hasMore && isLow && inFlight < maxInFlight;
  }

  #waitForRate(sub: SubscriptionState, nowMs: number): void {
    const atMs = sub.nextClaimAtMs(nowMs);
    if (atMs !== undefined) this.dueAt(Math.max(atMs, nowMs + RATE_INTERVAL_MS));
  }
}
