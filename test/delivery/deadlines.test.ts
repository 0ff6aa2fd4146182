import { beforeEach, describe, expect, it } from "vitest";
import { Deadlines } from "../../src/runtime/clock.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("deadlines", () => {
  let clock: ManualClock;
  let deadlines: Deadlines;
  let expired: string[];
  beforeEach(() => {
    clock = new ManualClock();
    deadlines = new Deadlines(clock);
    expired = [];
  });
  const begin = (name: string): (() => void) => deadlines.begin(1_000, () => expired.push(name));

  it("end each at its own time, with a timer for those of the same millisecond", async () => {
    begin("a");
    begin("b");
    await clock.advance(1);
    begin("c");
    expect(clock.pending).toBe(2);
    await clock.advance(998);
    expect(expired).toEqual([]);
    await clock.advance(1);
    expect(expired).toEqual(["a", "b"]);
    await clock.advance(1);
    expect(expired).toEqual(["a", "b", "c"]);
    expect(clock.pending).toBe(0);
  });

  it("that are cancelled never end, and leave no timer behind", async () => {
    const cancels = ["a", "b"].map(begin);
    cancels[0]?.();
    expect(clock.pending).toBe(1);
    cancels[1]?.();
    cancels[1]?.();
    expect(clock.pending).toBe(0);
    begin("c");
    await clock.advance(1_000);
    expect(expired).toEqual(["c"]);
  });

  it("can be cancelled and begun while others end", async () => {
    const cancels: (() => void)[] = [];
    deadlines.begin(1_000, () => {
      cancels[0]?.();
      begin("later");
    });
    cancels.push(begin("cancelled"));
    await clock.advance(1_000);
    expect(expired).toEqual([]);
    await clock.advance(1_000);
    expect(expired).toEqual(["later"]);
  });
});
