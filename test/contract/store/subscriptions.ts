import { expect, it } from "vitest";
import { eventOf, Fixture, NOW, type OpenStore } from "./fixture.ts";

export function subscriptionSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("answers a deleted one as it was then, and no other that way; the next has another number", async () => {
    const action = await on.action();
    const before = await on.subscription(action, { maxRetries: 2 });
    const { rowid } = before;
    const stored = await on.catalog.findSubscription(rowid);
    expect(await on.catalog.findDeletedSubscription(rowid)).toBeUndefined();
    expect(await on.catalog.deleteSubscription(rowid, NOW)).toEqual(stored);
    expect(await on.catalog.deleteSubscription(rowid, NOW)).toBeUndefined();
    expect(await on.update(rowid, { active: true })).toBeUndefined();
    expect(await on.catalog.findSubscription(rowid)).toBeUndefined();
    expect(await on.catalog.findDeletedSubscription(rowid)).toEqual(stored);
    expect(await on.catalog.findDeletedSubscription(rowid + 1)).toBeUndefined();
    expect((await on.subscription(action)).rowid).toBeGreaterThan(rowid);
  });

  it("counts what is pending of one, however many are due at the same time", async () => {
    const { action, id } = await on.due();
    await on.record(Array.from({ length: 2_000 }, () => eventOf(action)));
    expect(await on.queue.countPending(id)).toBe(2_001);
  });
}
