import { array, assert, double, integer, oneof, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { Pacer } from "../../src/delivery/limits.ts";

const NOW = 1_800_000_000_000;

/** Begins as many as it may at each of the times; answers when each began. */
function beginAt(pacer: Pacer, times: Iterable<number>, mostAtOnce = Infinity): number[] {
  const begun: number[] = [];
  for (const nowMs of times) {
    for (let count = 0; count < mostAtOnce && pacer.mayBegin(nowMs); count += 1) {
      pacer.began(nowMs);
      begun.push(nowMs);
    }
  }
  return begun;
}

function beginOne(perSecond: number): Pacer {
  const pacer = new Pacer(perSecond);
  pacer.began(NOW);
  return pacer;
}

function everyMs(forMs: number, stepMs = 1): number[] {
  return Array.from({ length: Math.floor(forMs / stepMs) + 1 }, (_, step) => NOW + step * stepMs);
}

describe("a rate", () => {
  it.each([0.5, 1, 3, 50, 333, 2_000, 10_000])("of %d a second is reached and kept", (perSecond) => {
    const begun = beginAt(new Pacer(perSecond), everyMs(20_000));
    expect(begun.length).toBeGreaterThanOrEqual(Math.floor(perSecond * 20));
    expect(begun.length).toBeLessThanOrEqual(perSecond * 20.05 + 1);
  });

  it("is kept in every second, however late or unevenly it is asked", () => {
    const gapsMs = array(oneof(integer({ min: 0, max: 3 }), integer({ min: 0, max: 400 })), {
      minLength: 50,
      maxLength: 400,
    });
    assert(
      property(double({ min: 0.01, max: 3_000, noNaN: true }), gapsMs, (perSecond, gaps) => {
        let nowMs = NOW;
        const times = gaps.map((gapMs) => (nowMs += gapMs));
        const begun = beginAt(new Pacer(perSecond), times);
        for (const [index, atMs] of begun.entries()) {
          const inSecond = begun.slice(index).findIndex((other) => other >= atMs + 1_000);
          const count = inSecond === -1 ? begun.length - index : inSecond;
          expect(count).toBeLessThanOrEqual(perSecond * 1.05 + 1 + 1e-6);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("foretells when each of those that wait may begin", () => {
    const pacer = new Pacer(100);
    beginAt(pacer, [NOW]);
    const foretold = [0, 1, 2, 7].map((before) => pacer.beginsAtMs(before, NOW));
    const begun = beginAt(pacer, everyMs(200).slice(1));
    expect([0, 1, 2, 7].map((before) => begun[before])).toEqual(foretold);
    const other = new Pacer(100);
    expect(other.countBy(NOW + 100, NOW)).toBe(beginAt(other, everyMs(100)).length);
  });

  it("goes on from the slot of another, and no further off than its own gap", () => {
    const slow = new Pacer(0.1);
    beginAt(slow, [NOW]);
    const quick = new Pacer(1, slow);
    expect(quick.mayBegin(NOW + 900)).toBe(false);
    expect(quick.beginsAtMs(0, NOW)).toBe(NOW + 1_000);
    expect(new Pacer(0.1, quick).beginsAtMs(0, NOW)).toBe(NOW + 9_950);
    const unhurried = new Pacer(0.1, beginOne(1_000));
    expect(unhurried.mayBegin(NOW)).toBe(true);
  });

  it("makes nobody wait for longer when the clock was set back", () => {
    const pacer = new Pacer(1);
    beginAt(pacer, [NOW]);
    expect(pacer.beginsAtMs(0, NOW - 3_600_000)).toBeLessThanOrEqual(NOW - 3_600_000 + 1_000);
    expect(pacer.isRested(NOW + 500)).toBe(false);
    expect(pacer.isRested(NOW + 1_000)).toBe(true);
  });
});
