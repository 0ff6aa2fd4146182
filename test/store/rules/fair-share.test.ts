import { describe, expect, it } from "vitest";
import type { TierLimit } from "../../../src/store/queue.ts";
import { type Claimable, selectFairly, type WaitingDelivery } from "../../../src/store/rules/fair-share.ts";

const NOW = 1_000;

/** A subscription, with so many deliveries that are due a millisecond after each other. */
interface Given extends Partial<Omit<Claimable, "id">> {
  readonly due?: number;
  readonly fromMs?: number;
  readonly waiting?: readonly WaitingDelivery[];
}

/** Subscriptions are numbered from 1, and the deliveries of each from its hundred on. */
async function picked(all: readonly Given[], ...limits: readonly (number | TierLimit)[]) {
  const tiers = limits.map((limit) =>
    typeof limit === "number" ? { maxClaims: limit, isNewestFirst: false } : limit,
  );
  const backlogs = all.map(({ due = 0, fromMs = 1, waiting }, index) => {
    const series = Array.from({ length: due }, (_, n) => [fromMs + n, (index + 1) * 100 + n] as const);
    return waiting ?? series.map(([dueMs, id]): WaitingDelivery => [dueMs, id]);
  });
  const claimables = all.map(({ leased = 0, capacity = 100, tier = 0, waitEndMs = 0 }, index) => {
    return { id: index + 1, leased, capacity, tier, waitEndMs };
  });
  const load = (some: readonly Claimable[], limit: number) =>
    Promise.resolve(some.map(({ id }) => backlogs[id - 1]!.slice(0, limit)));
  const { chosen, nextDueAtMs, cutTiers } = await selectFairly(load, claimables, tiers, NOW);
  const ids = chosen.map(({ id }) => id);
  return { ids, nextDueAtMs, cutTiers: [...cutTiers].toSorted((one, other) => one - other) };
}

const counts = (ids: readonly number[]): Record<number, number> => {
  const groups = Map.groupBy(ids, (id) => Math.floor(id / 100));
  return Object.fromEntries([...groups].map(([subscription, own]) => [subscription, own.length]));
};

describe("a fair share", () => {
  it.each<[what: string, all: readonly Given[], limit: number, each: Record<number, number>, cut: number[]]>([
    ["is the same for all that have enough", [{ due: 50 }, { due: 3 }], 4, { 1: 2, 2: 2 }, [0]],
    ["leaves what some do not use to the others", [{ due: 50 }, { due: 1 }], 6, { 1: 5, 2: 1 }, [0]],
    ["is less for those that have some leased", [{ due: 9, leased: 3 }, { due: 9 }], 3, { 2: 3 }, [0]],
    ["is none without capacity", [{ due: 9, capacity: 0 }, { due: 1 }], 3, { 2: 1 }, []],
    // Seven more are due, but not before one of these has ended.
    ["is the capacity at most, and then no more is asked for", [{ due: 10, capacity: 3 }], 9, { 1: 3 }, []],
    ["is nothing where nothing is allowed, and there may be more", [{ due: 1 }], 0, {}, [0]],
  ])("%s", async (_, all, limit, each, cut) => {
    const { ids, nextDueAtMs, cutTiers } = await picked(all, limit);
    expect(counts(ids)).toEqual(each);
    expect([cutTiers, nextDueAtMs]).toEqual([cut, undefined]);
  });

  it("has what is due once its subscription waits no longer, and tells when the rest comes due", async () => {
    const waiting: WaitingDelivery[] = [
      [NOW - 1, 7],
      [NOW + 20, 8],
    ];
    expect(await picked([{ waiting }], 9)).toEqual({ ids: [7], nextDueAtMs: NOW + 20, cutTiers: [] });
    const paused = { waiting, waitEndMs: NOW + 90 };
    expect(await picked([paused], 9)).toEqual({ ids: [], nextDueAtMs: NOW + 90, cutTiers: [] });
  });

  it("has at most a tier's limit, and at most the first tier's limit in all", async () => {
    const own = { due: 10, capacity: 6 };
    const quick = { ...own, leased: 50 };
    const all = [quick, { ...own, tier: 2 }, { ...own, tier: 2 }, { ...own, tier: 1 }];
    // One with many leased gets its part all the same: what is left for others is not for those of its tier.
    const first = await picked(all, 20, 2, 3);
    expect([counts(first.ids), first.cutTiers]).toEqual([{ 1: 6, 2: 2, 3: 1, 4: 2 }, [1, 2]]);
    const second = await picked(all, 4, 2, 0);
    expect([counts(second.ids), second.cutTiers]).toEqual([{ 1: 2, 4: 2 }, [0, 1, 2]]);
  });

  it("prefers the newest delivery in a tier that is set to do so", async () => {
    const all = [1, 200, 400].map((fromMs) => ({ due: 5, fromMs }));
    expect((await picked(all, { maxClaims: 2, isNewestFirst: true })).ids).toEqual([300, 200]);
    expect((await picked(all, 2)).ids).toEqual([100, 200]);
  });
});
