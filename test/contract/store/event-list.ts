import { expect, it } from "vitest";
import type { EventSelection } from "../../../src/store/events.ts";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid } from "./fixture.ts";

export function eventListSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const total = async (query: Partial<EventSelection>): Promise<number> =>
    (await on.events.list({ order: "desc", limit: 2, page: 1, ...query })).total;

  it("ends a page before its payloads are too many bytes, and says so", async () => {
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

  it("is exact over thousands of events, at any page boundary, also once some were removed", async () => {
    const [a, b] = [await on.action("a", "crm"), await on.action("b", "crm")];
    const c = await on.action("shop.c", "shop");
    const all: { rowid: number; action: string; application: string; atMs: number }[] = [];
    for (let batch = 0; batch < 18; batch += 1) {
      // Back by two hours once, so that an hour is in two places.
      const nowMs = NOW + (batch < 9 ? batch : batch - 7) * 600_000;
      const given = Array.from({ length: 500 }, (_, n) => (n === 250 ? c : (batch + n) % 3 === 0 ? b : a));
      const events = given.map((action) => eventOf(action));
      const outcomes = await on.record(events, nowMs);
      for (const [n, { action, application }] of given.entries()) {
        all.push({ rowid: recordedRowid(outcomes[n]), action, application, atMs: nowMs });
      }
    }
    const hour = { fromMs: NOW + 3_600_000, toMs: NOW + 7_200_000 };
    const filters: Partial<EventSelection>[] = [
      ...[undefined, "a", "shop.c", "none"].map((action) => (action === undefined ? {} : { action })),
      ...[[], ["crm"], ["crm", "shop"]].map((applications) => ({ applications })),
      { action: "shop.c", applications: ["crm"] },
    ];
    for (const filter of filters) {
      for (const time of [{}, hour]) {
        const { fromMs = 0, toMs = Infinity }: Partial<EventSelection> = time;
        const rising = all
          .filter(({ action }) => filter.action === undefined || action === filter.action)
          .filter(({ application }) => filter.applications?.includes(application) ?? true)
          .filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
          .map(({ rowid }) => rowid);
        expect(await total({ ...filter, ...time })).toBe(rising.length);
        for (const order of ["asc", "desc"] as const) {
          const ids = order === "asc" ? rising : rising.toReversed();
          const last = Math.ceil(ids.length / 7) || 1;
          for (const page of [1, Math.ceil(last / 2), last, ids.length + 1]) {
            const asked = { ...filter, ...time, order, limit: 7, page };
            expect(await on.rowids(asked)).toEqual(ids.slice(7 * (page - 1), 7 * page));
          }
          const place = Math.floor(ids.length / 2);
          const asked = { ...filter, ...time, order, limit: 7, after: ids[place] ?? 0 };
          expect(await on.rowids(asked)).toEqual(ids.slice(place + 1, place + 8));
        }
      }
    }
    const removed = await on.events.removeExpired({ beforeMs: NOW + 1 });
    expect(removed.events).toBeGreaterThan(0);
    expect(await total({})).toBe(all.length - removed.events);
    const ofC = all.slice(removed.events).filter(({ action }) => action === "shop.c");
    expect(await total({ action: "shop.c" })).toBe(ofC.length);
  });
}
