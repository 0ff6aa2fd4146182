import { expect, it } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { ExpiredSelection } from "../../../src/store/events.ts";
import type { Claim } from "../../../src/store/queue.ts";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid } from "./fixture.ts";

const LATER = NOW + 86_400_000;

export function retentionSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  async function expired(query: Partial<ExpiredSelection> = {}): Promise<readonly number[]> {
    return (await on.store.events.findExpired({ beforeMs: LATER, most: 1_000, ...query })).events;
  }

  /** Asks until all are handled. */
  async function remove(
    ids: readonly number[],
  ): Promise<{ events: number; deliveries: number; calls: number }> {
    const sum = { events: 0, deliveries: 0, calls: 0 };
    for (let left = ids; left.length > 0; sum.calls += 1) {
      const { handled, events, deliveries } = await on.store.events.remove(left);
      sum.events += events;
      sum.deliveries += deliveries;
      left = left.slice(handled);
    }
    return sum;
  }

  async function claimOf(event: number): Promise<Claim> {
    const claim = (await on.claim()).claims.find((each) => each.event.eventId === event);
    if (claim === undefined) throw new Error(`event ${event} was due`);
    return claim;
  }

  async function deliver(action: Action): Promise<number> {
    const [event = 0] = await on.publish(action);
    await on.finish(await claimOf(event), { kind: "delivered" });
    return event;
  }

  it("finds events of a time range, oldest rowid first, in pages", async () => {
    const ids = await on.publish(await on.action(), 7);
    expect(await expired()).toEqual(ids);
    expect(await expired({ beforeMs: NOW + 3 })).toEqual(ids.slice(0, 3));
    expect(await expired({ fromMs: NOW + 2, beforeMs: NOW + 4 })).toEqual(ids.slice(2, 4));
    expect(await expired({ fromMs: NOW + 4, beforeMs: NOW + 2 })).toEqual([]);
    expect(await expired({ after: ids[4] ?? 0 })).toEqual(ids.slice(5));
    const first = await on.store.events.findExpired({ beforeMs: NOW + 5, most: 3 });
    expect(first).toEqual({ events: ids.slice(0, 3), after: ids[2] });
    const second = await on.store.events.findExpired({ beforeMs: NOW + 5, most: 3, after: first.after ?? 0 });
    expect(second).toEqual({ events: ids.slice(3, 5), after: undefined });
  });

  it("finds events where the clock was set back", async () => {
    const action = await on.action();
    const old = await on.publish(action, 2);
    const young = await on.publish(action, 2, NOW + 7_200_000);
    const back = await on.publish(action, 2, NOW + 3_600_000);
    const again = await on.publish(action, 1, NOW + 7_200_000);
    expect(await expired({ beforeMs: NOW + 3_700_000 })).toEqual([...old, ...back]);
    expect((await remove(await expired({ beforeMs: NOW + 3_700_000 }))).events).toBe(4);
    expect(await on.rowids({ fromMs: NOW + 7_200_000, order: "asc" })).toEqual([...young, ...again]);
    expect((await remove(await expired())).events).toBe(3);
    const next = await on.publish(action, 1, NOW + 1_000);
    expect(await on.rowids({ fromMs: NOW, toMs: NOW + 2_000 })).toEqual(next);
    expect(next[0]).toBeGreaterThan(again[0] ?? 0);
  });

  it("keeps events with an unfinished delivery, and only those", async () => {
    const action = await on.action();
    const subscription = await on.subscription(action);
    const delivered = await deliver(action);
    const [failed = 0] = await on.publish(action);
    await on.finish(await claimOf(failed), { kind: "failed" });
    const [waiting = 0] = await on.publish(action);
    await on.finish(await claimOf(waiting), { kind: "retry", atMs: LATER });
    const [delivering = 0] = await on.publish(action);
    const claim = await claimOf(delivering);
    const [pending = 0] = await on.publish(action);
    await on.store.catalog.updateSubscription(subscription.rowid, { active: false }, NOW);
    const [unheard = 0] = await on.publish(action);
    expect(await expired()).toEqual([delivered, failed, unheard]);

    // What is held is not finished.
    expect(await remove([pending, waiting, delivering])).toMatchObject({ events: 0, deliveries: 0 });
    expect(await on.store.events.find(pending)).toBeDefined();

    // What is cancelled is, once it is not under way any more.
    await on.store.catalog.deleteSubscription(subscription.rowid, NOW);
    expect(await expired()).toEqual([delivered, failed, waiting, pending, unheard]);
    await on.finish(claim, { kind: "retry", atMs: LATER });
    expect(await expired()).toEqual([delivered, failed, waiting, delivering, pending, unheard]);
    expect(await remove(await expired())).toMatchObject({ events: 6, deliveries: 5 });
    expect(await on.store.queue.list({ limit: 50 })).toEqual([]);
  });

  it("removes all that belongs to an event, and nothing else", async () => {
    const action = await on.action();
    await on.subscription(action);
    const [first, second] = [await deliver(action), await deliver(action)];
    const [gone, left] = (await on.store.queue.list({ limit: 2 })).toReversed();
    expect(await remove([first])).toEqual({ events: 1, deliveries: 1, calls: 1 });
    expect(await on.store.events.find(first)).toBeUndefined();
    expect(await on.store.queue.find(gone?.rowid ?? 0)).toBeUndefined();
    expect(await on.store.events.find(second)).toMatchObject({ rowid: second });
    expect((await on.store.queue.find(left?.rowid ?? 0))?.attempts).toHaveLength(1);
    expect(await on.store.events.list({ order: "desc", limit: 5, page: 1 })).toMatchObject({ total: 1 });
    expect(await remove([first, 999])).toEqual({ events: 0, deliveries: 0, calls: 1 });
  });

  it("removes an event's idempotency key with it", async () => {
    const action = await on.action();
    const record = async (payload: string): Promise<unknown> =>
      (await on.store.events.record([eventOf(action, payload, "once")], NOW))[0];
    const [first] = await on.store.events.record([eventOf(action, "{}", "once")], NOW);
    expect(await record("{}")).toMatchObject({ kind: "replayed" });
    await remove([recordedRowid(first)]);
    expect(await record('{"other":1}')).toMatchObject({ kind: "recorded" });
    expect(await record("{}")).toMatchObject({ kind: "key_conflict" });
  });

  it("keeps an event that is sent again after it was selected", async () => {
    const action = await on.action();
    await on.subscription(action);
    const [first, second] = [await deliver(action), await deliver(action)];
    const found = await expired();
    expect(found).toEqual([first, second]);
    const [delivery] = (await on.store.queue.list({ limit: 2 })).toReversed();
    await on.store.queue.retry(delivery?.rowid ?? 0, NOW);
    expect(await remove(found)).toMatchObject({ events: 1, deliveries: 1 });
    expect(await on.rowids()).toEqual([first]);
    expect(await on.store.queue.find(delivery?.rowid ?? 0)).toMatchObject({ status: "pending" });
  });

  it("removes an event with very many deliveries in parts, and not at all when its last one is unfinished", async () => {
    const action = await on.action();
    const names = Array.from({ length: 900 }, (_, index) => `s${index}`);
    await Promise.all(names.map((subscription) => on.subscription(action, { subscription })));
    const [before = 0, wide = 0, after = 0] = await on.publish(action, 3);
    const finish = async (limit: number): Promise<void> => {
      const { claims } = await on.claim({ limit, most: limit });
      await Promise.all(claims.map((claim) => on.finish(claim, { kind: "delivered" })));
    };
    await finish(2_699);
    const [last] = await on.store.queue.list({ status: "pending", limit: 1 });
    const kept = last?.event_id ?? 0;
    expect(await expired()).toEqual([before, wide, after].filter((id) => id !== kept));
    await finish(1);
    const ids = await expired();
    expect(ids).toEqual([before, wide, after]);
    const removed = await remove(ids);
    expect(removed).toMatchObject({ events: 3, deliveries: 2_700 });
    expect(removed.calls).toBeGreaterThan(3);
    expect(await on.rowids()).toEqual([]);
  }, 30_000);
}
