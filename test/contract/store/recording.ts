import { expect, it } from "vitest";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid } from "./fixture.ts";

export function recordSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("stores payloads byte for byte", async () => {
    const action = await on.action();
    const payloads = [
      Buffer.from('{"id":12345678901234567890, "2":1,"10":[1e400],  "s":"\\u0000 \\ud83e\\udd89"}'),
      Uint8Array.from({ length: 256 }, (_, byte) => byte),
      Buffer.from([0]),
      Buffer.from("'); DROP TABLE event; --\u0000tail"),
      Buffer.from([0xff, 0xfe, 0xc3, 0x28]),
      new Uint8Array(0),
    ];
    const outcomes = await on.record(payloads.map((payload) => eventOf(action, payload)));
    const [alone] = await on.record([eventOf(action, new Uint8Array(0))]);
    for (const [index, payload] of [...payloads, new Uint8Array(0)].entries()) {
      const found = await on.events.find(recordedRowid([...outcomes, alone][index]));
      expect(Buffer.from(found?.payload ?? []).toString("hex")).toBe(Buffer.from(payload).toString("hex"));
    }
  });

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

  it("records a batch of several actions as it came, without what is refused between", async () => {
    const actions = [await on.action("a.a"), await on.action("a.b"), await on.action("a.c")];
    await on.subscription(actions[0]!);
    await on.subscription(actions[1]!, { subscription: "ordered", settings: { ordered: true } });
    // Runs of one action, then actions by turns.
    const batch = Array.from({ length: 40 }, (_, n) => {
      const action = actions[n < 20 ? Math.floor(n / 7) : n % 3]!;
      const event = eventOf(action, `[${"1".repeat(1 + (n % 5))},${n}]`, n % 3 === 0 ? undefined : `k${n}`);
      return n % 4 === 3 || n < 2 ? { ...event, revision: 7 } : event;
    });
    const outcomes = await on.record(batch);
    const taken = batch.filter(({ revision }) => revision === 1);
    expect(outcomes.filter(({ kind }) => kind === "stale")).toHaveLength(batch.length - taken.length);
    const { events } = await on.events.list({ order: "asc", limit: 50, page: 1 });
    const actionOf = ({ actionId }: { actionId: number }) =>
      actions.find(({ rowid }) => rowid === actionId)!.action;
    expect(events.map(({ action, payload }) => [action, Buffer.from(payload!).toString()])).toEqual(
      taken.map((event) => [actionOf(event), Buffer.from(event.payload).toString()]),
    );
    const again = await on.record(taken.filter(({ idempotencyKey }) => idempotencyKey !== undefined));
    expect(new Set(again.map(({ kind }) => kind))).toEqual(new Set(["replayed"]));
    const deliveries = (await on.deliveries()).toReversed();
    const sent = events.filter(({ action }) => action !== "a.c");
    expect(deliveries.map(({ event_id }) => event_id)).toEqual(sent.map(({ rowid }) => rowid));
  });

  it("does nothing for an empty batch", async () => {
    expect(await on.record([])).toEqual([]);
  });
}
