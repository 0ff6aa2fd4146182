import { expect, it } from "vitest";
import type { ExpiredRange } from "../../../src/store/events.ts";
import { eventOf, Fixture, NOW, type OpenStore } from "./fixture.ts";

const LATER = NOW + 86_400_000;
const PAGE = { order: "asc", limit: 1, page: 1 } as const;

export function retentionSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  /** Asks until all of the range is done. */
  async function remove(
    range: Partial<ExpiredRange> = {},
  ): Promise<{ events: number; deliveries: number; calls: number }> {
    const sum = { events: 0, deliveries: 0, calls: 0 };
    for (let next: number | undefined; sum.calls === 0 || next !== undefined; sum.calls += 1) {
      const removed = await on.events.removeExpired({ beforeMs: LATER, ...range }, next);
      sum.events += removed.events;
      sum.deliveries += removed.deliveries;
      ({ next } = removed);
    }
    return sum;
  }

  it("removes the events of a time range", async () => {
    const ids = await on.publish(await on.action(), 7);
    const remaining = (): Promise<readonly number[]> => on.rowids({ order: "asc" });
    expect(await remove({ fromMs: NOW + 4, beforeMs: NOW + 2 })).toMatchObject({ events: 0 });
    expect(await remaining()).toEqual(ids);
    expect(await remove({ fromMs: NOW + 2, beforeMs: NOW + 4 })).toMatchObject({ events: 2 });
    expect(await remaining()).toEqual([...ids.slice(0, 2), ...ids.slice(4)]);
    expect(await remove({ beforeMs: NOW + 5 })).toMatchObject({ events: 3 });
    expect(await remaining()).toEqual(ids.slice(5));
    expect(await remove()).toMatchObject({ events: 2 });
    expect(await remaining()).toEqual([]);
  });

  it("removes events where the clock was set back", async () => {
    const action = await on.action();
    await on.publish(action, 2);
    const young = await on.publish(action, 2, NOW + 7_200_000);
    await on.queue.moveWaits(3_600_000, NOW + 3_600_000);
    await on.publish(action, 2, NOW + 3_600_000);
    const again = await on.publish(action, 1, NOW + 7_200_000);
    expect((await remove({ beforeMs: NOW + 3_700_000 })).events).toBe(4);
    expect(await on.rowids({ fromMs: NOW + 7_200_000, order: "asc" })).toEqual([...young, ...again]);
    expect((await remove()).events).toBe(3);
    await on.queue.moveWaits(7_200_000, NOW + 1_000);
    const next = await on.publish(action, 1, NOW + 1_000);
    expect(await on.rowids({ fromMs: NOW, toMs: NOW + 2_000 })).toEqual(next);
    expect(next[0]).toBeGreaterThan(again[0] ?? 0);
  });

  it("tells the last event that was removed, whatever was removed after it", async () => {
    const action = await on.action();
    // Later than whatever other tests have left.
    const startMs = Math.max(NOW, (await on.events.list(PAGE)).removed.ms) + 60_000;
    const ids = await on.publish(action, 4, startMs);
    await on.events.removeExpired({ fromMs: startMs + 2, beforeMs: startMs + 3 });
    await on.events.removeExpired({ beforeMs: startMs + 1 });
    const removed = { event: ids[2], ms: startMs + 2 };
    expect((await on.events.list(PAGE)).removed).toEqual(removed);
    await on.queue.moveWaits(7_200_000, startMs - 7_200_000);
    const [again] = await on.publish(action, 1, startMs - 7_200_000);
    await on.events.removeExpired({ beforeMs: startMs - 3_600_000 });
    expect((await on.events.list(PAGE)).removed).toEqual({ ...removed, event: again });
  });

  it("removes an event's idempotency key with it", async () => {
    const action = await on.action();
    const record = async (payload: string): Promise<unknown> =>
      (await on.record([eventOf(action, payload, "once")]))[0];
    await on.record([eventOf(action, "{}", "once")]);
    expect(await record("{}")).toMatchObject({ kind: "replayed" });
    await remove();
    expect(await record('{"other":1}')).toMatchObject({ kind: "recorded" });
    expect(await record("{}")).toMatchObject({ kind: "key_conflict" });
  });

  it("removes few events at a time where their payloads are large, so that publishing is not delayed", async () => {
    const event = eventOf(await on.action(), Buffer.alloc(1_000_000, "x"));
    await on.record(Array.from({ length: 7 }, () => event));
    expect(await remove()).toMatchObject({ events: 7, calls: 4 });
  });

  it("removes an event with very many deliveries by itself, and not at all when its last one is unfinished", async () => {
    const action = await on.action();
    // With their attempts, those of one event are more than one call removes.
    const names = Array.from({ length: 300 }, (_, index) => `s${index}`);
    await Promise.all(names.map((subscription) => on.subscription(action, { subscription })));
    const ids = await on.publish(action, 3);
    const finish = (limit: number) => on.endAll("delivered", {}, { limit, most: limit });
    await finish(899);
    const [last] = await on.queue.list({ status: "pending", limit: 1 });
    const removed = await remove();
    expect(removed).toMatchObject({ events: 2, deliveries: 600 });
    expect(await on.rowids()).toEqual(ids.filter((id) => id === last?.event_id));
    expect(await on.queue.list({ event: last?.event_id ?? 0, limit: 500 })).toHaveLength(300);
    await finish(1);
    expect(await remove()).toMatchObject({ events: 1, deliveries: 300 });
    expect(removed.calls).toBeGreaterThanOrEqual(3);
    expect(await on.rowids()).toEqual([]);
  }, 30_000);
}
