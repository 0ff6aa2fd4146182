import { describe, expect, it } from "vitest";
import type { EventRecord } from "../../../src/store/events.ts";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid } from "./fixture.ts";

export function idempotencySuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const record = async (...events: readonly EventRecord[]): Promise<string[]> =>
    (await on.record(events)).map(({ kind }) => kind);

  it("returns the first event for the same key, action and payload, also where the schema has changed", async () => {
    const action = await on.action();
    await on.subscription(action);
    const [first] = await on.record([eventOf(action, '{"a":1}', "key 1")]);
    const [again] = await on.record([eventOf(action, '{"a":1}', "key 1")], NOW + 5_000);
    expect(again).toEqual({ kind: "replayed", rowid: recordedRowid(first), timestampedMs: NOW, revision: 1 });
    await on.catalog.reviseAction({ action: action.action, schemata: {}, expectedVersion: 1 }, NOW);
    const [revised] = await on.record([eventOf({ ...action, revision: 2 }, '{"a":1}', "key 1")]);
    expect(revised).toEqual(again);
    expect(await on.deliveries()).toHaveLength(1);
  });

  it("refuses the key with another payload or action", async () => {
    const action = await on.action("a.one");
    const other = await on.action("a.two");
    const [first] = await on.record([eventOf(action, '{"a":1}', "k")]);
    const refusal = { kind: "key_conflict", rowid: recordedRowid(first) };
    const others = [eventOf(action, '{"a":2}', "k"), eventOf(other, '{"a":1}', "k")];
    const outcomes = await on.record([...others, eventOf(action, '{"a":1} ', "k")]);
    expect(outcomes).toEqual([refusal, refusal, refusal]);
    expect(await on.rowids()).toHaveLength(1);
  });

  describe("in several applications", () => {
    it("are keys of their own, in one batch, over several, and at the same time", async () => {
      const own = await on.action("a.one");
      const sibling = await on.action("a.two");
      const foreign = await on.action("b.one", "billing");
      const all = [own, foreign, sibling].map((action) => eventOf(action, "{}", "k"));
      expect(await record(...all)).toEqual(["recorded", "recorded", "key_conflict"]);
      expect(await record(...all)).toEqual(["replayed", "replayed", "key_conflict"]);
      const atOnce = await Promise.all(
        [own, foreign, own, foreign].map((action) => record(eventOf(action, "{}", "l"))),
      );
      expect(atOnce.flat().toSorted()).toEqual(["recorded", "recorded", "replayed", "replayed"]);
      expect(await record(eventOf(foreign, '{"other":1}', "k"))).toEqual(["key_conflict"]);
    });

    it("are each listed by those that may read it", async () => {
      const own = await on.action("a.one");
      const foreign = await on.action("b.one", "billing");
      const outcomes = await on.record([own, foreign].map((action) => eventOf(action, "{}", "k")));
      const [first, second] = outcomes.map(recordedRowid);
      expect(await on.rowids({ idempotencyKey: "k" })).toEqual([second, first]);
      expect(await on.rowids({ idempotencyKey: "k", order: "asc" })).toEqual([first, second]);
      expect(await on.rowids({ idempotencyKey: "k", applications: ["billing"] })).toEqual([second]);
      expect(await on.rowids({ idempotencyKey: "k", action: "a.one" })).toEqual([first]);
      const all = { order: "asc" as const, limit: 1, page: 2, idempotencyKey: "k" };
      expect(await on.events.list(all)).toMatchObject({ events: [{ rowid: second }], total: 2 });
    });

    it("stay where they were used when an action moves, and still answer for it", async () => {
      const moved = await on.action("a.one");
      const left = await on.action("a.two");
      const there = await on.action("b.one", "billing");
      await record(eventOf(moved, "{}", "k"), eventOf(there, "{}", "k"), eventOf(there, "{}", "l"));
      const change = { action: moved.action, application: "billing", expectedVersion: 1 };
      await on.catalog.reviseAction(change, NOW);
      expect(await record(eventOf(moved, "{}", "k"), eventOf(moved, "{}", "l"))).toEqual([
        "replayed",
        "key_conflict",
      ]);
      // Where it was used it stays used, and where the action is now it is the other's.
      expect(await record(eventOf(left, "{}", "k"), eventOf(there, "{}", "k"))).toEqual([
        "key_conflict",
        "replayed",
      ]);
    });

    it("are found in a large batch among those of others", async () => {
      const own = await on.action("a.one");
      const foreign = await on.action("b.one", "billing");
      const batch = (action: typeof own) => from(0, 1).map((n) => eventOf(action, "{}", `bulk:${100 + n}`));
      expect(new Set(await record(...batch(own)))).toEqual(new Set(["recorded"]));
      expect(new Set(await record(...batch(foreign)))).toEqual(new Set(["recorded"]));
      expect(new Set(await record(...batch(own), ...batch(foreign)))).toEqual(new Set(["replayed"]));
    });
  });

  it("checks a key repeated within a batch by its first use", async () => {
    const action = await on.action();
    const used = eventOf(action, "{}", "k");
    const outcomes = await on.record([used, used, eventOf(action, "[]", "k"), eventOf(action, "{}", "l")]);
    const rowid = recordedRowid(outcomes[0]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["recorded", "replayed", "key_conflict", "recorded"]);
    expect(outcomes.slice(1, 3)).toMatchObject([{ rowid }, { rowid }]);
  });

  it("records one of many concurrent events", async () => {
    const action = await on.action();
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, () => on.record([eventOf(action, "{}", "same")])),
    );
    const kinds = outcomes.flat().map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "recorded")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "replayed")).toHaveLength(49);
  });

  it("accepts a repeated key in an atomic batch, and refuses a conflict", async () => {
    const action = await on.action();
    await on.record([eventOf(action, "{}", "k")]);
    const kindsOf = async (payload: string): Promise<string[]> => {
      const batch = [eventOf(action, payload, "k"), eventOf(action, "[]")];
      return (await on.record(batch, NOW, { atomic: true })).map(({ kind }) => kind);
    };
    expect(await kindsOf("{}")).toEqual(["replayed", "recorded"]);
    expect(await kindsOf("[]")).toEqual(["key_conflict", "withheld"]);
  });

  it("finds used keys anywhere in a large batch", async () => {
    const action = await on.action();
    const batch = (keys: readonly (number | undefined)[]) =>
      keys.map((key) => eventOf(action, "{}", key === undefined ? undefined : `bulk:${100 + key}`));
    const replayed = async (keys: readonly (number | undefined)[]): Promise<(number | undefined)[]> => {
      const outcomes = await on.record(batch(keys));
      return keys.filter((_, at) => outcomes[at]?.kind === "replayed");
    };
    expect(await replayed(from(0))).toEqual([]);
    expect(await replayed(from(40))).toEqual([]);
    // Between those there are, and yet none of them.
    expect(await replayed(from(1))).toEqual([]);
    expect(await replayed([...from(101), 0])).toEqual([0]);
    expect(await replayed([78, ...from(200)])).toEqual([78]);
    expect(await replayed([...from(300), undefined, 44, ...from(400)])).toEqual([44]);
    expect(await replayed([...from(600), 600])).toEqual([600]);
    expect(await replayed(from(0, 1).toReversed())).toEqual(from(0, 1).toReversed());
  });

  it("distinguishes similar keys", async () => {
    const action = await on.action();
    const keys = ["k", "K", "k ", " k", "k'", 'k"', "k\\u0000", "k~"];
    const outcomes = await on.record(keys.map((key) => eventOf(action, "{}", key)));
    expect(outcomes.map(({ kind }) => kind)).toEqual(keys.map(() => "recorded"));
  });

  it("refuses a key that it could not store unchanged", async () => {
    const action = await on.action();
    await on.record([eventOf(action, "{}", "k")]);
    for (const key of ["k\u0000x", "k\ud800"]) {
      await expect(on.record([eventOf(action, "{}", key)])).rejects.toMatchObject({ code: "invalid" });
    }
    expect(await on.rowids()).toHaveLength(1);
  });
}

/** Twenty numbers. */
function from(first: number, step = 2): number[] {
  return Array.from({ length: 20 }, (_, at) => first + at * step);
}
