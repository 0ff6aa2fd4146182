import { expect, it } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import { EvregError } from "../../../src/domain/error.ts";
import type { SubscriptionSettings } from "../../../src/domain/subscription-settings.ts";
import type { Claim } from "../../../src/store/queue.ts";
import { agreedBacklog } from "./agreed-backlog.ts";
import { eventOf, Fixture, NOW, type OpenStore, resultOf } from "./fixture.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function eventsOf(claims: readonly Claim[]): number[] {
  return claims.map(({ event }) => event.eventId);
}

/** Subscriptions that get one delivery at a time, in the order of publication. */
export function orderedSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  async function ordered(
    settings: Partial<SubscriptionSettings> = {},
    maxRetries = 1,
  ): Promise<{ action: Action; subscription: { readonly handler: string }; id: number }> {
    const action = await on.action();
    const handler = "https://mailer.example/welcome";
    const subscription = await on.store.catalog.createSubscription(
      {
        application: "mailer",
        subscription: "welcome",
        action: action.action,
        handler,
        maxRetries,
        active: true,
        secret: "a secret",
        settings: { ordered: true, ...settings },
      },
      NOW,
    );
    return { action, subscription: { handler }, id: subscription.rowid };
  }

  async function claimed(nowMs = NOW + 60_000, most = 1): Promise<Claim[]> {
    return [...(await on.claim({ nowMs, most })).claims];
  }

  async function claimOne(nowMs?: number): Promise<Claim> {
    const [claim] = await claimed(nowMs);
    if (claim === undefined) throw new Error("one was to be claimed");
    return claim;
  }

  /** Fails an attempt whose handler asks for no other one before that time. */
  function fail(claim: Claim, atMs: number, nowMs = NOW + 61_000): Promise<unknown> {
    const result = resultOf(claim, "failed", { statusCode: 500, retryAfterMs: atMs - nowMs });
    return on.store.queue.finish([result], nowMs);
  }

  /** Takes all there is, one after the other, each delivered. */
  async function drain(nowMs = NOW + 60_000): Promise<number[]> {
    const events: number[] = [];
    for (let [claim] = await claimed(nowMs); claim !== undefined; [claim] = await claimed(nowMs)) {
      events.push(claim.event.eventId);
      await on.finish(claim, "delivered", { statusCode: 200 });
    }
    return events;
  }

  it("report what delays a delivery that a person retried", async () => {
    const { action } = await ordered({ on_exhausted: "block" }, 0);
    await on.publish(action, 2);
    const [second, first] = await on.store.queue.list({ limit: 10 });
    const ask = (): Promise<unknown> => on.store.queue.retry(second!.rowid, NOW);
    await expect(ask()).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining(`is ordered, and delivery ${first!.rowid} goes before it.`) as string,
    });
    await fail(await claimOne(), NOW + HOUR_MS);
    expect(await agreedBacklog(on.store.queue, NOW + 1)).toMatchObject({
      waiting: { deliveries: 1 },
      blocked: { deliveries: 1, sinceMs: NOW },
    });
    await expect(ask()).rejects.toMatchObject({
      message: expect.stringContaining(
        `is ordered, and delivery ${first!.rowid} has failed so far and goes before it.`,
      ) as string,
    });
    // The one in front can be asked for, and what it kept is then on its way.
    await on.store.queue.retry(first!.rowid, NOW);
    await on.finish(await claimOne(), "delivered");
    await expect(ask()).rejects.toMatchObject({
      message: expect.stringContaining("it is on its way already") as string,
    });
  });

  it("are claimed in the order of publication, and not while one of them is leased", async () => {
    const { action } = await ordered();
    const events = await on.publish(action, 5);
    const claims = await claimed(NOW + 60_000, 3);
    expect(eventsOf(claims)).toEqual(events.slice(0, 3));
    for (const claim of claims) {
      expect(await claimed(NOW + 60_000, 3)).toEqual([]);
      await on.finish(claim, "delivered");
    }
    expect(await drain()).toEqual(events.slice(3));
  });

  it("keep the order whatever the clock did, and are due in 1970 too", async () => {
    const { action } = await ordered();
    const events: number[] = [];
    for (const nowMs of [NOW, NOW - HOUR_MS, NOW - DAY_MS, NOW + DAY_MS, NOW]) {
      events.push(...(await on.publish(action, 2, nowMs)));
    }
    expect(eventsOf(await claimed(0, 1))).toEqual([events[0]]);
    await on.store.queue.releaseExpired(NOW + DAY_MS);
    expect(await drain(NOW - DAY_MS)).toEqual(events);
  });

  it("wait for the retry of their first delivery, which then goes first", async () => {
    const { action, id } = await ordered();
    const events = await on.publish(action, 3);
    const atMs = NOW + HOUR_MS;
    await fail(await claimOne(), atMs);
    expect(await on.claim({ nowMs: atMs - 1 })).toEqual({ claims: [], nextDueAtMs: atMs, limitedTiers: [] });
    expect(await on.store.catalog.findSubscription(id)).toMatchObject({
      slowed_until: new Date(atMs).toISOString(),
    });
    const [last, , first] = await on.store.queue.list({ limit: 9 });
    expect(first).toMatchObject({ status: "waiting", next_attempt_at: new Date(atMs).toISOString() });
    expect(last).toMatchObject({ status: "pending", next_attempt_at: new Date(atMs).toISOString() });
    expect(await drain(atMs)).toEqual(events);
    expect(await on.store.catalog.findSubscription(id)).toMatchObject({ slowed_until: null });
  });

  it("wait as long as the schedule says, also for days", async () => {
    const { action } = await ordered({ retry_schedule: [7 * DAY_MS] });
    await on.publish(action, 2);
    await on.finish(await claimOne(), "failed", { statusCode: 500 });
    const retryAtMs = NOW + 61_000 + 7 * DAY_MS;
    expect(await claimed(retryAtMs - 1)).toEqual([]);
    expect(await claimed(retryAtMs)).toHaveLength(1);
  });

  it.each([
    ["interrupted", "interrupted"],
    ["never started", "never started"],
  ] as const)("keep the place of one that was %s", async (_, ending) => {
    const { action } = await ordered();
    const events = await on.publish(action, 3);
    await on.finish(await claimOne(), ending);
    expect(await drain()).toEqual(events);
  });

  it("keep the place of what a dead worker had leased", async () => {
    const { action } = await ordered();
    const events = await on.publish(action, 4);
    await on.finish(await claimOne(), "delivered");
    const lost = await claimed(NOW + 60_000, 2);
    expect(await claimed(NOW + 89_999)).toEqual([]);
    expect(await on.store.queue.releaseExpired(NOW + 90_000)).toBe(2);
    // The late word of one that lost its lease moves nothing.
    expect(await on.finish(lost[0]!, "delivered")).toBe(false);
    expect(await drain(NOW + 90_000)).toEqual(events.slice(1));
  });

  it("keep trying a delivery that used up its retries, and block those after it", async () => {
    const { action } = await ordered({ on_exhausted: "block", retry_schedule: [0] }, 0);
    const events = await on.publish(action, 2);
    for (const failures of [0, 1, 2]) {
      const claim = await claimOne();
      expect([claim.event.eventId, claim.failures]).toEqual([events[0], failures]);
      await on.finish(claim, "failed", { statusCode: 500 });
    }
    expect(await drain()).toEqual(events);
  });

  it("with skip, continue after one that used up its retries", async () => {
    const { action, id } = await ordered({ on_exhausted: "skip" }, 1);
    const events = await on.publish(action, 3);
    await fail(await claimOne(), NOW + 60_000);
    const again = await claimOne();
    expect([again.event.eventId, again.failures]).toEqual([events[0], 1]);
    await fail(again, NOW + HOUR_MS);
    expect(await on.store.queue.find(again.deliveryId)).toMatchObject({
      status: "failed",
      last_error: "HTTP 500",
      finished_at: new Date(NOW + 61_000).toISOString(),
    });
    expect((await on.store.catalog.findSubscription(id))?.slowed_until).not.toBe(
      new Date(NOW + HOUR_MS).toISOString(),
    );
    expect(await drain()).toEqual(events.slice(1));
  });

  it("continue after what blocks them when they are changed to skip", async () => {
    const { action, id } = await ordered({}, 0);
    const events = await on.publish(action, 3);
    const first = await claimOne();
    await fail(first, NOW + HOUR_MS);
    const { on_exhausted } = (await on.store.catalog.updateSubscription(
      id,
      { settings: { on_exhausted: "skip" } },
      NOW + 62_000,
    ))!;
    expect(on_exhausted).toBe("skip");
    expect(await on.store.queue.find(first.deliveryId)).toMatchObject({ status: "failed" });
    expect(await drain()).toEqual(events.slice(1));
  });

  it("continue after one without retries left when they get fewer retries and skip", async () => {
    const { action, id } = await ordered({ on_exhausted: "skip" }, 5);
    const events = await on.publish(action, 3);
    const first = await claimOne();
    await fail(first, NOW + 60_000);
    await fail(await claimOne(), NOW + HOUR_MS);
    await on.store.catalog.updateSubscription(id, { maxRetries: 2 }, NOW + 62_000);
    expect(await claimed(NOW + HOUR_MS - 1)).toEqual([]);
    await on.store.catalog.updateSubscription(id, { maxRetries: 1 }, NOW + 63_000);
    expect(await on.store.queue.find(first.deliveryId)).toMatchObject({
      status: "failed",
      finished_at: new Date(NOW + 63_000).toISOString(),
    });
    expect(await drain()).toEqual(events.slice(1));
  });

  it("keep trying what blocks them, however few retries they are given", async () => {
    const { action, id } = await ordered({}, 5);
    const [first] = await on.publish(action, 2);
    await fail(await claimOne(), NOW + HOUR_MS);
    await on.store.catalog.updateSubscription(id, { maxRetries: 0 }, NOW + 62_000);
    expect(await claimed(NOW + HOUR_MS - 1)).toEqual([]);
    expect(eventsOf(await claimed(NOW + HOUR_MS))).toEqual([first]);
  });

  it.each([
    ["waits for the retry of one that ended before it became ordered", false, NOW + HOUR_MS],
    ["waits for none that ended while it was ordered still", true, undefined],
  ] as const)("%s", async (_, isOrdered, waitsUntilMs) => {
    const action = await on.action();
    const { rowid: id } = await on.subscription(action, { settings: { ordered: isOrdered } });
    const [first] = await on.publish(action, 2);
    const claim = await claimOne();
    await on.store.catalog.updateSubscription(id, { settings: { ordered: !isOrdered } }, NOW + 60_500);
    await fail(claim, NOW + HOUR_MS);
    const untilMs = waitsUntilMs === undefined ? null : new Date(waitsUntilMs).toISOString();
    expect(await on.store.catalog.findSubscription(id)).toMatchObject({ slowed_until: untilMs });
    expect(eventsOf(await claimed())).toEqual(waitsUntilMs === undefined ? [first! + 1] : []);
    if (waitsUntilMs !== undefined) expect(eventsOf(await claimed(waitsUntilMs))).toEqual([first]);
  });

  it("block for one that had no retries left before they became ordered", async () => {
    const action = await on.action();
    const { rowid: id } = await on.subscription(action, { maxRetries: 0 });
    const [first] = await on.publish(action, 2);
    const claim = await claimOne();
    await on.store.catalog.updateSubscription(id, { settings: { ordered: true } }, NOW + 60_500);
    await on.fail(claim, NOW + HOUR_MS, { statusCode: 500 });
    expect(await on.store.catalog.findSubscription(id)).toMatchObject({ blocked_by: claim.deliveryId });
    expect(await claimed(NOW + HOUR_MS - 1)).toEqual([]);
    expect(eventsOf(await claimed(NOW + HOUR_MS))).toEqual([first]);
  });

  it("report what blocks them: the first delivery, from its last retry until it is accepted, gets more, or is skipped", async () => {
    const { action, id } = await ordered({}, 1);
    await on.publish(action, 2);
    const blockedBy = async () => (await on.store.catalog.findSubscription(id))?.blocked_by;
    const first = await claimOne();
    await fail(first, NOW + 60_000);
    expect(await blockedBy()).toBeNull();
    await fail(await claimOne(), NOW + HOUR_MS);
    expect(await blockedBy()).toBe(first.deliveryId);
    expect(await on.store.catalog.listSubscriptions({})).toMatchObject([{ blocked_by: first.deliveryId }]);
    const update = (maxRetries: number) =>
      on.store.catalog.updateSubscription(id, { maxRetries }, NOW + 62_000);
    expect(await update(2)).toMatchObject({ blocked_by: null });
    expect(await update(1)).toMatchObject({ blocked_by: first.deliveryId });
    await on.finish(await claimOne(NOW + HOUR_MS), "delivered");
    expect(await blockedBy()).toBeNull();
  });

  it("continue at once after one that a person skips, and after no other", async () => {
    const { action, id } = await ordered({}, 0);
    const events = await on.publish(action, 3);
    const first = await claimOne();
    await fail(first, NOW + HOUR_MS);
    const [third, second] = await on.store.queue.list({ limit: 2 });
    const skip = (delivery: number) => on.store.queue.skip(delivery, NOW + 62_000);
    for (const { rowid } of [second!, third!]) {
      await expect(skip(rowid)).rejects.toMatchObject({
        code: "conflict",
        message: expect.stringContaining("no attempt of it has failed so far") as string,
      });
    }
    expect(await claimed()).toEqual([]);
    expect(await skip(first.deliveryId)).toMatchObject({
      status: "failed",
      attempt: 1,
      last_error: "HTTP 500",
      next_attempt_at: null,
      finished_at: new Date(NOW + 62_000).toISOString(),
    });
    expect(await on.store.catalog.findSubscription(id)).toMatchObject({
      blocked_by: null,
      slowed_until: null,
    });
    await expect(skip(first.deliveryId)).rejects.toMatchObject({ code: "conflict" });
    expect(await drain()).toEqual(events.slice(1));
    expect(await skip(99)).toBeUndefined();
  });

  it("keep waiting for the first when another is skipped", async () => {
    const { action, id } = await ordered({ on_exhausted: "skip" }, 0);
    await on.publish(action, 2);
    const first = await claimOne();
    await on.finish(first, "failed", { statusCode: 500 });
    await on.store.catalog.updateSubscription(id, { maxRetries: 5 }, NOW + 61_000);
    await fail(await claimOne(), NOW + HOUR_MS);
    await on.store.queue.retry(first.deliveryId, NOW + 62_000);
    await on.store.queue.skip(first.deliveryId, NOW + 63_000);
    expect(await claimed(NOW + HOUR_MS - 1)).toEqual([]);
    expect(await claimed(NOW + HOUR_MS)).toHaveLength(1);
  });

  it("stop waiting when they are no longer ordered", async () => {
    const { action, id } = await ordered();
    const events = await on.publish(action, 3);
    await fail(await claimOne(), NOW + HOUR_MS);
    const patch = { settings: { ordered: false } };
    expect(await on.store.catalog.updateSubscription(id, patch, NOW + 62_000)).toMatchObject({
      slowed_until: null,
    });
    expect(new Set(eventsOf(await claimed(NOW + 62_000, 9)))).toEqual(new Set(events));
  });

  it("keep waiting for one with retries left when they are changed to skip", async () => {
    const { action, id } = await ordered({}, 1);
    const events = await on.publish(action, 2);
    await fail(await claimOne(), NOW + HOUR_MS);
    await on.store.catalog.updateSubscription(id, { settings: { on_exhausted: "skip" } }, NOW + 62_000);
    expect(await claimed(NOW + HOUR_MS - 1)).toEqual([]);
    expect(await drain(NOW + HOUR_MS)).toEqual(events);
  });

  it.each([
    ["block", ["held", "held"]],
    ["skip", ["failed", "held"]],
  ] as const)(
    "are deactivated when the handler is gone, and one to %s keeps its place",
    async (how, statuses) => {
      const { action, id } = await ordered({ on_exhausted: how });
      const events = await on.publish(action, 2);
      await on.finish(await claimOne(), "gone", { statusCode: 410 });
      expect(await on.store.catalog.findSubscription(id)).toMatchObject({
        active: false,
        disabled_reason: "The handler answered 410 Gone.",
      });
      const listed = await on.store.queue.list({ limit: 9 });
      expect(listed.map(({ status }) => status).toReversed()).toEqual(statuses);
      await on.store.catalog.updateSubscription(id, { active: true }, NOW + 62_000);
      expect(await drain()).toEqual(how === "block" ? events : events.slice(1));
    },
  );

  it("continue in place when another handler was set before the former one was gone", async () => {
    const { action, id } = await ordered({ on_exhausted: "skip" });
    const events = await on.publish(action, 2);
    const claim = await claimOne();
    await on.store.catalog.updateSubscription(id, { handler: "https://moved.example/" }, NOW + 60_500);
    await on.finish(claim, "gone", { statusCode: 410 });
    expect(await drain()).toEqual(events);
  });

  it("send what a person retries first, and in its place again when that fails", async () => {
    const { action } = await ordered({ on_exhausted: "skip" }, 0);
    const events = await on.publish(action, 4);
    const first = await claimOne();
    await on.finish(first, "delivered");
    const second = await claimOne();
    await on.finish(second, "failed", { statusCode: 500 });
    await fail(await claimOne(), NOW + HOUR_MS);
    await on.store.catalog.updateSubscription(
      first.subscription.subscriptionId,
      { maxRetries: 5 },
      NOW + 61_000,
    );
    await on.store.queue.retry(second.deliveryId, NOW + 62_000);
    await on.store.queue.retry(first.deliveryId, NOW + 63_000);
    // In the order in which they were asked for.
    const asked = await claimOne();
    expect(asked.event.eventId).toBe(events[1]);
    await fail(asked, NOW + 64_000);
    expect(await drain(NOW + 64_000)).toEqual([events[0], events[1], events[3]]);
  });

  it("continue at once when a person retries the first one with success", async () => {
    const { action } = await ordered();
    const events = await on.publish(action, 2);
    const first = await claimOne();
    await fail(first, NOW + 6 * HOUR_MS);
    await on.store.queue.retry(first.deliveryId, NOW + 62_000);
    expect(await drain()).toEqual(events);
  });

  it("put replayed deliveries in their places, at most as many as may be due", async () => {
    const action = await on.action();
    const missed = await on.publish(action, 2);
    const subscription = await on.subscription(action);
    const id = subscription.rowid;
    await on.store.catalog.updateSubscription(id, { settings: { ordered: true } }, NOW);
    const live = await on.publish(action, 3, NOW + 1_000);
    await on.finish(await claimOne(), "delivered");
    const plan = await on.store.replays.plan({ subscription: id, selection: "all", fromMs: NOW - DAY_MS });
    const { rowid } = (await on.store.replays.start(plan!, NOW + 2_000))!;
    const step = { nowMs: NOW + 2_000, maxQueued: 100, maxDue: 100, maxUnfinished: 1_000 };
    // Two are due.
    expect(await on.store.replays.advance(rowid, { ...step, maxDue: 3 })).toMatchObject({
      state: "saturated",
    });
    expect(await on.store.replays.advance(rowid, { ...step, maxDue: 4 })).toMatchObject({ queued: 2 });
    expect(await on.store.replays.advance(rowid, step)).toMatchObject({ queued: 1 });
    expect(await drain()).toEqual([...missed, ...live]);
  });

  it("are claimed in rotation, each by its first", async () => {
    const { action } = await ordered();
    const other = await on.action("other");
    await on.subscription(other, { subscription: "plain" });
    const events = await on.publish(action, 3);
    const plain = await on.publish(other, 3, NOW + 10);
    const { claims } = await on.claim({ most: 2, limit: 3 });
    expect(eventsOf(claims)).toEqual([events[0], plain[0], events[1]]);
  });

  it("continue after a pause, and count what is held", async () => {
    const { action, id } = await ordered();
    const events = await on.publish(action, 3);
    await fail(await claimOne(), NOW + HOUR_MS);
    await on.store.catalog.updateSubscription(id, { active: false }, NOW + 62_000);
    expect(await claimed(NOW + DAY_MS)).toEqual([]);
    expect(await agreedBacklog(on.store.queue, NOW + DAY_MS)).toMatchObject({
      held: { deliveries: 3, sinceMs: NOW },
    });
    await on.store.catalog.updateSubscription(id, { active: true }, NOW + 63_000);
    expect(await drain()).toEqual(events);
  });

  it("keep the order over several actions", async () => {
    const { action, id } = await ordered();
    const other = await on.action("other");
    const before = await on.publish(action, 2);
    await on.store.catalog.updateSubscription(id, { action: "other" }, NOW);
    const after = await on.publish(other, 2);
    expect(await drain()).toEqual([...before, ...after]);
  });

  it("order what waits when they become ordered, and have it due when they no longer are", async () => {
    const action = await on.action();
    const { rowid: id } = await on.subscription(action);
    const events = await on.publish(action, 4);
    const [first, second] = await claimed(NOW + 60_000, 2);
    await on.fail(first!, NOW + HOUR_MS);
    await on.store.catalog.updateSubscription(id, { settings: { ordered: true } }, NOW + 61_000);
    // One is under way still.
    expect(await claimed()).toEqual([]);
    await on.finish(second!, "failed");
    expect(eventsOf(await claimed())).toEqual([events[0]]);
    await on.store.catalog.updateSubscription(id, { settings: { ordered: false } }, NOW + 61_000);
    const { claims } = await on.claim({ most: 9 });
    expect(eventsOf(claims)).toEqual(events.slice(1));
    for (const claim of claims) await on.fail(claim, NOW + 2 * HOUR_MS);
    const { data } = { data: await on.store.queue.list({ status: "waiting", limit: 9 }) };
    expect(data.map(({ next_attempt_at }) => next_attempt_at)).toEqual(
      events.slice(1).map(() => new Date(NOW + 2 * HOUR_MS).toISOString()),
    );
  });

  it("cannot become ordered with more waiting deliveries than can be ordered at once", async () => {
    const action = await on.action();
    const { rowid: id } = await on.subscription(action);
    const batch = Array.from({ length: 1_000 }, () => eventOf(action));
    for (let round = 0; round < 10; round += 1) await on.store.events.record(batch, NOW);
    await on.store.catalog.updateSubscription(id, { settings: { ordered: true } }, NOW);
    await on.store.catalog.updateSubscription(id, { settings: { ordered: false } }, NOW);
    await on.publish(action);
    const refused = on.store.catalog.updateSubscription(id, { settings: { ordered: true } }, NOW);
    await expect(refused).rejects.toThrow(EvregError);
    await expect(refused).rejects.toMatchObject({ code: "conflict", details: { field: "ordered" } });
    expect(await on.store.catalog.findSubscription(id)).toMatchObject({ ordered: false });
  });
}
