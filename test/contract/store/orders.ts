import { describe, expect, it } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { Order, SubscriptionSettings } from "../../../src/domain/subscription-settings.ts";
import type { SubscriptionPatch } from "../../../src/store/catalog.ts";
import type { AttemptEnding, Claim } from "../../../src/store/queue.ts";
import { agreedBacklog } from "./agreed-backlog.ts";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid, resultOf } from "./fixture.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** When attempts have ended, and what waited behind them is due. */
const AFTER = NOW + 64_000;
const BY_KEY = { key: "/k" } as const;

function eventsOf(claims: readonly Claim[]): number[] {
  return claims.map(({ event }) => event.eventId);
}

/** Subscriptions that get one delivery at a time, in the order of publication: of all events, or of those with the same key. */
export function orderSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  // That is an order by one key that all events have, so what holds for it holds for each key.
  describe("ordered as a whole", () => wholeOrderSuite(on));
  describe("ordered by several keys", () => keyOrderSuite(on));
}

/** What the suites do with subscriptions in an order. */
function actsOn(on: Fixture, order: Order) {
  /** A subscription in this order, and so many of its deliveries. */
  const ordered = (count = 0, settings: Partial<SubscriptionSettings> = {}, maxRetries = 1) =>
    on.due(count, { maxRetries, settings: { ordered: order, ...settings } });

  async function claimed(nowMs = AFTER): Promise<readonly Claim[]> {
    return (await on.claim({ nowMs })).claims.toSorted((a, b) => a.event.eventId - b.event.eventId);
  }

  async function claimOne(nowMs?: number): Promise<Claim> {
    const [claim] = await claimed(nowMs);
    if (claim === undefined) throw new Error("one was to be claimed");
    return claim;
  }

  const deliver = (claim: Claim): Promise<boolean> => on.finish(claim, "delivered", { statusCode: 200 });

  /** Takes all there is, one after the other, each delivered. */
  async function drain(nowMs = AFTER): Promise<number[]> {
    const events: number[] = [];
    for (;;) {
      const claims = await claimed(nowMs);
      if (claims.length === 0) return events;
      expect(claims).toHaveLength(1);
      events.push(...eventsOf(claims));
      await deliver(claims[0]!);
    }
  }

  /** Fails an attempt whose handler asks for no other one before that time. */
  const fail = (claim: Claim, atMs: number): Promise<boolean> => on.fail(claim, atMs, { statusCode: 500 });

  const find = (id: number) => on.store.catalog.findSubscription(id);
  const change = (id: number, patch: SubscriptionPatch, nowMs = NOW) =>
    on.store.catalog.updateSubscription(id, patch, nowMs);
  const set = (id: number, settings: Partial<SubscriptionSettings>, nowMs?: number) =>
    change(id, { settings }, nowMs);

  return { ordered, claimed, claimOne, deliver, drain, fail, find, change, set };
}

function wholeOrderSuite(on: Fixture): void {
  const { ordered, claimed, claimOne, deliver, drain, fail, find, change, set } = actsOn(on, true);

  it("report what delays a delivery that a person retried", async () => {
    await ordered(2, { on_exhausted: "block" }, 0);
    const [second, first] = await on.store.queue.list({ limit: 10 });
    const ask = (): Promise<unknown> => on.store.queue.retry(second!.rowid, NOW);
    await expect(ask()).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("is ordered, and another delivery goes before it") as string,
    });
    await fail(await claimOne(), NOW + HOUR_MS);
    expect(await agreedBacklog(on.store.queue, NOW + 1)).toMatchObject({
      waiting: { deliveries: 1 },
      blocked: { deliveries: 1, sinceMs: NOW },
    });
    // The one in front can be asked for, and what it kept is then on its way.
    await on.store.queue.retry(first!.rowid, NOW);
    await on.finish(await claimOne(), "delivered");
    await expect(ask()).rejects.toThrow("it is on its way already");
  });

  it("are claimed in the order of publication, and not while one of them is leased", async () => {
    const { events } = await ordered(5);
    const claims = await claimed();
    expect(eventsOf(claims)).toEqual([events[0]]);
    expect(await claimed()).toEqual([]);
    expect(await on.store.queue.finish([resultOf(claims[0]!, "delivered")], AFTER)).toEqual([
      { kind: "stored", state: "delivered", isNextDue: true },
    ]);
    expect(await drain()).toEqual(events.slice(1));
  });

  it("lease the next one with a result that asks for it, and no more than that", async () => {
    const { events } = await ordered(3);
    const [first, second, third] = events;
    const finish = async (claim: Claim, wanted: object = {}) =>
      (await on.store.queue.finish([resultOf(claim, "delivered", wanted)], AFTER))[0];
    const claim = await claimOne();
    expect(claim.event.eventId).toBe(first);
    const outcome = await finish(claim, { nextLeaseMs: 1_000 });
    if (outcome?.kind !== "stored" || outcome.next === undefined)
      throw new Error("the next was to be leased");
    const { next } = outcome;
    expect(outcome).toEqual({ kind: "stored", state: "delivered", next });
    expect(next).toMatchObject({ attempt: 1, subscription: claim.subscription });
    expect([next.event.eventId, Buffer.from(next.event.payload!).toString()]).toEqual([second, '{"n":1}']);
    expect(await claimed(AFTER + 999)).toEqual([]);
    expect(await finish(next)).toEqual({ kind: "stored", state: "delivered", isNextDue: true });
    expect(await drain()).toEqual([third]);
  });

  it("lease no next one of a paused subscription, or where it is not due yet", async () => {
    const { id } = await ordered(3);
    const next = async (claim: Claim, ending: AttemptEnding, wanted: object = {}) => {
      const result = resultOf(claim, ending, { ...wanted, nextLeaseMs: 1_000 });
      const [outcome] = await on.store.queue.finish([result], AFTER);
      return outcome?.kind === "stored" ? outcome.next : undefined;
    };
    const first = await claimOne();
    await change(id, { active: false }, AFTER);
    expect(await next(first, "delivered")).toBeUndefined();
    await change(id, { active: true }, AFTER);
    const second = await claimOne();
    expect(await next(second, "failed", { retryAfterMs: 5_000 })).toBeUndefined();
    const again = await claimOne(AFTER + 5_000);
    expect(await next(again, "delivered")).toMatchObject({ attempt: 1 });
  });

  it("keep the order whatever the clock did", async () => {
    const { action } = await ordered();
    const events: number[] = [];
    for (const nowMs of [NOW, NOW - HOUR_MS, NOW - DAY_MS, NOW + DAY_MS, NOW]) {
      events.push(...(await on.publish(action, 2, nowMs)));
    }
    expect(await drain()).toEqual(events);
  });

  it("wait for the retry of their first delivery, which then goes first", async () => {
    const { events } = await ordered(3);
    const atMs = NOW + HOUR_MS;
    await fail(await claimOne(), atMs);
    expect(await on.claim({ nowMs: atMs - 1 })).toEqual({
      claims: [],
      nextDueAtMs: atMs,
      limitedTiers: [],
    });
    const [last, , first] = await on.store.queue.list({ limit: 9 });
    expect(first).toMatchObject({ status: "waiting", next_attempt_at: new Date(atMs).toISOString() });
    expect(last).toMatchObject({ status: "pending", next_attempt_at: null });
    expect(await drain(atMs)).toEqual(events);
  });

  it.each([
    ["interrupted", "interrupted"],
    ["never started", "never started"],
  ] as const)("keep the place of one that was %s", async (_, ending) => {
    const { events } = await ordered(3);
    await on.finish(await claimOne(), ending);
    expect(await drain()).toEqual(events);
  });

  it("keep the place of what a dead worker had leased", async () => {
    const { events } = await ordered(4);
    await on.finish(await claimOne(), "delivered");
    const lost = await claimed();
    expect(await claimed(AFTER + 29_999)).toEqual([]);
    expect(await on.store.queue.releaseExpired(AFTER + 30_000)).toBe(1);
    // The late word of one that lost its lease moves nothing.
    expect(await on.finish(lost[0]!, "delivered")).toBe(false);
    expect(await drain(AFTER + 30_000)).toEqual(events.slice(1));
  });

  it("keep trying a delivery that used up its retries, and block those after it", async () => {
    const { events } = await ordered(2, { on_exhausted: "block", retry_schedule: [0] }, 0);
    for (const failures of [0, 1, 2]) {
      const claim = await claimOne();
      expect([claim.event.eventId, claim.failures]).toEqual([events[0], failures]);
      await on.finish(claim, "failed", { statusCode: 500 });
    }
    expect(await drain()).toEqual(events);
  });

  it("with skip, continue after one that used up its retries", async () => {
    const { events } = await ordered(3, { on_exhausted: "skip" }, 1);
    await fail(await claimOne(), NOW + 60_000);
    const again = await claimOne();
    expect([again.event.eventId, again.failures]).toEqual([events[0], 1]);
    await fail(again, NOW + HOUR_MS);
    expect(await on.store.queue.find(again.deliveryId)).toMatchObject({
      status: "failed",
      last_error: "HTTP 500",
      finished_at: new Date(NOW + 61_000).toISOString(),
    });
    expect(await drain()).toEqual(events.slice(1));
  });

  const SKIP = { on_exhausted: "skip" } as const;

  it.each<[string, Partial<SubscriptionSettings>, number, SubscriptionPatch, boolean]>([
    ["continue after what blocks them when they are changed to skip", {}, 0, { settings: SKIP }, true],
    ["wait for one with retries left when they are changed to skip", {}, 1, { settings: SKIP }, false],
    [
      "continue after one without retries left when they get fewer and skip",
      SKIP,
      5,
      { maxRetries: 0 },
      true,
    ],
    ["wait for one that still has retries when they get fewer and skip", SKIP, 5, { maxRetries: 1 }, false],
    ["keep trying what blocks them, however few retries they are given", {}, 5, { maxRetries: 0 }, false],
  ])("%s", async (_, settings, maxRetries, patch, isSkipped) => {
    const { id, events } = await ordered(3, settings, maxRetries);
    const first = await claimOne();
    await fail(first, NOW + HOUR_MS);
    await change(id, patch, NOW + 62_000);
    const finished_at = isSkipped ? new Date(NOW + 62_000).toISOString() : null;
    expect(await on.store.queue.find(first.deliveryId)).toMatchObject({ finished_at });
    if (!isSkipped) expect(await claimed(NOW + HOUR_MS - 1)).toEqual([]);
    expect(await drain(isSkipped ? AFTER : NOW + HOUR_MS)).toEqual(isSkipped ? events.slice(1) : events);
  });

  it("report what blocks them: the first delivery, from its last retry until it is accepted, gets more, or is skipped", async () => {
    const { id } = await ordered(2, {}, 1);
    const blockedBy = async () => (await find(id))?.blocked_by;
    const first = await claimOne();
    await fail(first, NOW + 60_000);
    expect(await blockedBy()).toBeNull();
    await fail(await claimOne(), NOW + HOUR_MS);
    expect(await blockedBy()).toBe(first.deliveryId);
    expect(await on.store.catalog.listSubscriptions({})).toMatchObject([{ blocked_by: first.deliveryId }]);
    const update = (maxRetries: number) => change(id, { maxRetries }, NOW + 62_000);
    expect(await update(2)).toMatchObject({ blocked_by: null });
    expect(await update(1)).toMatchObject({ blocked_by: first.deliveryId });
    await on.finish(await claimOne(NOW + HOUR_MS), "delivered");
    expect(await blockedBy()).toBeNull();
  });

  it("continue at once after one that a person skips, and after no other", async () => {
    const { id, events } = await ordered(3, {}, 0);
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
    expect(await find(id)).toMatchObject({ blocked_by: null, slowed_until: null });
    await expect(skip(first.deliveryId)).rejects.toMatchObject({ code: "conflict" });
    expect(await drain()).toEqual(events.slice(1));
    expect(await skip(99)).toBeUndefined();
  });

  it.each([
    ["block", ["held", "held"]],
    ["skip", ["failed", "held"]],
  ] as const)(
    "are deactivated when the handler is gone, and one to %s keeps its place",
    async (how, statuses) => {
      const { action, id } = await ordered(0, { on_exhausted: how });
      const events = await on.publish(action, 2);
      await on.finish(await claimOne(), "gone", { statusCode: 410 });
      expect(await find(id)).toMatchObject({
        active: false,
        disabled_reason: "The handler answered 410 Gone.",
      });
      const listed = await on.store.queue.list({ limit: 9 });
      expect(listed.map(({ status }) => status).toReversed()).toEqual(statuses);
      await change(id, { active: true }, NOW + 62_000);
      expect(await drain()).toEqual(how === "block" ? events : events.slice(1));
    },
  );

  it("continue in place when another handler was set before the former one was gone", async () => {
    const { id, events } = await ordered(2, { on_exhausted: "skip" });
    const claim = await claimOne();
    await change(id, { handler: "https://moved.example/" }, NOW + 60_500);
    await on.finish(claim, "gone", { statusCode: 410 });
    expect(await drain()).toEqual(events);
  });

  it("send what a person retries first, and in its place again when that fails", async () => {
    const { events } = await ordered(4, { on_exhausted: "skip" }, 0);
    const first = await claimOne();
    await on.finish(first, "delivered");
    const second = await claimOne();
    await on.finish(second, "failed", { statusCode: 500 });
    await fail(await claimOne(), NOW + HOUR_MS);
    await change(first.subscription.subscriptionId, { maxRetries: 5 }, NOW + 61_000);
    await on.store.queue.retry(second.deliveryId, NOW + 62_000);
    await on.store.queue.retry(first.deliveryId, NOW + 63_000);
    const asked = await claimOne();
    expect(asked.event.eventId).toBe(events[0]);
    expect(await claimed()).toEqual([]);
    await fail(asked, NOW + 64_000);
    const [next] = await claimed();
    expect(next!.event.eventId).toBe(events[1]);
    await on.finish(next!, "delivered");
    expect(await drain()).toEqual([events[0], events[3]]);
  });

  it("continue at once when a person retries the first one with success", async () => {
    const { events } = await ordered(2);
    const first = await claimOne();
    await fail(first, NOW + 6 * HOUR_MS);
    await on.store.queue.retry(first.deliveryId, NOW + 62_000);
    expect(await drain()).toEqual(events);
  });

  it("put replayed deliveries in their places, at most as many as may be unfinished", async () => {
    const action = await on.action();
    const missed = await on.publish(action, 2);
    const subscription = await on.subscription(action);
    const id = subscription.rowid;
    await set(id, { ordered: true });
    const live = await on.publish(action, 3, NOW + 1_000);
    await on.finish(await claimOne(), "delivered");
    const plan = await on.store.replays.plan({ subscription: id, selection: "all", fromMs: NOW - DAY_MS });
    const { rowid } = (await on.store.replays.start(plan!, NOW + 2_000))!;
    const step = { nowMs: NOW + 2_000, maxQueued: 100, maxDue: 100, maxUnfinished: 1_000 };
    // Two are unfinished.
    expect(await on.store.replays.advance(rowid, { ...step, maxUnfinished: 2 })).toMatchObject({
      state: "saturated",
    });
    expect(await on.store.replays.advance(rowid, { ...step, maxUnfinished: 4 })).toMatchObject({ queued: 2 });
    expect(await on.store.replays.advance(rowid, step)).toMatchObject({ queued: 1 });
    expect(await drain()).toEqual([...missed, ...live]);
  });

  it("are claimed in rotation with others, by their first", async () => {
    const { action } = await ordered();
    const other = await on.action("other");
    await on.subscription(other, { subscription: "plain" });
    const events = await on.publish(action, 3);
    const plain = await on.publish(other, 3, NOW + 10);
    const { claims } = await on.claim({ most: 2, limit: 3 });
    expect(eventsOf(claims)).toEqual([events[0], plain[0], plain[1]]);
  });

  it("continue after a pause, and count what is held", async () => {
    const { id, events } = await ordered(3);
    await fail(await claimOne(), NOW + HOUR_MS);
    await change(id, { active: false }, NOW + 62_000);
    expect(await claimed(NOW + DAY_MS)).toEqual([]);
    expect(await agreedBacklog(on.store.queue, NOW + DAY_MS)).toMatchObject({
      held: { deliveries: 3 },
    });
    await change(id, { active: true }, NOW + 63_000);
    expect(await drain(NOW + HOUR_MS)).toEqual(events);
  });

  it("keep the order over several actions", async () => {
    const { action, id } = await ordered();
    const other = await on.action("other");
    const before = await on.publish(action, 2);
    await change(id, { action: "other" });
    const after = await on.publish(other, 2);
    expect(await drain()).toEqual([...before, ...after]);
  });

  it("order what is published while they are ordered, and nothing else", async () => {
    const action = await on.action();
    const { rowid: id } = await on.subscription(action, { maxRetries: 0 });
    const before = await on.publish(action, 2);
    await set(id, { ordered: true });
    const [third, fourth] = await on.publish(action, 2);
    const [first, second, head] = await claimed();
    expect(eventsOf([first!, second!, head!])).toEqual([...before, third]);
    // What has no place in the order blocks nothing.
    await fail(first!, NOW + HOUR_MS);
    expect(await find(id)).toMatchObject({ blocked_by: null });
    await set(id, { ordered: false });
    const later = await on.publish(action, 2);
    expect(eventsOf(await claimed())).toEqual(later);
    await deliver(head!);
    expect(eventsOf(await claimed())).toEqual([fourth]);
  });

  it("continue after what blocks them when they are ordered no more", async () => {
    const { id, events } = await ordered(3, {}, 0);
    const first = await claimOne();
    await fail(first, NOW + HOUR_MS);
    await set(id, { ordered: false }, NOW + 62_000);
    expect(await on.store.queue.find(first.deliveryId)).toMatchObject({ status: "failed" });
    expect(await drain()).toEqual(events.slice(1));
  });
}

function nested(value: number): string {
  return `{"a":{"b":0},"a/b":["{\\"]",{ "y":[[]], "\\u007e" :{"z":"\\\\","x":${value}}}]}`;
}

function keyOrderSuite(on: Fixture): void {
  const { ordered: keyed, claimed, deliver, drain, fail, find, change, set } = actsOn(on, BY_KEY);

  /** Records an event for each key, a millisecond apart. */
  async function publish(action: Action, keys: readonly unknown[], nowMs = NOW): Promise<number[]> {
    const ids: number[] = [];
    for (const [index, key] of keys.entries()) {
      const payload = key === undefined ? "{}" : JSON.stringify({ k: key });
      const [outcome] = await on.store.events.record([eventOf(action, payload)], nowMs + index);
      ids.push(recordedRowid(outcome));
    }
    return ids;
  }

  async function deliveryOf(event: number): Promise<number> {
    return (await on.store.queue.list({ event, limit: 1 }))[0]!.rowid;
  }

  it("get the first of each key side by side, and the next when its result is stored", async () => {
    const { action } = await keyed();
    const [a, b, a2, c, a3] = await publish(action, ["a", "b", "a", "c", "a"]);
    const first = await claimed();
    expect(eventsOf(first)).toEqual([a, b, c]);
    expect(await claimed()).toEqual([]);
    const [outcome] = await on.store.queue.finish(
      [resultOf(first[0]!, "delivered", { statusCode: 200 })],
      NOW + 61_000,
    );
    expect(outcome).toEqual({ kind: "stored", state: "delivered", isNextDue: true });
    const second = await claimed();
    expect(eventsOf(second)).toEqual([a2]);
    expect(await on.store.queue.finish([resultOf(first[1]!, "delivered")], NOW + 61_000)).toEqual([
      { kind: "stored", state: "delivered" },
    ]);
    await deliver(second[0]!);
    expect(eventsOf(await claimed())).toEqual([a3]);
  });

  it("take equal values for one key, and what has none for another", async () => {
    const { action } = await keyed();
    const record = async (payload: string): Promise<number> =>
      recordedRowid((await on.store.events.record([eventOf(action, payload)], NOW))[0]);
    const groups = [
      ['{"k":1}', '{"k":1.0}', '{"k": 10e-1 }', '{"\\u006b":0.1E+1}'],
      ['{"k":"1"}', '{"a":[{"k":2}],"k":"\\u0031"}'],
      ['{"k":0}', '{"k":-0.0e7}'],
      // Past what a number can tell apart, they wait for each other.
      ['{"k":9007199254740993}', '{"k":9007199254740992}'],
      ['{"k":true}', '{"k" : true}'],
      ['{"k":null}', '{"k":null,"l":1}'],
      ["{}", '{"k":{"a":1}}', '{"k":[]}', '{"l":{"k":1}}'],
    ];
    const heads: number[] = [];
    const rest: number[][] = [];
    for (const group of groups) {
      const [head, ...others] = await Promise.all(group.map(record));
      heads.push(head!);
      rest.push(others);
    }
    const claims = await claimed();
    expect(eventsOf(claims)).toEqual(heads);
    for (const claim of claims) await deliver(claim);
    expect(eventsOf(await claimed())).toEqual(rest.flatMap(([next]) => next ?? []));
  });

  it("find the value at any depth, also where names have escapes and lists are in between", async () => {
    const { action, id } = await keyed(0, { ordered: { key: "/a~1b/1/~0/x" } });
    for (const value of [1, 2, 1]) await on.store.events.record([eventOf(action, nested(value))], NOW);
    expect(await claimed()).toHaveLength(2);
    expect(await on.store.queue.list({ subscription: id, key: "1", limit: 9 })).toHaveLength(2);
  });

  it("keep a failed one before the others of its key, and hold up no other key", async () => {
    const { action } = await keyed();
    const [a, b, , b2] = await publish(action, ["a", "b", "a", "b"]);
    const [first, second] = await claimed();
    await fail(first!, NOW + HOUR_MS);
    await deliver(second!);
    expect(eventsOf(await claimed())).toEqual([b2]);
    expect(second!.event.eventId).toBe(b);
    expect(eventsOf(await claimed(NOW + HOUR_MS))).toEqual([a]);
  });

  it("block a key whose delivery has used up its retries, and show how many are blocked", async () => {
    const { action, id } = await keyed(0, { on_exhausted: "block" }, 0);
    const [, , a2] = await publish(action, ["a", "b", "a", "b", "c"]);
    const [a, b, c] = await claimed();
    await fail(a!, NOW + HOUR_MS);
    await fail(b!, NOW + HOUR_MS);
    await deliver(c!);
    expect(await claimed()).toEqual([]);
    const found = await find(id);
    expect(found).toMatchObject({ blocked_by: a!.deliveryId, blocked_keys: 2, slowed_until: null });
    expect(await agreedBacklog(on.store.queue, NOW + 61_000)).toMatchObject({
      waiting: { deliveries: 2 },
      blocked: { deliveries: 2, sinceMs: NOW },
    });
    await on.store.queue.skip(a!.deliveryId, NOW + 61_000);
    expect(await find(id)).toMatchObject({ blocked_by: b!.deliveryId, blocked_keys: 1 });
    expect(eventsOf(await claimed())).toEqual([a2]);
  });

  it("put replayed events before later ones of their key, behind what a person requested", async () => {
    const { action, id } = await keyed(0, { on_exhausted: "skip" }, 0);
    await change(id, { active: false });
    const [a, b] = await publish(action, ["a", "b"]);
    await change(id, { active: true });
    const [sent, a2, a3] = await publish(action, ["a", "a", "a"], NOW + 10);
    await deliver((await claimed())[0]!);
    const [second] = await claimed();
    expect(second!.event.eventId).toBe(a2);
    const plan = await on.store.replays.plan({ subscription: id, selection: "missed", fromMs: NOW });
    const replay = (await on.store.replays.start(plan!, NOW + 100))!;
    const step = { nowMs: NOW + 100, maxQueued: 10, maxDue: 50, maxUnfinished: 100 };
    expect(await on.store.replays.advance(replay.rowid, step)).toEqual({ queued: 2, state: "running" });
    await on.store.queue.retry(await deliveryOf(sent!), NOW + 61_000);
    await deliver(second!);
    const claims = await claimed();
    expect(eventsOf(claims)).toEqual([b, sent]);
    for (const claim of claims) await deliver(claim);
    expect(await drain()).toEqual([a, a3]);
  });

  it("list, count and hold what waits behind others like all that waits", async () => {
    const { action, id } = await keyed();
    const [a, , a2] = await publish(action, ["a", "b", "a"]);
    await claimed();
    const { queue, catalog } = on.store;
    const listed = async (given: object): Promise<number[]> =>
      (await queue.list({ subscription: id, limit: 9, ...given })).map(({ event_id }) => event_id);
    expect(await listed({ status: "pending" })).toEqual([a2]);
    expect(await listed({ key: "a" })).toEqual([a2, a]);
    expect(await listed({ key: '"a"', status: "pending" })).toEqual([a2]);
    expect(await listed({ key: "c" })).toEqual([]);
    const backlog = await agreedBacklog(queue, NOW + 60_000);
    expect(backlog).toMatchObject({
      waiting: { deliveries: 1 },
      delivering: { deliveries: 2 },
      isWhole: true,
    });
    const behind = await queue.find(await deliveryOf(a2!));
    expect(behind).toMatchObject({ status: "pending", next_attempt_at: null });
    await expect(queue.retry(behind!.rowid, NOW)).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("another delivery goes before it") as string,
    });
    await catalog.updateSubscription(id, { active: false }, NOW);
    expect(await listed({ status: "held" })).toEqual([a2]);
    expect((await agreedBacklog(queue, NOW + 60_000)).held).toMatchObject({ deliveries: 1 });
    expect(await queue.countPending(id)).toBe(1);
    await catalog.deleteSubscription(id, NOW);
    expect(await listed({ status: "cancelled" })).toEqual([a2]);
  });

  it("keep the keys of what waits while they are ordered otherwise", async () => {
    const { action, id } = await keyed();
    const record = async (payload: object): Promise<number> =>
      recordedRowid((await on.store.events.record([eventOf(action, JSON.stringify(payload))], NOW))[0]);
    const first = await record({ k: "a", l: "x" });
    const second = await record({ k: "a", l: "y" });
    await set(id, { ordered: { key: "/l" } });
    const third = await record({ k: "a", l: "x" });
    const fourth = await record({ k: "b", l: "x" });
    const claims = await claimed();
    expect(eventsOf(claims)).toEqual([first, third]);
    for (const claim of claims) await deliver(claim);
    expect(eventsOf(await claimed())).toEqual([second, fourth]);
  });

  it("lease the first of a key as it is recorded, and nothing behind it", async () => {
    const { action, id } = await keyed();
    const record = async (key: string): Promise<number | undefined> => {
      const claim = { action: action.action, subscriptions: [id], leaseMs: 1_000, changes: 0 };
      const [outcome] = await on.store.events.record([eventOf(action, `{"k":"${key}"}`)], NOW, { claim });
      return outcome?.kind === "recorded" ? (outcome.claims?.length ?? 0) : undefined;
    };
    expect(await record("a")).toBe(1);
    expect(await record("a")).toBe(0);
    expect(await record("b")).toBe(1);
  });
}
