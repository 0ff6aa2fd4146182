import { describe, expect, it } from "vitest";
import {
  type Claimable,
  PRIORITY,
  selectFairly,
  type WaitingDelivery,
} from "../../../src/store/rules/fair-share.ts";

const NOW = 1_000;

function claimable(id: number, given: Partial<Claimable> = {}): Claimable {
  return {
    id,
    leased: 0,
    capacity: 100,
    tier: 0,
    waitEndMs: 0,
    ...given,
  };
}

/** Picks for subscriptions that have so many due, and names each pick by its subscription. */
async function picked(
  backlogs: Readonly<Record<number, readonly WaitingDelivery[]>>,
  claimables: readonly Claimable[],
  maxClaims: number,
  isNewestFirst = false,
) {
  const tiers = [{ maxClaims, isNewestFirst }];
  const load = (some: readonly Claimable[], limit: number) =>
    Promise.resolve(some.map(({ id }) => (backlogs[id] ?? []).slice(0, limit)));
  const { chosen, nextDueAtMs, cutTiers } = await selectFairly(load, claimables, tiers, NOW);
  return { ids: chosen.map(({ id }) => id), nextDueAtMs, cutTiers: [...cutTiers] };
}

/** Deliveries numbered from a subscription's hundred on, due a millisecond after each other. */
function due(subscription: number, count: number, fromMs = 1): WaitingDelivery[] {
  return Array.from({ length: count }, (_, n) => [PRIORITY.normal, fromMs + n, subscription * 100 + n]);
}

describe("a fair share", () => {
  it("is the same for all that have enough, whatever their backlogs are", async () => {
    const { ids, cutTiers } = await picked({ 1: due(1, 50), 2: due(2, 3) }, [claimable(1), claimable(2)], 4);
    expect(ids.toSorted((one, other) => one - other)).toEqual([100, 101, 200, 201]);
    expect(cutTiers).toEqual([0]);
  });

  it("leaves what some do not use to the others", async () => {
    const { ids } = await picked({ 1: due(1, 50), 2: due(2, 1) }, [claimable(1), claimable(2)], 6);
    expect(ids.toSorted((one, other) => one - other)).toEqual([100, 101, 102, 103, 104, 200]);
  });

  it("is less for those that have some leased, and none without capacity", async () => {
    const backlogs = { 1: due(1, 9), 2: due(2, 9), 3: due(3, 9) };
    const busy = [claimable(1, { leased: 3 }), claimable(2), claimable(3, { capacity: 0 })];
    expect((await picked(backlogs, busy, 3)).ids.toSorted((one, other) => one - other)).toEqual([
      200, 201, 202,
    ]);
  });

  it("has what a person requested, whatever the clock says, and tells when the rest comes due", async () => {
    const later: WaitingDelivery[] = [
      [PRIORITY.requested, NOW + 50, 7],
      [PRIORITY.normal, NOW + 20, 8],
    ];
    expect(await picked({ 1: later }, [claimable(1)], 9)).toEqual({
      ids: [7],
      nextDueAtMs: NOW + 20,
      cutTiers: [],
    });
    const waiting = claimable(1, { waitEndMs: NOW + 90 });
    expect(await picked({ 1: later }, [waiting], 9)).toEqual({
      ids: [7],
      nextDueAtMs: NOW + 90,
      cutTiers: [],
    });
  });
});
