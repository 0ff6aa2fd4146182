import type { ClaimQuota, TierLimit } from "../queue.ts";

export interface Claimable extends ClaimQuota {
  readonly id: number;
  /** Nothing is sent before this. */
  readonly waitEndMs: number;
}

interface Picked {
  /** The deliveries, in the order in which they are claimed. */
  readonly chosen: readonly DueDelivery[];
  /** When the first delivery comes due that is not due yet. */
  readonly nextDueAtMs: number | undefined;
  /** The tiers of which more may be due than the limits allowed. */
  readonly cutTiers: ReadonlySet<number>;
}

interface DueDelivery {
  readonly id: number;
  readonly dueMs: number;
  readonly tier: number;
  /** How many its subscription would then have leased; the fewer, the sooner. */
  readonly rank: number;
}

/** An unfinished delivery that is not leased. */
export type WaitingDelivery = readonly [dueMs: number, id: number];

/** Reads the first `limit` of each that are not leased, due or not, in the order in which they are sent. */
export type LoadWaiting = (
  claimables: readonly Claimable[],
  limit: number,
) => Promise<readonly (readonly WaitingDelivery[])[]>;

interface Offer {
  readonly claimable: Claimable;
  readonly candidates: readonly DueDelivery[];
  /** `Infinity` where none comes due. */
  readonly nextDueAtMs: number;
  /** Whether the subscription has capacity for more, and may have more due. */
  readonly hasMore: boolean;
}

/**
 * So many rounds are made. In each, others get what those with less than their share left over; the rest is for the next claim.
 */
const MAX_ROUNDS = 3;

/**
 * Picks due deliveries in turns: the first of each subscription that has none leased, then the second of those and the first of
 * each that has one, and so on. Among equals tiers with the newest first come before the others.
 */
export async function selectFairly(
  loadWaiting: LoadWaiting,
  claimables: readonly Claimable[],
  tiers: readonly TierLimit[],
  nowMs: number,
): Promise<Picked> {
  const offers: Offer[] = [];
  for (const [tier, limit] of tiers.entries()) {
    const own = claimables.filter((claimable) => claimable.tier === tier);
    offers.push(...(await candidatesFor(loadWaiting, own, limit.maxClaims, nowMs)));
  }
  const candidates = offers.flatMap((offer) => offer.candidates);
  if (offers.length > 1) candidates.sort(byTurn(tiers));
  const remaining = tiers.map(({ maxClaims }) => maxClaims);
  const cutTiers = new Set(offers.flatMap(({ hasMore, claimable }) => (hasMore ? [claimable.tier] : [])));
  const chosen: DueDelivery[] = [];
  for (const candidate of candidates) {
    const { tier } = candidate;
    if (remaining[0] === 0 || remaining[tier] === 0) {
      cutTiers.add(remaining[0] === 0 ? 0 : tier);
      continue;
    }
    remaining[0]! -= 1;
    if (tier > 0) remaining[tier]! -= 1;
    chosen.push(candidate);
  }
  const nextMs = offers.reduce((earliest, offer) => Math.min(earliest, offer.nextDueAtMs), Infinity);
  return { chosen, nextDueAtMs: nextMs === Infinity ? undefined : nextMs, cutTiers };
}

function byTurn(tiers: readonly TierLimit[]): (a: DueDelivery, b: DueDelivery) => number {
  const newestFirst = tiers.map(({ isNewestFirst }) => isNewestFirst);
  return (a, b) => {
    if (a.rank !== b.rank) return a.rank - b.rank;
    if (newestFirst[a.tier] !== newestFirst[b.tier]) return newestFirst[a.tier] ? -1 : 1;
    const order = a.dueMs - b.dueMs || a.id - b.id;
    return newestFirst[a.tier] ? -order : order;
  };
}

/** Takes a fair share of the limit from each, and what some do not use from those that have more. */
async function candidatesFor(
  loadWaiting: LoadWaiting,
  claimables: readonly Claimable[],
  maxClaims: number,
  nowMs: number,
): Promise<Offer[]> {
  const complete: Offer[] = [];
  let open = claimables;
  let missing = maxClaims;
  for (let round = 1; open.length > 0; round += 1) {
    const level = fairLevel(open, missing);
    const offers = await offersAt(loadWaiting, open, level, nowMs);
    const onward = offers.filter(({ hasMore }) => hasMore);
    if (round === MAX_ROUNDS || onward.length === offers.length) return [...complete, ...offers];
    for (const offer of offers) {
      if (offer.hasMore) continue;
      complete.push(offer);
      missing -= offer.candidates.length;
    }
    open = onward.map(({ claimable }) => claimable);
  }
  return complete;
}

/** Answers the lowest number of leases that uses the limit when all subscriptions are filled up to it. */
function fairLevel(claimables: readonly Claimable[], limit: number): number {
  let low = 0;
  let high = claimables.reduce(
    (max, { leased, capacity }) => Math.max(max, leased + Math.min(capacity, limit)),
    0,
  );
  while (low < high) {
    const level = Math.floor((low + high) / 2);
    let taken = 0;
    for (const claimable of claimables) taken += shareAt(claimable, level);
    if (taken >= limit) high = level;
    else low = level + 1;
  }
  return low;
}

function shareAt({ leased, capacity }: Claimable, level: number): number {
  return Math.max(0, Math.min(capacity, level - leased));
}

async function offersAt(
  loadWaiting: LoadWaiting,
  claimables: readonly Claimable[],
  level: number,
  nowMs: number,
): Promise<Offer[]> {
  // One statement reads the same number of rows for all, so those with about the same need are read together.
  const byNeed = Map.groupBy(claimables, (one) => 4 ** Math.ceil(Math.log2(shareAt(one, level)) / 2));
  const offers: Offer[] = [];
  for (const group of byNeed.values()) {
    const most = group.reduce((max, one) => Math.max(max, shareAt(one, level)), 0);
    const waiting = await loadWaiting(group, most + 1);
    for (const [index, one] of group.entries()) {
      offers.push(offerOf(one, waiting[index]!, shareAt(one, level), nowMs));
    }
  }
  return offers;
}

function offerOf(
  claimable: Claimable,
  waiting: readonly WaitingDelivery[],
  share: number,
  nowMs: number,
): Offer {
  const { tier, leased, capacity, waitEndMs } = claimable;
  const due = waiting.filter(([dueMs]) => Math.max(dueMs, waitEndMs) <= nowMs);
  const candidates = due.slice(0, share).map(([dueMs, id], index) => {
    return { id, dueMs, tier, rank: leased + index + 1 };
  });
  const hasCapacity = candidates.length < capacity;
  const [laterMs] = waiting[due.length] ?? [];
  const nextDueAtMs = hasCapacity && laterMs !== undefined ? Math.max(laterMs, waitEndMs) : Infinity;
  return { claimable, candidates, nextDueAtMs, hasMore: hasCapacity && due.length > share };
}
