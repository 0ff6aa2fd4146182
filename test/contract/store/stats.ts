import { expect, it } from "vitest";
import { MINUTE_MS } from "../../../src/domain/stats/stats.ts";
import { bucketOf, MEASURE, Tally } from "../../../src/domain/stats/tally.ts";
import type { StoredStatsQuery } from "../../../src/store/history.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

const FINISHED = NOW + 61_000;
const PIECES = Array.from({ length: 12 }, (_, index) => ({ spanMs: 10_000, startMs: NOW + index * 10_000 }));

/** Figures over time, counted as things happen. */
export function statsSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  /** Two events of one action, one delivered and one failed for good. */
  async function happen(): Promise<{ action: string; subscription: number }> {
    const action = await on.action();
    const { rowid } = await on.subscription(action, { maxRetries: 0 });
    await on.publish(action, 2);
    const { claims } = await on.claim();
    await on.finish(claims[0]!, "delivered", { statusCode: 200, latencyMs: 40 });
    await on.finish(claims[1]!, "failed", { statusCode: 500 });
    return { action: action.action, subscription: rowid };
  }

  /** What was counted, by start or subject. */
  async function figures(query: Partial<StoredStatsQuery> = {}): Promise<Record<string, object>> {
    const tallies: Record<string, Tally> = {};
    for (const { key, counts } of await on.stats.figures({ by: "start", pieces: PIECES, ...query })) {
      (tallies[key] ??= new Tally()).add(counts);
    }
    const shown = Object.entries(tallies).map(([key, tally]) => {
      const { published, delivered, failed_attempts, failed } = tally.figures();
      return [key, [published, delivered, failed_attempts, failed]] as const;
    });
    return Object.fromEntries(shown);
  }

  /** Removes what is too old, and answers which spans are left. */
  async function remove(nowMs: number): Promise<boolean[]> {
    while ((await on.stats.removeExpired(nowMs)) > 0);
    const spans = [10_000, 5 * MINUTE_MS, 60 * MINUTE_MS];
    const left = spans.map((spanMs) => figures({ pieces: [{ spanMs, startMs: NOW }] }));
    return (await Promise.all(left)).map((each) => Object.keys(each).length > 0);
  }

  it("are counted in each span of time", async () => {
    await happen();
    expect(await figures()).toEqual({ [NOW]: [2, 0, 0, 0], [FINISHED - 1_000]: [0, 1, 1, 1] });
    for (const spanMs of [5 * MINUTE_MS, 60 * MINUTE_MS]) {
      const pieces = [{ spanMs, startMs: NOW }];
      expect(await figures({ pieces })).toEqual({ [NOW]: [2, 1, 1, 1] });
    }
  });

  it("add up by action and by subscription, with how long things took", async () => {
    const { action, subscription } = await happen();
    const [{ id } = { id: 0 }] = await on.stats.subjects({ by: "action", first: [], action, limit: 1 });
    expect((await figures({ by: "action" }))[id]).toEqual([2, 1, 1, 1]);
    expect(await figures({ by: "subscription" })).toEqual({ [subscription]: [0, 1, 1, 1] });
    const counted = await on.stats.figures({ by: "subscription", pieces: PIECES });
    expect(counted).toMatchObject([{ key: subscription, lastError: "500" }]);
    const [{ counts } = { counts: {} }] = counted;
    expect(counts).toMatchObject({ [MEASURE.latency + bucketOf(40)]: 1 });
  });

  it("name their subjects, those with figures first", async () => {
    const { action, subscription } = await happen();
    await on.action("a.first");
    const [{ id } = { id: 0 }] = await on.stats.subjects({ by: "action", first: [], action, limit: 1 });
    const actions = await on.stats.subjects({ by: "action", first: [id], limit: 5 });
    expect(actions.slice(0, 2)).toMatchObject([
      { action, application: "crm", lastPublishedMs: NOW + 1 },
      { action: "a.first", lastPublishedMs: null },
    ]);
    expect(await on.stats.subjects({ by: "action", first: [], limit: 1 })).toHaveLength(1);
    expect(await on.stats.subjects({ by: "subscription", first: [subscription], limit: 5 })).toEqual([
      { id: subscription, application: "mailer", subscription: "welcome", action, lastPublishedMs: null },
    ]);
    expect(
      await on.stats.subjects({ by: "subscription", first: [], limit: 5, applications: ["crm"] }),
    ).toEqual([]);
  });

  it("are removed when they are too old for their span", async () => {
    await happen();
    expect(await remove(NOW + 60 * MINUTE_MS)).toEqual([true, true, true]);
    expect(await remove(NOW + 120 * MINUTE_MS)).toEqual([false, true, true]);
    expect(await remove(NOW + 26 * 60 * MINUTE_MS)).toEqual([false, false, true]);
    expect(await remove(NOW + 9 * 24 * 60 * MINUTE_MS)).toEqual([false, false, false]);
  });
}
