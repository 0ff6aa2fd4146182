import { describe, expect, it } from "vitest";
import { type Load, mostOfQuick, mostOfSlow, roomOfTier, SLOW, UNKNOWN } from "../../src/delivery/limits.ts";

const load = (given: Partial<Load>): Load => ({ most: 256, underWay: 0, unknown: 0, slow: 0, ...given });

describe("the room of those not known to be quick", () => {
  it.each([
    // What is leased, and what is left for unknown and for slow ones.
    [{}, 96, 128],
    [{ underWay: 96, unknown: 96 }, 0, 96],
    [{ underWay: 128, slow: 128 }, 32, 0],
    [{ underWay: 100, unknown: 60, slow: 40 }, 16, 88],
    // Quick ones have most of it.
    [{ underWay: 250 }, 6, 6],
    [{ underWay: 256 }, 0, 0],
    // Quick ones that have gone silent take more than is meant for slow ones; one unknown is tried all the same.
    [{ underWay: 224, slow: 224 }, 1, 0],
    [{ most: 1 }, 1, 1],
    [{ most: 2 }, 1, 1],
    [{ most: 5 }, 2, 3],
  ])("with %o is %i for unknown and %i for slow ones", (given, unknown, slow) => {
    expect(roomOfTier(UNKNOWN, load(given))).toBe(unknown);
    expect(roomOfTier(SLOW, load(given))).toBe(slow);
  });

  it("leaves some to the next every second, and a quarter to the quick, however many hang of which nothing is known", () => {
    let slow = 0;
    for (let second = 1; second <= 9; second += 1) {
      const tried = roomOfTier(UNKNOWN, load({ underWay: slow, slow }));
      expect(tried, `after ${second} s`).toBeGreaterThan(0);
      slow += tried;
    }
    expect(256 - slow).toBeGreaterThanOrEqual(60);
  });

  it("is at most half for slow ones, whose parts become smaller with each", () => {
    const parts: number[] = [];
    for (let handler = 0; handler < 500; handler += 1) {
      const slow = parts.reduce((sum, part) => sum + part, 0);
      const room = roomOfTier(SLOW, load({ underWay: slow, slow }));
      parts.push(Math.min(room, mostOfSlow(64, room)));
    }
    expect(parts.slice(0, 4)).toEqual([16, 14, 12, 10]);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(128);
  });
});

describe("the part of a quick one", () => {
  it.each([
    [64, 256, 64],
    [64, 40, 40],
    [64, 0, 1],
    [2, 256, 2],
  ])("with a window of %i and %i free is %i", (window, free, most) => {
    expect(mostOfQuick(window, free)).toBe(most);
  });

  it("leaves some for the next when many are busy", () => {
    const most = 256;
    const busy = Array.from({ length: 30 }, () => 0);
    const free = (): number => most - busy.reduce((sum, count) => sum + count, 0);
    for (let isMoving = true; isMoving;) {
      isMoving = false;
      for (const [index, underWay] of busy.entries()) {
        if (underWay >= mostOfQuick(64, free())) continue;
        busy[index] = underWay + 1;
        isMoving = true;
      }
    }
    expect(free()).toBeGreaterThanOrEqual(7);
    expect(Math.min(...busy)).toBeGreaterThanOrEqual(7);
  });
});
