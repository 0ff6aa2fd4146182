import { expect, it } from "vitest";
import { DELIVERY_STATUSES, type DeliveryStatus } from "../../../src/domain/delivery.ts";
import type { Claim, DeliverySelection } from "../../../src/store/queue.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

export function deliveryListSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const ids = async (query: Partial<DeliverySelection> = {}): Promise<number[]> =>
    (await on.store.queue.list({ limit: 50, ...query })).map(({ rowid }) => rowid);

  it("is newest first and continues with `after`", async () => {
    const action = await on.action();
    await on.subscription(action);
    await on.publish(action, 5);
    const all = await ids();
    expect(all).toEqual(all.toSorted((a, b) => b - a));
    expect(all).toHaveLength(5);
    expect(await ids({ limit: 2 })).toEqual(all.slice(0, 2));
    expect(await ids({ limit: 2, after: all[1] ?? 0 })).toEqual(all.slice(2, 4));
    expect(await ids({ after: all[4] ?? 0 })).toEqual([]);
  });

  it("filters by event, subscription, action, application and time, alone and together", async () => {
    const [a, b] = [await on.action("a"), await on.action("b")];
    const one = await on.subscription(a, { application: "x", subscription: "one" });
    const two = await on.subscription(a, { application: "y", subscription: "two" });
    const three = await on.subscription(b, { application: "x", subscription: "three" });
    const [first = 0] = await on.publish(a, 1, NOW);
    const [second = 0] = await on.publish(b, 1, NOW + 1_000);
    const [third = 0] = await on.publish(a, 1, NOW + 2_000);
    const seen = async (query: Partial<DeliverySelection>): Promise<(number | string)[][]> =>
      (await on.store.queue.list({ limit: 50, ...query })).map((delivery) => [
        delivery.event_id,
        delivery.subscription,
      ]);
    expect(await seen({ event: first })).toEqual([
      [first, "two"],
      [first, "one"],
    ]);
    expect(await seen({ subscription: one.rowid })).toEqual([
      [third, "one"],
      [first, "one"],
    ]);
    expect(await seen({ action: "b" })).toEqual([[second, "three"]]);
    expect(await seen({ applications: ["x"] })).toEqual([
      [third, "one"],
      [second, "three"],
      [first, "one"],
    ]);
    expect(await seen({ applications: ["x"], action: "a" })).toEqual([
      [third, "one"],
      [first, "one"],
    ]);
    expect(await seen({ applications: ["y"], subscription: one.rowid })).toEqual([]);
    expect(await seen({ event: third, subscription: two.rowid })).toEqual([[third, "two"]]);
    expect(await seen({ fromMs: NOW + 1_000, toMs: NOW + 2_000 })).toEqual([[second, "three"]]);
    expect(await seen({ fromMs: NOW + 1, subscription: two.rowid })).toEqual([[third, "two"]]);
    expect(await seen({ applications: [] })).toEqual([]);
    expect(await seen({ event: 99 })).toEqual([]);
    expect(await seen({ action: "none" })).toEqual([]);
    expect(await seen({ subscription: three.rowid, status: "pending" })).toEqual([[second, "three"]]);
  });

  it("counts those of each event, however many", async () => {
    const action = await on.action();
    for (let n = 1; n <= 7; n += 1) await on.subscription(action, { subscription: `s${n}` });
    const events = await on.publish(action, 200);
    const { claims } = await on.claim({ limit: 4 });
    expect(claims).toHaveLength(4);
    const counts = await on.store.events.countDeliveries(events.toReversed());
    expect(counts).toHaveLength(200);
    const sum = (status: DeliveryStatus) => counts.reduce((total, one) => total + (one[status] ?? 0), 0);
    expect([sum("pending"), sum("delivering")]).toEqual([1_396, 4]);
    expect(counts[0]).toEqual({ pending: 7 });
  });

  it("finds deliveries of an action that the subscription has left", async () => {
    const a = await on.action("a");
    await on.action("b");
    const mine = await on.subscription(a);
    await on.publish(a);
    await on.store.catalog.updateSubscription(mine.rowid, { action: "b" }, NOW);
    expect(await ids({ action: "a" })).toHaveLength(1);
    expect(await ids({ action: "b" })).toEqual([]);
  });

  it("filters by each status that is shown", async () => {
    const [a, b, c] = [await on.action("a"), await on.action("b"), await on.action("c")];
    await on.subscription(a);
    const paused = await on.subscription(b);
    const deleted = await on.subscription(c);
    await on.publish(a, 6);
    const { claims } = await on.claim({ limit: 5 });
    const [delivered, failed, waiting, filtered] = claims;
    if (delivered === undefined || failed === undefined || waiting === undefined || filtered === undefined)
      throw new Error("five were due");
    await on.finish(delivered, "delivered", { statusCode: 200 });
    await on.failForGood(failed, { statusCode: 500 });
    await on.fail(waiting, NOW + 99_000, { statusCode: 500 });
    await on.finish(filtered, "filtered");
    await on.publish(b);
    await on.publish(c);
    await on.store.catalog.updateSubscription(paused.rowid, { active: false }, NOW);
    await on.store.catalog.deleteSubscription(deleted.rowid, NOW);
    const all = await on.store.queue.list({ limit: 50 });
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set(DELIVERY_STATUSES));
    for (const status of DELIVERY_STATUSES) {
      const expected = all.filter((delivery) => delivery.status === status);
      expect(await on.store.queue.list({ limit: 50, status })).toEqual(expected);
      expect(await on.store.queue.list({ limit: 50, status, applications: ["mailer"], fromMs: NOW })).toEqual(
        expected,
      );
      expect(await on.store.queue.list({ limit: 50, status, action: "a" })).toEqual(
        expected.filter(({ action }) => action === "a"),
      );
    }
  });

  it("allows to retry a failed, waiting or delivered one with all its retries", async () => {
    const action = await on.action();
    await on.subscription(action);
    await on.publish(action, 3);
    const { claims } = await on.claim();
    const ends = [
      (claim: Claim) => on.finish(claim, "delivered", { statusCode: 200 }),
      (claim: Claim) => on.failForGood(claim, { statusCode: 500 }),
      (claim: Claim) => on.fail(claim, NOW + 999_000, { statusCode: 500 }),
    ];
    for (const [index, claim] of claims.entries()) {
      await ends[index]!(claim);
      expect(await on.store.queue.retry(claim.deliveryId, NOW + 70_000)).toMatchObject({
        status: "pending",
        attempt: 1,
        next_attempt_at: "2026-03-01T12:01:10.000Z",
        finished_at: null,
      });
    }
    const again = await on.claim({ nowMs: NOW + 70_000 });
    expect(again.claims.map(({ attempt, failures }) => [attempt, failures])).toEqual([
      [2, 0],
      [2, 0],
      [2, 0],
    ]);
  });

  it("does not allow to retry what is in progress, held or cancelled", async () => {
    const action = await on.action();
    const mine = await on.subscription(action);
    await on.publish(action, 2);
    const [second = 0, first = 0] = await ids();
    const refused = async (id: number): Promise<void> => {
      await expect(on.store.queue.retry(id, NOW)).rejects.toMatchObject({ code: "conflict" });
    };
    await refused(first);
    const [claim] = (await on.claim({ limit: 1 })).claims;
    await refused(first);
    if (claim !== undefined) await on.failForGood(claim, { statusCode: 500 });
    await on.store.catalog.updateSubscription(mine.rowid, { active: false }, NOW);
    await refused(second);
    await on.store.catalog.deleteSubscription(mine.rowid, NOW);
    await refused(second);
    await refused(first);
    expect(await on.store.queue.retry(999, NOW)).toBeUndefined();
    expect(await on.store.queue.find(999)).toBeUndefined();
  });
}
