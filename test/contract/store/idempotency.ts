import { expect, it } from "vitest";
import type { EventRecord } from "../../../src/store/events.ts";
import { eventOf, Fixture, NOW, type OpenStore } from "./fixture.ts";

export function idempotencySuite(open: OpenStore): void {
  const on = Fixture.use(open);
  const record = async (...events: readonly EventRecord[]): Promise<string[]> =>
    (await on.record(events)).map(({ kind }) => kind);

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

  it("are used by the payload that came first, and by no other one of its length or another", async () => {
    const action = await on.action();
    await record(eventOf(action, "[1]", "k"), eventOf(action, "[2]", "l"));
    const texts = ["[2]", "[1]", "[1 ]", "[1]"];
    const outcomes = ["key_conflict", "replayed", "key_conflict", "replayed"];
    expect(await record(...texts.map((text) => eventOf(action, text, "k")))).toEqual(outcomes);
    // So it is within a batch.
    const first = eventOf(action, "[1]", "m");
    const others = texts.map((text) => eventOf(action, text, "m"));
    expect(await record(first, ...others)).toEqual(["recorded", ...outcomes]);
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
}

/** Twenty numbers. */
function from(first: number, step = 2): number[] {
  return Array.from({ length: 20 }, (_, at) => first + at * step);
}
