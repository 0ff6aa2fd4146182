import { expect, it } from "vitest";
import type { NextEvents } from "../../../src/store/events.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

export function nextEventSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const next = (query: Partial<NextEvents>) =>
    on.events.next({ after: 0, limit: 100, maxBytes: 1_000_000, payloads: false, ...query });
  const rowids = async (query: Partial<NextEvents>): Promise<readonly number[]> =>
    (await next(query)).events.map(({ rowid }) => rowid);

  it("come oldest first, in pages that one can go on after", async () => {
    const action = await on.action();
    const all = await on.publish(action, 5);
    const before = all[0]! - 1;
    const page = await next({ after: before, limit: 2 });
    expect(page.events.map(({ rowid }) => rowid)).toEqual(all.slice(0, 2));
    expect(page).toMatchObject({ through: all[1], isFull: true });
    expect(await rowids({ after: page.through, limit: 2 })).toEqual(all.slice(2, 4));
    expect(await next({ after: all[3]!, limit: 2 })).toMatchObject({ through: all[4], isFull: false });
    expect(await next({ after: all[4]! })).toEqual({
      events: [],
      through: all[4],
      isFull: false,
      removed: expect.any(Number) as number,
    });
    expect(await next({ after: all[4]! + 100 })).toMatchObject({ events: [], through: all[4]! + 100 });
  });

  it("come with their payloads where that is asked for, as many as fit", async () => {
    const action = await on.action();
    const all = await on.publish(action, 3);
    const after = all[0]! - 1;
    const [first] = (await next({ after })).events;
    const found = (await on.events.find(all[0]!))!;
    expect(found.payloadBytes).toBe(found.payload?.length);
    expect(first).toEqual({ ...found, payload: undefined });
    expect((await next({ after, payloads: true })).events[0]).toEqual(found);
    const one = await next({ after, payloads: true, maxBytes: 1 });
    expect(one.events.map(({ rowid }) => rowid)).toEqual([all[0]]);
    expect(one).toMatchObject({ through: all[0], isFull: true });
  });

  it("that are listed end a page before their payloads are too many bytes, and it is said", async () => {
    const action = await on.action();
    const [first = 0, second = 0, third = 0] = await on.publish(action, 3);
    const { events } = await on.events.list({ order: "asc", limit: 1, page: 1 });
    const { byteLength } = events[0]!.payload!;
    const cut = async (maxBytes: number) => {
      const page = await on.events.list({ order: "asc", limit: 3, page: 1, maxBytes });
      return [page.events.map(({ rowid }) => rowid), page.isCut, page.total];
    };
    expect(await cut(1)).toEqual([[first], true, 3]);
    expect(await cut(2 * byteLength)).toEqual([[first, second], true, 3]);
    expect(await cut(3 * byteLength)).toEqual([[first, second, third], false, 3]);
  });

  it("are those of an action, or of some applications, with a place to go on from where there are none", async () => {
    const [a, b, c] = [await on.action("a"), await on.action("b", "shop"), await on.action("c", "shop")];
    const [first] = await on.publish(a);
    const [second] = await on.publish(b);
    const [third] = await on.publish(c);
    const [last] = await on.publish(a);
    const after = first! - 1;
    expect(await rowids({ after, action: "a" })).toEqual([first, last]);
    expect(await rowids({ after, applications: ["shop"] })).toEqual([second, third]);
    expect(await next({ after, applications: ["shop"], limit: 1 })).toMatchObject({
      through: second,
      isFull: true,
    });
    expect(await rowids({ after, applications: ["shop", "crm"] })).toEqual([first, second, third, last]);
    expect(await rowids({ after, action: "a", applications: ["shop"] })).toEqual([]);
    for (const query of [{ action: "none" }, { applications: [] }, { action: "b", after: second! }]) {
      expect(await next({ after, ...query })).toEqual({
        events: [],
        through: last,
        isFull: false,
        removed: expect.any(Number) as number,
      });
    }
  });

  it("begin and end where the stored events do, and at a time", async () => {
    const action = await on.action();
    const all = [...(await on.publish(action, 2, NOW)), ...(await on.publish(action, 2, NOW + 10_000))];
    const last = all[3]!;
    const { events } = on.store;
    expect(await events.bounds()).toMatchObject({ last, before: last });
    const since = async (ms: number) => rowids({ after: (await events.bounds(ms)).before });
    expect(await since(NOW)).toEqual(all);
    expect(await since(NOW + 1)).toEqual(all.slice(1));
    expect(await since(NOW + 2)).toEqual(all.slice(2));
    expect(await since(NOW + 20_000)).toEqual([]);
    expect((await events.bounds(0)).before).toBeGreaterThanOrEqual(0);
    await events.removeExpired({ beforeMs: NOW + 20_000 });
    expect(await events.bounds(NOW)).toMatchObject({ last, before: last, removed: { event: last } });
  });

  it("tell the last event that was removed, whatever was removed after it", async () => {
    const action = await on.action();
    const { events } = on.store;
    // Later than whatever other tests have left.
    const startMs = Math.max(NOW, (await events.bounds()).removed.ms) + 60_000;
    const ids = await on.publish(action, 4, startMs);
    await events.removeExpired({ fromMs: startMs + 2, beforeMs: startMs + 3 });
    const removed = { event: ids[2], ms: startMs + 2 };
    expect((await events.bounds()).removed).toEqual(removed);
    expect(await next({ after: ids[0]! })).toMatchObject({ removed: ids[2] });
    await events.removeExpired({ beforeMs: startMs + 1 });
    expect((await events.bounds()).removed).toEqual(removed);
    // The clock was set back meanwhile.
    const [again] = await on.publish(action, 1, startMs - 7_200_000);
    await events.removeExpired({ beforeMs: startMs - 3_600_000 });
    expect((await events.bounds()).removed).toEqual({ ...removed, event: again });
    expect(await next({ after: again! })).toMatchObject({ through: again, removed: again });
  });
}
