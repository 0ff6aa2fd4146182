import { expect, it } from "vitest";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

const NONE = { deliveries: 0, sinceMs: undefined };
const EMPTY = { due: NONE, waiting: NONE, delivering: NONE, held: NONE, isWhole: true };

export function backlogSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("is empty in the beginning", async () => {
    expect(await on.store.countBacklog(NOW)).toEqual(EMPTY);
  });

  it("has each unfinished delivery in one part, by what it waits for", async () => {
    const action = await on.action();
    await on.subscription(action);
    await on.publish(action, 5);
    const { claims } = await on.claim({ nowMs: NOW + 10, limit: 3 });
    const [first, second] = claims;
    await on.finish(first!, { kind: "delivered" });
    await on.finish(second!, { kind: "retry", atMs: NOW + 90_000 });
    expect(await on.store.countBacklog(NOW + 70_000)).toEqual({
      due: { deliveries: 2, sinceMs: NOW + 3 },
      waiting: { deliveries: 1, sinceMs: undefined },
      delivering: { deliveries: 1, sinceMs: NOW + 10 },
      held: NONE,
      isWhole: true,
    });
    expect(await on.store.countBacklog(NOW + 90_000)).toMatchObject({
      due: { deliveries: 3, sinceMs: NOW + 3 },
      waiting: NONE,
    });
  });

  it("tells apart what is held, and has nothing of a deleted subscription", async () => {
    const action = await on.action();
    const paused = await on.subscription(action, { subscription: "paused" });
    const gone = await on.subscription(action, { subscription: "gone" });
    await on.subscription(action, { subscription: "active" });
    await on.publish(action, 2);
    await on.store.updateSubscription(paused.rowid, { active: false }, NOW + 5);
    await on.store.deleteSubscription(gone.rowid, NOW + 5);
    expect(await on.store.countBacklog(NOW + 10)).toEqual({
      ...EMPTY,
      due: { deliveries: 2, sinceMs: NOW },
      held: { deliveries: 2, sinceMs: NOW },
    });
  });

  it("is not changed by what ends for good", async () => {
    const action = await on.action();
    await on.subscription(action);
    await on.publish(action, 2);
    const { claims } = await on.claim();
    await on.finish(claims[0]!, { kind: "delivered" });
    await on.finish(claims[1]!, { kind: "failed" });
    expect(await on.store.countBacklog(NOW + 99_000)).toEqual(EMPTY);
  });

  it("comes with what committing took: every write in one transaction, and none for a refused one", async () => {
    const action = await on.action();
    const { commitSeconds, transactionSeconds, writes } = on.store.commits();
    const before = { commits: total(commitSeconds.counts), writes: writes.sum };
    await Promise.all([on.publish(action, 1), on.publish(action, 1), on.publish(action, 1)]);
    await expect(on.action()).rejects.toMatchObject({ code: "conflict" });
    expect(writes.sum - before.writes).toBe(3);
    const commits = total(commitSeconds.counts) - before.commits;
    expect(commits).toBeGreaterThanOrEqual(1);
    expect(commits).toBeLessThanOrEqual(3);
    expect(total(transactionSeconds.counts)).toBe(total(commitSeconds.counts));
    expect(commitSeconds.sum).toBeGreaterThan(0);
    expect(transactionSeconds.sum).toBeGreaterThanOrEqual(commitSeconds.sum);
  });
}

function total(counts: Float64Array): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
