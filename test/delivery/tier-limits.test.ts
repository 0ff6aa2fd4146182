import { describe, expect, it } from "vitest";
import { dynamicThreshold, SLOW, slowThreshold, tierLimits, UNKNOWN } from "../../src/delivery/limits.ts";

type Load = Parameters<typeof tierLimits>[0];
const load = (given: Partial<Load>): Load => ({
  maxInFlight: 256,
  inFlight: 0,
  unknown: 0,
  slow: 0,
  ...given,
});

describe("the capacity for those not known to be fast", () => {
  it.each([
    // What is leased, and what remains for unknown and for slow ones.
    [{}, 96, 128],
    [{ inFlight: 96, unknown: 96 }, 0, 96],
    [{ inFlight: 128, slow: 128 }, 32, 0],
    [{ inFlight: 100, unknown: 60, slow: 40 }, 16, 88],
    // Fast ones have most of it.
    [{ inFlight: 250 }, 6, 6],
    [{ inFlight: 256 }, 0, 0],
    // Fast ones that stall take more than is meant for slow ones; one unknown is tried all the same.
    [{ inFlight: 224, slow: 224 }, 1, 0],
    [{ maxInFlight: 1 }, 1, 1],
    [{ maxInFlight: 2 }, 1, 1],
    [{ maxInFlight: 5 }, 2, 3],
  ])("with %o is %i for unknown and %i for slow ones", (given, unknown, slow) => {
    expect(tierLimits(load(given))[UNKNOWN]).toBe(unknown);
    expect(tierLimits(load(given))[SLOW]).toBe(slow);
  });

  it("leaves some capacity to the next ones, and a quarter to the fast ones, however many unknown ones hang", () => {
    let slow = 0;
    for (let second = 1; second <= 9; second += 1) {
      const tried = tierLimits(load({ inFlight: slow, slow }))[UNKNOWN];
      expect(tried, `after ${second} s`).toBeGreaterThan(0);
      slow += tried;
    }
    expect(256 - slow).toBeGreaterThanOrEqual(60);
  });

  it("is at most half for slow ones, whose shares shrink as their number grows", () => {
    const parts: number[] = [];
    for (let handler = 0; handler < 500; handler += 1) {
      const slow = parts.reduce((sum, part) => sum + part, 0);
      const free = tierLimits(load({ inFlight: slow, slow }))[SLOW];
      parts.push(Math.min(free, slowThreshold(64, free)));
    }
    expect(parts.slice(0, 4)).toEqual([16, 14, 12, 10]);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(128);
  });
});

describe("the share of a fast one", () => {
  it.each([
    [64, 256, 64],
    [64, 40, 40],
    [64, 0, 1],
    [2, 256, 2],
  ])("with a limit of %i and %i free is %i", (limit, free, most) => {
    expect(dynamicThreshold(limit, free)).toBe(most);
  });

  it("leaves some for the next when many are busy", () => {
    const most = 256;
    const busy = Array.from({ length: 30 }, () => 0);
    const free = (): number => most - busy.reduce((sum, count) => sum + count, 0);
    for (let isMoving = true; isMoving;) {
      isMoving = false;
      for (const [index, underWay] of busy.entries()) {
        if (underWay >= dynamicThreshold(64, free())) continue;
        busy[index] = underWay + 1;
        isMoving = true;
      }
    }
    expect(free()).toBeGreaterThanOrEqual(7);
    expect(Math.min(...busy)).toBeGreaterThanOrEqual(7);
  });
});
