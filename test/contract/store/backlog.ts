import { expect, it } from "vitest";
import type { BacklogOf } from "../../../src/store/queue.ts";
import { agreedBacklog } from "./agreed-backlog.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

const NONE = { deliveries: 0, sinceMs: undefined };
const EMPTY = {
  due: NONE,
  busy: NONE,
  paced: NONE,
  waiting: NONE,
  blocked: NONE,
  delivering: NONE,
  held: NONE,
  isWhole: true,
};

export function backlogSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  const backlog = (nowMs: number, of?: BacklogOf) => agreedBacklog(on.store.queue, nowMs, of);
  const dueOf = async (of: BacklogOf) => (await backlog(NOW + 10, of)).due.deliveries;

  it("is empty at first", async () => {
    expect(await backlog(NOW)).toEqual(EMPTY);
  });

  it("counts each unfinished delivery once, by what it waits for", async () => {
    await on.due(5);
    const { claims } = await on.claim({ nowMs: NOW + 10, limit: 3 });
    const [first, second] = claims;
    await on.finish(first!, "delivered");
    await on.fail(second!, NOW + 90_000);
    expect(await backlog(NOW + 70_000)).toEqual({
      ...EMPTY,
      busy: { deliveries: 2, sinceMs: NOW + 3 },
      waiting: { deliveries: 1, sinceMs: undefined },
      delivering: { deliveries: 1, sinceMs: NOW + 10 },
    });
    expect(await backlog(NOW + 90_000)).toMatchObject({
      busy: { deliveries: 3, sinceMs: NOW + 3 },
      waiting: NONE,
    });
    await on.finish(claims[2]!, "delivered");
    expect(await backlog(NOW + 90_000)).toEqual({
      ...EMPTY,
      due: { deliveries: 3, sinceMs: NOW + 3 },
    });
  });

  it("counts held ones separately, and none of a deleted subscription", async () => {
    const action = await on.action();
    const paused = await on.subscription(action, { subscription: "paused" });
    const gone = await on.subscription(action, { subscription: "gone" });
    await on.subscription(action, { subscription: "active" });
    await on.publish(action, 2);
    await on.store.catalog.updateSubscription(paused.rowid, { active: false }, NOW + 5);
    await on.store.catalog.deleteSubscription(gone.rowid, NOW + 5);
    expect(await backlog(NOW + 10)).toEqual({
      ...EMPTY,
      due: { deliveries: 2, sinceMs: NOW },
      held: { deliveries: 2, sinceMs: NOW },
    });
  });

  it("counts a throttled handler's as waiting, but not one that a person retried", async () => {
    await on.due(5);
    const { claims } = await on.claim({ limit: 3 });
    const untilMs = NOW + 300_000;
    await on.finish(claims[0]!, "failed", { statusCode: 503, slowUntilMs: untilMs });
    await on.fail(claims[1]!, NOW + 90_000, { statusCode: 503 });
    await on.store.queue.retry(claims[0]!.deliveryId, NOW + 65_000);
    expect(await backlog(NOW + 200_000)).toEqual({
      ...EMPTY,
      busy: { deliveries: 1, sinceMs: NOW + 65_000 },
      waiting: { deliveries: 3, sinceMs: undefined },
      delivering: { deliveries: 1, sinceMs: NOW + 60_000 },
    });
    expect(await backlog(untilMs)).toMatchObject({
      busy: { deliveries: 4, sinceMs: NOW + 65_000 },
      waiting: NONE,
    });
    const [again] = (await on.claim({ nowMs: NOW + 200_000, limit: 1 })).claims;
    expect(again?.deliveryId).toBe(claims[0]!.deliveryId);
    expect(await backlog(NOW + 200_000)).toMatchObject({
      due: NONE,
      busy: NONE,
      waiting: { deliveries: 3 },
      delivering: { deliveries: 2 },
    });
    // What was due all along could only be sent since then.
    expect(await backlog(untilMs + 5)).toMatchObject({
      busy: { deliveries: 3, sinceMs: untilMs },
    });
  });

  it("counts the first of an ordered subscription as due at its time, and those after it as waiting", async () => {
    await on.due(4, { settings: { ordered: true } });
    expect(await backlog(NOW + 10)).toEqual({
      ...EMPTY,
      due: { deliveries: 1, sinceMs: NOW },
      waiting: { deliveries: 3, sinceMs: undefined },
    });
    const [first] = (await on.claim({ most: 1 })).claims;
    expect(await backlog(NOW + 70_000)).toMatchObject({
      due: NONE,
      waiting: { deliveries: 3 },
      delivering: { deliveries: 1 },
    });
    const atMs = NOW + 90_000;
    await on.fail(first!, atMs, { statusCode: 500 });
    const waiting = { ...EMPTY, waiting: { deliveries: 4, sinceMs: undefined } };
    expect(await backlog(atMs - 1)).toEqual(waiting);
    expect(await backlog(atMs + 7)).toMatchObject({
      due: { deliveries: 1, sinceMs: atMs },
      waiting: { deliveries: 3 },
    });
  });

  it("counts separately what a rate limit delays", async () => {
    const action = await on.action();
    const { rowid } = await on.subscription(action, { settings: { rate_limit: 2 } });
    await on.subscription(action, { subscription: "free" });
    await on.publish(action, 3);
    const parts = { due: { deliveries: 3, sinceMs: NOW }, paced: { deliveries: 3, sinceMs: NOW } };
    expect(await backlog(NOW + 10)).toEqual({ ...EMPTY, ...parts });
    await on.store.catalog.updateSubscription(rowid, { active: false }, NOW + 5);
    expect(await backlog(NOW + 10)).toMatchObject({ paced: NONE, held: { deliveries: 3 } });
  });

  it("counts those of some subscriptions alone", async () => {
    const action = await on.action();
    const { rowid } = await on.subscription(action);
    await on.subscription(action, { subscription: "other", application: "crm" });
    await on.publish(action, 3);
    expect(await dueOf({})).toBe(6);
    expect(await dueOf({ subscription: rowid })).toBe(3);
    expect(await dueOf({ applications: ["crm", "shop"] })).toBe(3);
    expect(await dueOf({ applications: ["crm"], subscription: rowid })).toBe(0);
    expect(await dueOf({ action: "*" })).toBe(6);
    expect(await dueOf({ action: "no.such" })).toBe(0);
  });

  it("does not count what has ended", async () => {
    await on.due(2, { maxRetries: 0 });
    const { claims } = await on.claim();
    await on.finish(claims[0]!, "delivered");
    await on.finish(claims[1]!, "failed");
    expect(await backlog(NOW + 99_000)).toEqual(EMPTY);
  });
}
