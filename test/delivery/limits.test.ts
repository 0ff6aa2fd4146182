import { array, assert, double, integer, oneof, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { shareOfSlow, tierLimits } from "../../src/delivery/claim-planner.ts";
import { SLOW, UNKNOWN } from "../../src/delivery/lane.ts";
import {
  AdaptiveLimit,
  capacityOf,
  FIRST_LIMIT,
  processLimits,
  RateLimiter,
} from "../../src/delivery/limits.ts";

const configured = { maxInFlight: 4_096, maxInFlightPerSubscription: 512 };
const GIB = 1_024 ** 3;

it.each([
  // Memory in GiB, descriptors, and what that allows.
  [16, 1_048_576, 4_096, 512],
  [16, Infinity, 4_096, 512],
  [16, 1_024, 480, 240],
  [16, 256, 96, 48],
  [16, 10, 1, 1],
  [2, 1_048_576, 4_096, 512],
  [0.5, 1_048_576, 1_024, 512],
  [0.25, 1_024, 480, 240],
  [0.125, 1_024, 256, 128],
])(
  "with %s GiB and %s descriptors %i may be in flight, %i for one subscription",
  (memory, descriptors, inFlight, perSubscription) => {
    const limits = { memoryBytes: memory * GIB, descriptors };
    expect(capacityOf(configured, limits)).toEqual({ inFlight, perSubscription });
  },
);

it("no subscription has more than half of what may be in flight", () => {
  const limits = { memoryBytes: GIB, descriptors: Infinity };
  for (const [maxInFlight, most] of [
    [10, 5],
    [1, 1],
  ] as const)
    expect(capacityOf({ ...configured, maxInFlight }, limits).perSubscription).toBe(most);
});

it("goes by what this process may use", () => {
  const { memoryBytes, descriptors } = processLimits();
  expect(memoryBytes).toBeGreaterThan(64 * 1_024 ** 2);
  if (process.platform === "linux") expect(descriptors).toBeGreaterThan(100);
});

describe("while handlers hang", () => {
  it("some capacity is left to the next unknown ones, and a quarter to the fast ones", () => {
    let slow = 0;
    for (let second = 1; second <= 9; second += 1) {
      const tried = tierLimits({ maxInFlight: 256, inFlight: slow, unknown: 0, slow })[UNKNOWN];
      expect(tried, `after ${second} s`).toBeGreaterThan(0);
      slow += tried;
    }
    expect(256 - slow).toBeGreaterThanOrEqual(60);
  });

  it("slow ones have at most half, and each a smaller part the more there are", () => {
    const parts: number[] = [];
    for (let handler = 0; handler < 500; handler += 1) {
      const slow = parts.reduce((sum, part) => sum + part, 0);
      const free = tierLimits({ maxInFlight: 256, inFlight: slow, unknown: 0, slow })[SLOW];
      parts.push(Math.min(free, 64, shareOfSlow(free)));
    }
    expect(parts.slice(0, 4)).toEqual([16, 14, 12, 10]);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(128);
  });
});

/** A handler that gets as much as the limit allows, round after round. */
function fill(
  limit: AdaptiveLimit,
  rounds: number,
  tookMs: (inFlight: number, nth: number) => number,
): number[] {
  const sizes: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { size } = limit;
    for (let nth = 0; nth < size; nth += 1) limit.answered(tookMs(size, nth), limit.size);
    sizes.push(limit.size);
  }
  return sizes;
}

describe("the adaptive limit of a subscription", () => {
  it.each([30, 500])("grows to the maximum while answers steadily take %i ms", (tookMs) => {
    const limit = new AdaptiveLimit(512);
    expect(limit.size).toBe(FIRST_LIMIT);
    // Doubled to 32, then by half each time.
    expect(fill(limit, 14, () => tookMs).slice(0, 7)).toEqual([2, 4, 8, 16, 32, 48, 72]);
    expect(limit.size).toBe(512);
    fill(limit, 10, () => tookMs);
    expect(limit.size).toBe(512);
  });

  it("does not grow beyond what a handler that answers at once can use", () => {
    const limit = new AdaptiveLimit(512);
    fill(limit, 50, () => 20);
    expect(limit.size).toBe(32);
  });

  it("grows too when answers take between 100 and 500 ms, and some ten times as long", () => {
    const limit = new AdaptiveLimit(512);
    fill(limit, 40, (_inFlight, nth) => (nth % 50 === 0 ? 5_000 : 100 + ((nth * 37) % 400)));
    expect(limit.size).toBeGreaterThan(400);
  });

  it("settles at what a handler can take that handles 100 at a time", () => {
    const limit = new AdaptiveLimit(512);
    const sizes = fill(limit, 200, (inFlight) => 200 * Math.max(1, inFlight / 100));
    expect(Math.max(...sizes)).toBeLessThan(260);
    expect(Math.min(...sizes.slice(20))).toBeGreaterThanOrEqual(100);
    expect(Math.max(...sizes.slice(20))).toBeLessThanOrEqual(230);
  });

  it("stays low for a handler that does one thing at a time", () => {
    const limit = new AdaptiveLimit(512);
    expect(Math.max(...fill(limit, 100, (inFlight) => 10 * inFlight))).toBeLessThanOrEqual(110);
  });

  it("adapts to a handler that has become slower for good", () => {
    const limit = new AdaptiveLimit(512);
    fill(limit, 20, () => 100);
    const sizes = fill(limit, 60, () => 400);
    expect(Math.min(...sizes)).toBeLessThan(50);
    expect(limit.size).toBe(512);
  });

  it("does not grow beyond what is used, nor with answers that report errors", () => {
    const limit = new AdaptiveLimit(512);
    fill(limit, 6, () => 100);
    const { size } = limit;
    for (let count = 0; count < 1_000; count += 1) limit.answered(100, 10);
    expect(limit.size).toBe(size);
    for (let count = 0; count < 1_000; count += 1) limit.faulted();
    expect(limit.size).toBe(32);
  });

  it("halves with each attempt without an answer, and never reaches zero", () => {
    const limit = new AdaptiveLimit(64);
    fill(limit, 10, () => 50);
    const sizes = [limit.size];
    while (sizes.length < 9) {
      limit.halve();
      sizes.push(limit.size);
    }
    expect(sizes).toEqual([64, 32, 16, 8, 4, 2, 1, 1, 1]);
  });
});

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

function everyMs(forMs: number, stepMs = 1): number[] {
  return Array.from({ length: Math.floor(forMs / stepMs) + 1 }, (_, step) => NOW + step * stepMs);
}

describe("a rate", () => {
  it.each([0.5, 1, 3, 50, 333, 2_000, 10_000])("of %d a second is reached and kept", (perSecond) => {
    const started = startAt(new RateLimiter(perSecond), everyMs(20_000));
    expect(started.length).toBeGreaterThanOrEqual(Math.floor(perSecond * 20));
    expect(started.length).toBeLessThanOrEqual(perSecond * 20.05 + 1);
  });

  it("counts from the last attempt where it is a new one", () => {
    const fast = new RateLimiter(100);
    startAt(fast, [NOW], 1);
    const slow = new RateLimiter(1, fast);
    expect(startAt(slow, everyMs(1_000))).toEqual([NOW + 950]);
    expect(startAt(new RateLimiter(100, slow), everyMs(1_000))[0]).toBe(NOW + 960);
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
});
