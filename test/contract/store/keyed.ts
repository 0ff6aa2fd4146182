import { expect, it } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { Order, SubscriptionSettings } from "../../../src/domain/subscription-settings.ts";
import type { Claim } from "../../../src/store/queue.ts";
import { agreedBacklog } from "./agreed-backlog.ts";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid, resultOf } from "./fixture.ts";

const HOUR_MS = 3_600_000;
const BY_KEY = { ordered: { key: "/k" } } as const;

function eventsOf(claims: readonly Claim[]): number[] {
  return claims.map(({ event }) => event.eventId);
}

function nested(value: number): string {
  return `{"a":{"b":0},"a/b":["{\\"]",{ "y":[[]], "\\u007e" :{"z":"\\\\","x":${value}}}]}`;
}

/** Subscriptions that get one delivery at a time of the events with the same key. */
export function keyedSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  async function keyed(
    settings: Partial<SubscriptionSettings> = {},
    maxRetries = 1,
  ): Promise<{ readonly action: Action; readonly id: number }> {
    const action = await on.action();
    const made = await on.subscription(action, { maxRetries, settings: { ...BY_KEY, ...settings } });
    return { action, id: made.rowid };
  }

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

  async function claimed(nowMs = NOW + 60_000): Promise<readonly Claim[]> {
    return (await on.claim({ nowMs })).claims.toSorted((a, b) => a.event.eventId - b.event.eventId);
  }

  const deliver = (claim: Claim): Promise<boolean> => on.finish(claim, "delivered", { statusCode: 200 });

  function fail(claim: Claim, atMs: number): Promise<unknown> {
    return on.fail(claim, atMs, { statusCode: 500 });
  }

  async function order(id: number, ordered: Order): Promise<unknown> {
    return on.store.catalog.updateSubscription(id, { settings: { ordered } }, NOW);
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
    const second = await claimed(NOW + 61_000);
    expect(eventsOf(second)).toEqual([a2]);
    expect(await on.store.queue.finish([resultOf(first[1]!, "delivered")], NOW + 61_000)).toEqual([
      { kind: "stored", state: "delivered" },
    ]);
    await deliver(second[0]!);
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([a3]);
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
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual(rest.flatMap(([next]) => next ?? []));
  });

  it("find the value at any depth, also where names have escapes and lists are in between", async () => {
    const { action, id } = await keyed({ ordered: { key: "/a~1b/1/~0/x" } });
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
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([b2]);
    expect(second!.event.eventId).toBe(b);
    expect(eventsOf(await claimed(NOW + HOUR_MS))).toEqual([a]);
  });

  it("block a key whose delivery has used up its retries, and show how many are blocked", async () => {
    const { action, id } = await keyed({ on_exhausted: "block" }, 0);
    const [, , a2] = await publish(action, ["a", "b", "a", "b", "c"]);
    const [a, b, c] = await claimed();
    await fail(a!, NOW + HOUR_MS);
    await fail(b!, NOW + HOUR_MS);
    await deliver(c!);
    expect(await claimed(NOW + 61_000)).toEqual([]);
    const found = await on.store.catalog.findSubscription(id);
    expect(found).toMatchObject({ blocked_by: a!.deliveryId, blocked_keys: 2, slowed_until: null });
    expect(await agreedBacklog(on.store.queue, NOW + 61_000)).toMatchObject({
      waiting: { deliveries: 2 },
      blocked: { deliveries: 2, sinceMs: NOW },
    });
    await on.store.queue.skip(a!.deliveryId, NOW + 61_000);
    expect(await on.store.catalog.findSubscription(id)).toMatchObject({
      blocked_by: b!.deliveryId,
      blocked_keys: 1,
    });
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([a2]);
  });

  it("go on past one that failed for good where they skip, also what they blocked for before", async () => {
    const { action, id } = await keyed({ on_exhausted: "block" }, 0);
    const [, , a2, b2] = await publish(action, ["a", "b", "a", "b"]);
    const [a, b] = await claimed();
    await fail(a!, NOW + HOUR_MS);
    const patch = { settings: { on_exhausted: "skip" } } as const;
    expect(await on.store.catalog.updateSubscription(id, patch, NOW)).toMatchObject({ blocked_keys: 0 });
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([a2]);
    await on.finish(b!, "failed", { statusCode: 500 });
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([b2]);
  });

  it("send what a person requested before the others of its key, and not beside one of them", async () => {
    const { action } = await keyed();
    const [a, a2, a3] = await publish(action, ["a", "a", "a"]);
    const [first] = await claimed();
    await deliver(first!);
    const [second] = await claimed(NOW + 61_000);
    expect(second!.event.eventId).toBe(a2);
    await on.store.queue.retry(await deliveryOf(a!), NOW + 61_000);
    expect(await claimed(NOW + 61_000)).toEqual([]);
    await fail(second!, NOW + HOUR_MS);
    const [again] = await claimed(NOW + 61_000);
    expect(again!.event.eventId).toBe(a);
    await deliver(again!);
    // The order of publication goes on.
    const [retried] = await claimed(NOW + 61_000);
    expect(retried!.event.eventId).toBe(a2);
    await deliver(retried!);
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([a3]);
  });

  it("send a requested one first, whatever its place among those behind", async () => {
    const { action, id } = await keyed({ on_exhausted: "skip" }, 0);
    await on.store.catalog.updateSubscription(id, { active: false }, NOW);
    const [missed] = await publish(action, ["a"]);
    await on.store.catalog.updateSubscription(id, { active: true }, NOW);
    const [sent] = await publish(action, ["a", "a"], NOW + 10);
    const [first] = await claimed();
    await deliver(first!);
    const [second] = await claimed(NOW + 61_000);
    const plan = await on.store.replays.plan({ subscription: id, selection: "missed", fromMs: NOW });
    const replay = (await on.store.replays.start(plan!, NOW + 100))!;
    const step = { nowMs: NOW + 100, maxQueued: 10, maxDue: 50, maxUnfinished: 100 };
    await on.store.replays.advance(replay.rowid, step);
    await on.store.queue.retry(await deliveryOf(sent!), NOW + 61_000);
    await deliver(second!);
    const [requested] = await claimed(NOW + 61_000);
    expect(requested!.event.eventId).toBe(sent);
    await deliver(requested!);
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([missed]);
  });

  it("make due again what a lease has left, and still one of a key at a time", async () => {
    const { action } = await keyed();
    const events = await publish(action, ["a", "b", "a"]);
    await on.claim({ nowMs: NOW + 10, leaseMs: 1_000 });
    expect(await on.store.queue.releaseExpired(NOW + 2_000)).toBe(2);
    expect(eventsOf(await claimed())).toEqual(events.slice(0, 2));
  });

  it("put replayed events before later ones of their key, also where these came first", async () => {
    const { action, id } = await keyed();
    await on.store.catalog.updateSubscription(id, { active: false }, NOW);
    const [a, b] = await publish(action, ["a", "b"]);
    await on.store.catalog.updateSubscription(id, { active: true }, NOW);
    const [a2, a3] = await publish(action, ["a", "a"], NOW + 10);
    const plan = await on.store.replays.plan({ subscription: id, selection: "missed", fromMs: NOW });
    const replay = (await on.store.replays.start(plan!, NOW + 100))!;
    const step = { nowMs: NOW + 100, maxQueued: 10, maxDue: 50, maxUnfinished: 100 };
    expect(await on.store.replays.advance(replay.rowid, step)).toEqual({ queued: 2, state: "running" });
    const claims = await claimed();
    expect(eventsOf(claims)).toEqual([a, b]);
    await deliver(claims[0]!);
    const [next] = await claimed(NOW + 61_000);
    expect(next!.event.eventId).toBe(a2);
    await deliver(next!);
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([a3]);
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
    const before = await deliveryOf(a!);
    expect(behind).toMatchObject({ status: "pending", next_attempt_at: null });
    await expect(queue.retry(behind!.rowid, NOW)).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining(`delivery ${before} of the same key goes before it`) as string,
    });
    await catalog.updateSubscription(id, { active: false }, NOW);
    expect(await listed({ status: "held" })).toEqual([a2]);
    expect((await agreedBacklog(queue, NOW + 60_000)).held).toMatchObject({ deliveries: 1 });
    expect(await queue.countPending(id)).toBe(1);
    await catalog.deleteSubscription(id, NOW);
    expect(await listed({ status: "cancelled" })).toEqual([a2]);
  });

  it("can be ordered otherwise while deliveries wait", async () => {
    const { action, id } = await keyed();
    const record = (payload: object): Promise<unknown> =>
      on.store.events.record([eventOf(action, JSON.stringify(payload))], NOW);
    for (const [k, l] of ["ax", "ay", "bx", "by"]) await record({ k, l });
    const events = (await on.rowids()).toReversed();
    const [first, second, third, fourth] = events;
    await order(id, { key: "/l" });
    expect(eventsOf(await claimed())).toEqual([first, second]);
    // What is leased goes on; then the order is another one.
    await order(id, { key: "/k" });
    expect(eventsOf(await claimed())).toEqual([third]);
    await on.store.queue.releaseExpired(NOW + HOUR_MS);
    expect(eventsOf(await claimed(NOW + HOUR_MS))).toEqual([first, third]);
    await on.store.queue.releaseExpired(NOW + 2 * HOUR_MS);
    await order(id, true);
    const [head] = (await on.claim({ most: 1 })).claims;
    expect(head!.event.eventId).toBe(first);
    await deliver(head!);
    await order(id, { key: "/l" });
    expect(eventsOf(await claimed(NOW + 61_000))).toEqual([second, third]);
    await on.store.queue.releaseExpired(NOW + HOUR_MS);
    // All at once again, apart from what has its place in an order.
    await order(id, false);
    await record({ l: "x" });
    const [fifth] = await on.rowids({ limit: 1 });
    const last = await claimed(NOW + HOUR_MS);
    expect(eventsOf(last)).toEqual([second, third, fifth]);
    for (const claim of last) await deliver(claim);
    expect(eventsOf(await claimed(NOW + HOUR_MS))).toEqual([fourth]);
  });

  it("are not ordered by key where too many deliveries wait", async () => {
    const { action, id } = await keyed({ ordered: false });
    for (let batch = 0; batch < 11; batch += 1) {
      await on.store.events.record(
        Array.from({ length: 1_000 }, () => eventOf(action)),
        NOW,
      );
    }
    await expect(order(id, BY_KEY.ordered)).rejects.toMatchObject({
      code: "conflict",
      details: { field: "ordered" },
    });
    await order(id, false);
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
