import { expect, it } from "vitest";
import type { Claim } from "../../../src/store/queue.ts";
import { eventOf, Fixture, NOW, type OpenStore } from "./fixture.ts";

const NOTHING_DUE = { claims: [], nextDueAtMs: undefined, limitedTiers: [] };

export function subscriptionSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const statuses = async (): Promise<string[]> =>
    (await on.deliveries()).map(({ status }) => status).toReversed();

  it("filters by application, action and active, exactly", async () => {
    const [a, b] = [await on.action("a"), await on.action("b")];
    const one = await on.subscription(a, { application: "x", subscription: "one" });
    const two = await on.subscription(b, { application: "x", subscription: "two", active: false });
    const three = await on.subscription(a, { application: "y", subscription: "three" });
    const ids = async (query: Parameters<typeof on.catalog.listSubscriptions>[0]): Promise<number[]> =>
      (await on.catalog.listSubscriptions(query)).map(({ rowid }) => rowid);
    expect(await ids({})).toEqual([one.rowid, two.rowid, three.rowid]);
    expect(await ids({ application: "x" })).toEqual([one.rowid, two.rowid]);
    expect(await ids({ action: "a" })).toEqual([one.rowid, three.rowid]);
    expect(await ids({ active: true })).toEqual([one.rowid, three.rowid]);
    expect(await ids({ active: false, application: "x" })).toEqual([two.rowid]);
    expect(await ids({ applications: ["y"] })).toEqual([three.rowid]);
    expect(await ids({ applications: [] })).toEqual([]);
    expect(await ids({ application: "X" })).toEqual([]);
    expect(await ids({ limit: 2 })).toEqual([one.rowid, two.rowid]);
    expect(await ids({ limit: 2, after: two.rowid })).toEqual([three.rowid]);
    expect(await ids({ application: "x", after: two.rowid })).toEqual([]);
  });

  it("holds unfinished deliveries while paused, creates none, and resumes as they were", async () => {
    const { action, subscription: mine } = await on.due(3);
    const [failed, running] = (await on.claim({ limit: 2 })).claims as [Claim, Claim];
    await on.fail(failed, NOW + 90_000, { statusCode: 500 });

    expect(await on.update(mine.rowid, { active: false })).toMatchObject({ active: false });
    expect(await statuses()).toEqual(["held", "delivering", "held"]);
    expect((await on.queue.find(failed.deliveryId))?.next_attempt_at).toBeNull();
    expect(await on.claim({ nowMs: NOW + 999_999 })).toEqual(NOTHING_DUE);
    expect(await on.record([eventOf(action)])).toMatchObject([{ kind: "recorded", deliveries: 0 }]);
    // What was under way ends as usual, and is held too if it failed.
    await on.fail(running, NOW + 70_000, { errorCode: "timeout" });
    expect(await statuses()).toEqual(["held", "held", "held"]);

    await on.update(mine.rowid, { active: true });
    expect(await statuses()).toEqual(["waiting", "waiting", "pending"]);
    expect((await on.queue.find(failed.deliveryId))?.next_attempt_at).toBe("2026-03-01T12:01:30.000Z");
    const again = await on.claim({ nowMs: NOW + 65_000 });
    expect(again.claims).toHaveLength(1);
    expect(again.nextDueAtMs).toBe(NOW + 70_000);
  });

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
