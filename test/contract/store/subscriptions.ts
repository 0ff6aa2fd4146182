import { expect, it } from "vitest";
import type { Claim } from "../../../src/store/queue.ts";
import { eventOf, Fixture, NOW, type OpenStore } from "./fixture.ts";

const NOTHING_DUE = { claims: [], nextDueAtMs: undefined, limitedTiers: [] };

export function subscriptionSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const statuses = async (): Promise<string[]> =>
    (await on.deliveries()).map(({ status }) => status).toReversed();

  it("cancels unfinished deliveries of a deleted one and keeps its history", async () => {
    const { action, subscription: mine } = await on.due(3);
    const [done, running] = (await on.claim({ limit: 2 })).claims as [Claim, Claim];
    await on.finish(done, "delivered", { statusCode: 200 });

    expect(await on.catalog.deleteSubscription(mine.rowid, NOW + 5)).toEqual(mine);
    expect(await statuses()).toEqual(["delivered", "delivering", "cancelled"]);
    expect(await on.queue.countPending(mine.rowid)).toBe(1);
    await on.fail(running, NOW + 70_000, { statusCode: 500 });
    expect(await statuses()).toEqual(["delivered", "cancelled", "cancelled"]);
    expect(await on.queue.countPending(mine.rowid)).toBe(2);
    const cancelled = {
      subscription: "welcome",
      next_attempt_at: null,
      finished_at: "2026-03-01T12:00:00.005Z",
    };
    expect((await on.deliveries({ status: "cancelled" }))[0]).toMatchObject(cancelled);
    expect(await on.claim({ nowMs: NOW + 999_999 })).toEqual(NOTHING_DUE);
    expect(await on.catalog.findSubscription(mine.rowid)).toBeUndefined();
    expect(await on.catalog.deleteSubscription(mine.rowid, NOW)).toBeUndefined();
    expect(await on.update(mine.rowid, { active: true })).toBeUndefined();

    const next = await on.subscription(action);
    expect(next.rowid).toBeGreaterThan(mine.rowid);
    await on.publish(action);
    expect(await on.deliveries({ subscription: next.rowid })).toHaveLength(1);
    expect(await on.queue.countPending(next.rowid)).toBe(1);
    // More than are counted in a step, all due at the same time.
    await on.record(Array.from({ length: 2_000 }, () => eventOf(action)));
    expect(await on.queue.countPending(next.rowid)).toBe(2_001);
  });

  it("answers a deleted one as it was then, and no other that way", async () => {
    const action = await on.action();
    const { rowid } = await on.subscription(action, { maxRetries: 2 });
    const before = await on.catalog.findSubscription(rowid);
    expect(await on.catalog.findDeletedSubscription(rowid)).toBeUndefined();
    await on.catalog.deleteSubscription(rowid, NOW);
    expect(await on.catalog.findDeletedSubscription(rowid)).toEqual(before);
    expect(await on.catalog.findDeletedSubscription(rowid + 1)).toBeUndefined();
  });
}
