import { describe, expect, it } from "vitest";
import {
  type Load,
  mostOfQuick,
  mostOfUnproven,
  roomOfTier,
  SLOW,
  UNKNOWN,
} from "../../src/delivery/bulkhead.ts";

const load = (given: Partial<Load>): Load => ({ most: 256, underWay: 0, unproven: 0, slow: 0, ...given });

describe("the room of those not known to be quick", () => {
  it.each([
    // What is under way, and what is left for unknown and for slow ones.
    [{}, 192, 128],
    [{ underWay: 128, unproven: 128, slow: 128 }, 64, 0],
    [{ underWay: 192, unproven: 192, slow: 0 }, 0, 0],
    [{ underWay: 192, unproven: 192, slow: 128 }, 0, 0],
    [{ underWay: 100, unproven: 100, slow: 40 }, 92, 88],
    // Quick ones have most of it.
    [{ underWay: 250 }, 6, 6],
    [{ underWay: 256 }, 0, 0],
    // Quick ones that have gone silent take more than is meant for slow ones, and no room is less than none.
    [{ underWay: 224, unproven: 224, slow: 224 }, 0, 0],
    [{ most: 1 }, 1, 1],
    [{ most: 2 }, 2, 1],
    [{ most: 5 }, 4, 3],
  ])("with %o is %i for unknown and %i for slow ones", (given, unknown, slow) => {
    expect(roomOfTier(UNKNOWN, load(given))).toBe(unknown);
    expect(roomOfTier(SLOW, load(given))).toBe(slow);
  });

  it("is never all there is, however many handlers hang", () => {
    let slow = 0;
    for (let handler = 0; handler < 500; handler += 1) {
      const room = roomOfTier(SLOW, load({ underWay: slow, unproven: slow, slow }));
      slow += Math.min(room, mostOfUnproven(64, room));
    }
    expect(slow).toBe(128);
    expect(roomOfTier(UNKNOWN, load({ underWay: slow, unproven: slow, slow }))).toBe(64);
  });
});

describe("the part of one", () => {
  it.each([
    [64, 256, 64],
    [64, 40, 40],
    [64, 0, 1],
    [2, 256, 2],
  ])("that is quick, with a window of %i and %i free, is %i", (window, free, most) => {
    expect(mostOfQuick(window, free)).toBe(most);
  });

  it.each([
    [4, 192, 4],
    [4, 16, 2],
    [4, 7, 1],
    [1, 128, 1],
    [64, 128, 16],
  ])("that is not known to be, with a window of %i and room for %i, is %i", (window, room, most) => {
    expect(mostOfUnproven(window, room)).toBe(most);
  });

  it("leaves some for the next when many quick ones are busy", () => {
    const most = 256;
    const busy = Array.from({ length: 30 }, () => 0);
    for (let isMoving = true; isMoving;) {
      isMoving = false;
      for (const [index, underWay] of busy.entries()) {
        const free = most - busy.reduce((sum, count) => sum + count, 0);
        if (underWay >= mostOfQuick(64, free)) continue;
        busy[index] = underWay + 1;
        isMoving = true;
      }
    }
    const free = most - busy.reduce((sum, count) => sum + count, 0);
    expect(free).toBeGreaterThanOrEqual(7);
    expect(Math.min(...busy)).toBeGreaterThanOrEqual(7);
  });
});
