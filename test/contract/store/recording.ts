import { expect, it } from "vitest";
import type { EventSelection } from "../../../src/store/events.ts";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid } from "./fixture.ts";

export function recordSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("stores payloads of a megabyte, several at once", async () => {
    const action = await on.action();
    await on.subscription(action);
    const payloads = [1, 2, 3].map((seed) =>
      Uint8Array.from({ length: 1024 * 1024 }, (_, at) => (at * seed * 31 + (at >> 8)) & 255),
    );
    await Promise.all(payloads.map((payload) => on.record([eventOf(action, payload)])));
    const { events } = await on.events.list({ order: "asc", limit: 10, page: 1 });
    expect(events.filter(({ payload }) => Buffer.compare(payload!, payloads[0]!) === 0)).toHaveLength(1);
    const { claims } = await on.claim();
    expect(claims.map(({ event }) => event.payload?.byteLength)).toEqual([1_048_576, 1_048_576, 1_048_576]);
    for (const payload of payloads) {
      expect(claims.some((claim) => Buffer.compare(claim.event.payload!, payload) === 0)).toBe(true);
    }
  });

  it("records nothing of a retired action, whatever whoever publishes has read before", async () => {
    const action = await on.action();
    const retire = { action: action.action, settings: { retired: true }, expectedVersion: 1 };
    await on.catalog.reviseAction(retire, NOW);
    expect(await on.record([eventOf(action)])).toEqual([{ kind: "stale" }]);
  });

  it("separates an atomic batch from concurrent writes", async () => {
    const action = await on.action();
    const stale = { ...eventOf(action), revision: 7 };
    const [, refused, taken] = await Promise.all([
      on.record([eventOf(action)]),
      on.record([eventOf(action, "{}", "k"), stale], NOW, { atomic: true }),
      on.record([eventOf(action, "{}", "k"), stale]),
    ]);
    expect(refused?.map(({ kind }) => kind)).toEqual(["left_out", "stale"]);
    // The key of the one that was left out is free.
    expect(taken?.map(({ kind }) => kind)).toEqual(["recorded", "stale"]);
    expect(await on.rowids()).toHaveLength(2);
  });

  it("records a batch that creates very many deliveries, in order, atomic or not", async () => {
    const action = await on.action();
    const other = await on.action("user.deleted");
    const named = Array.from({ length: 100 }, (_, n) => on.subscription(action, { subscription: `s${n}` }));
    await Promise.all(named);
    const batch = [...Array.from({ length: 89 }, () => eventOf(action)), eventOf(other), eventOf(action)];
    const outcomes = await on.record(batch);
    const recorded = (): Promise<number[]> => on.rowids({ order: "asc", limit: 500 });
    expect(outcomes.map((outcome) => recordedRowid(outcome))).toEqual(await recorded());
    expect(outcomes).toHaveLength(91);
    const whole = await on.record(batch, NOW, { atomic: true });
    expect(whole.every(({ kind }) => kind === "recorded")).toBe(true);
    expect(await recorded()).toHaveLength(182);
    const wide = Array.from({ length: 207 }, () => eventOf(action));
    const refused = { code: "too_large", details: { limit: 20_000, size: 20_700 } };
    await expect(on.record(wide, NOW, { atomic: true })).rejects.toMatchObject(refused);
    expect(await recorded()).toHaveLength(182);
  });

  it("reads the next events with their payloads where that is asked for, as many as fit", async () => {
    const action = await on.action();
    const all = await on.publish(action, 3);
    const after = all[0]! - 1;
    const next = (given: Partial<EventSelection>) =>
      on.events.list({
        order: "asc",
        after,
        limit: 100,
        page: 1,
        total: false,
        maxBytes: 1_000_000,
        ...given,
      });
    const [first] = (await next({ payloads: false })).events;
    const found = (await on.events.find(all[0]!))!;
    expect(first).toEqual({ ...found, payload: undefined });
    expect((await next({})).events[0]).toEqual(found);
    const one = await next({ maxBytes: 1 });
    expect(one.events.map(({ rowid }) => rowid)).toEqual([all[0]]);
    expect(one).toMatchObject({ ids: [all[0]], isCut: true, newest: all[2], removed: { event: 0, ms: 0 } });
  });

  it("ends a page of a list before its payloads are too many bytes, and says so", async () => {
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
}
