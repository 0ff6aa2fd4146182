import { array, assert, double, integer, oneof, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { RateLimiter } from "../../src/delivery/limits.ts";

const NOW = 1_800_000_000_000;

/** Starts as many as it may at each of the times; answers when each started. */
function startAt(limiter: RateLimiter, times: Iterable<number>, maxAtOnce = Infinity): number[] {
  const started: number[] = [];
  for (const nowMs of times) {
    for (let count = 0; count < maxAtOnce && limiter.allows(nowMs); count += 1) {
      limiter.started(nowMs);
      started.push(nowMs);
    }
  }
  return started;
}

function startOne(perSecond: number): RateLimiter {
  const limiter = new RateLimiter(perSecond);
  limiter.started(NOW);
  return limiter;
}

function everyMs(forMs: number, stepMs = 1): number[] {
  return Array.from({ length: Math.floor(forMs / stepMs) + 1 }, (_, step) => NOW + step * stepMs);
}

describe("a rate", () => {
  it.each([0.5, 1, 3, 50, 333, 2_000, 10_000])("of %d a second is reached and kept", (perSecond) => {
    const started = startAt(new RateLimiter(perSecond), everyMs(20_000));
    expect(started.length).toBeGreaterThanOrEqual(Math.floor(perSecond * 20));
    expect(started.length).toBeLessThanOrEqual(perSecond * 20.05 + 1);
  });

  it("is kept in every second, however late or uneven the starts are", () => {
    const gapsMs = array(oneof(integer({ min: 0, max: 3 }), integer({ min: 0, max: 400 })), {
      minLength: 50,
      maxLength: 400,
    });
    assert(
      property(double({ min: 0.01, max: 3_000, noNaN: true }), gapsMs, (perSecond, gaps) => {
        let nowMs = NOW;
        const times = gaps.map((gapMs) => (nowMs += gapMs));
        const started = startAt(new RateLimiter(perSecond), times);
        const counts = started.map((atMs, index) => {
          const inSecond = started.slice(index).findIndex((other) => other >= atMs + 1_000);
          return inSecond === -1 ? started.length - index : inSecond;
        });
        expect(Math.max(0, ...counts)).toBeLessThanOrEqual(perSecond * 1.05 + 1 + 1e-6);
      }),
      { numRuns: 200 },
    );
  });

  it("predicts when each waiting one may start", () => {
    const limiter = new RateLimiter(100);
    startAt(limiter, [NOW]);
    const foretold = [0, 1, 2, 7].map((before) => limiter.allowedAtMs(before, NOW));
    const started = startAt(limiter, everyMs(200).slice(1));
    expect([0, 1, 2, 7].map((before) => started[before])).toEqual(foretold);
    const other = new RateLimiter(100);
    expect(other.allowance(NOW + 100, NOW)).toBe(startAt(other, everyMs(100)).length);
  });

  it("continues after the slot of another rate, by at most its own gap", () => {
    const slow = new RateLimiter(0.1);
    startAt(slow, [NOW]);
    const quick = new RateLimiter(1, slow);
    expect(quick.allows(NOW + 900)).toBe(false);
    expect(quick.allowedAtMs(0, NOW)).toBe(NOW + 1_000);
    expect(new RateLimiter(0.1, quick).allowedAtMs(0, NOW)).toBe(NOW + 9_950);
    const unhurried = new RateLimiter(0.1, startOne(1_000));
    expect(unhurried.allows(NOW)).toBe(true);
  });

  it("waits for one gap at most, however far away its slot is", () => {
    const limiter = new RateLimiter(1);
    startAt(limiter, [NOW]);
    expect(limiter.allowedAtMs(0, NOW - 3_600_000)).toBeLessThanOrEqual(NOW - 3_600_000 + 1_000);
    expect(limiter.isIdle(NOW + 500)).toBe(false);
    expect(limiter.isIdle(NOW + 1_000)).toBe(true);
  });
});
