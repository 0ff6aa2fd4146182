import { describe, expect, it } from "vitest";
import { AdaptiveLimit, FIRST_LIMIT } from "../../src/delivery/limits.ts";

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

  it("is never more than its subscription sets", () => {
    const limit = new AdaptiveLimit(512);
    fill(limit, 14, () => 50);
    limit.max = 3;
    fill(limit, 10, () => 50);
    expect(limit.size).toBe(3);
  });
});
