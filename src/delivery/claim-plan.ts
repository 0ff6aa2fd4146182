import type { ClaimRequest, Share } from "../store/store.ts";
import {
  freeOf,
  type Load,
  mostOfUnproven,
  QUICK,
  roomOfTier,
  SLOW,
  type Tier,
  UNKNOWN,
} from "./bulkhead.ts";
import type { Flow } from "./flow.ts";
import { firstWindow } from "./window.ts";

/** Most deliveries of one claim: so many take the store's thread 2 ms or so, in which it does nothing else. */
export const MOST_CLAIMED = 256;
/** Most deliveries leased and not begun. */
export const MOST_WAITING = 1_024;

export type ClaimPlan = Pick<ClaimRequest, "limits" | "shares" | "others">;

/** What may be claimed now: what can be begun at once, and some ahead for the quick ones. Notes it in the flows. */
export function planClaim(
  flows: Iterable<Flow>,
  now: { nowMs: number; most: number; mostWindow: number; underWay: number },
): ClaimPlan {
  const { nowMs, most, mostWindow, underWay } = now;
  const tiers = new Map<Flow, Tier>();
  let [unproven, slow, waiting] = [0, 0, 0];
  for (const flow of flows) {
    const tier = flow.tier(nowMs);
    tiers.set(flow, tier);
    waiting += flow.waiting;
    if (tier !== QUICK) unproven += flow.leased;
    if (tier === SLOW) slow += flow.leased;
  }
  const load: Load = { most, underWay, unproven, slow };
  const all = Math.max(0, Math.min(MOST_CLAIMED, freeOf(load) + MOST_WAITING - waiting));
  const limits = [all, Math.min(all, roomOfTier(UNKNOWN, load)), Math.min(all, roomOfTier(SLOW, load))];
  const shares = new Map<number, Share>();
  for (const [flow, tier] of tiers) {
    const mostLeased =
      tier === QUICK ? flow.window + flow.ahead(nowMs) : mostOfUnproven(flow.window, limits[tier] ?? 0);
    flow.planned = { tier, mostLeased };
    const { leased } = flow;
    shares.set(flow.subscriptionId, { leased, room: Math.max(0, mostLeased - leased), tier });
  }
  const room = mostOfUnproven(firstWindow(mostWindow), limits[UNKNOWN] ?? 0);
  return { limits, shares, others: { leased: 0, room, tier: UNKNOWN } };
}
