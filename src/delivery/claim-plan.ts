import type { ClaimRequest, Share } from "../store/claims.ts";
import { freeOf, type Load, mostOfSlow, QUICK, roomOfTier, SLOW, type Tier, UNKNOWN } from "./bulkhead.ts";
import type { Flow } from "./flow.ts";
import { FIRST_WINDOW } from "./window.ts";

/** Most deliveries of one claim: so many take the store's thread 2 ms or so, in which it does nothing else. */
const MOST_CLAIMED = 256;
/** Most deliveries leased and not begun. */
export const MOST_WAITING = 1_024;

export type ClaimPlan = Pick<ClaimRequest, "tiers" | "shares" | "others">;

/** What may be claimed now: what can be begun at once, and some ahead for the quick ones. Notes it in the flows. */
export function planClaim(
  flows: Iterable<Flow>,
  { nowMs, most, underWay }: { nowMs: number; most: number; underWay: number },
): ClaimPlan {
  const tierOf = new Map<Flow, Tier>();
  const leased = { [QUICK]: 0, [UNKNOWN]: 0, [SLOW]: 0 };
  let waiting = 0;
  for (const flow of flows) {
    flow.asked();
    const tier = flow.tier(nowMs);
    tierOf.set(flow, tier);
    leased[tier] += flow.leased;
    waiting += flow.waiting;
  }
  const load: Load = { most, underWay, unknown: leased[UNKNOWN], slow: leased[SLOW] };
  const rooms = {
    [QUICK]: Math.max(0, Math.min(MOST_CLAIMED, freeOf(load) + MOST_WAITING - waiting)),
    [UNKNOWN]: roomOfTier(UNKNOWN, load),
    [SLOW]: roomOfTier(SLOW, load),
  };
  const shares = new Map<number, Share>();
  for (const [flow, tier] of tierOf) {
    const wanted = tier === SLOW ? mostOfSlow(flow.window, rooms[SLOW]) : flow.window + flow.ahead(nowMs);
    const mostLeased = wanted + flow.toFilter;
    flow.planned = { tier, mostLeased };
    const free = flow.isBusy ? 0 : Math.max(0, mostLeased - flow.leased);
    const room = Math.min(free, flow.roomAtRate(nowMs) + flow.toFilter);
    shares.set(flow.subscriptionId, { leased: flow.leased, room, tier });
  }
  const tiers = [
    { most: rooms[QUICK], isLatestFirst: false },
    // What came last goes to a handler that was well a moment ago, rather than to one with a backlog.
    { most: rooms[UNKNOWN], isLatestFirst: true },
    { most: rooms[SLOW], isLatestFirst: false },
  ];
  return { tiers, shares, others: { leased: 0, room: FIRST_WINDOW, tier: UNKNOWN } };
}
