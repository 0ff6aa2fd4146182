import { describe, expect, it } from "vitest";
import { Lane } from "../../src/delivery/lane.ts";
import { FAST, SLOW, UNKNOWN } from "../../src/delivery/limits.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";

const NOW = 1_000_000;

/** An attempt begins, as the schedule counts it. */
function begin(lane: Lane, atMs: number): void {
  lane.started(atMs);
  lane.counts.add("sending", 0);
}

/** One attempt from its start at `atMs` to its answer. */
function answer(lane: Lane, atMs: number, durationMs: number): void {
  begin(lane, atMs);
  lane.answered(atMs + durationMs, durationMs, false);
  end(lane);
}

function end(lane: Lane): void {
  lane.counts.move("sending", "gone", 0);
}

describe("what is known of a handler", () => {
  it("is nothing until it has answered or failed", () => {
    const lane = new Lane(1, 32);
    expect(lane.tier(NOW)).toBe(UNKNOWN);
    begin(lane, NOW);
    expect(lane.tier(NOW + 1_000)).toBe(UNKNOWN);
    lane.answered(NOW + 5, 5, false);
    end(lane);
    expect(lane.tier(NOW + 5)).toBe(FAST);
  });

  it("is slow once it has stalled for a second, and fast again with a fast answer", () => {
    const lane = new Lane(1, 32);
    answer(lane, NOW, 5);
    begin(lane, NOW + 10_000);
    expect(lane.tier(NOW + 11_000)).toBe(FAST);
    expect(lane.tier(NOW + 11_001)).toBe(SLOW);
    lane.answered(NOW + 12_000, 2_000, false);
    end(lane);
    expect(lane.tier(NOW + 12_000)).toBe(SLOW);
    answer(lane, NOW + 13_000, 1_000);
    expect(lane.tier(NOW + 14_000)).toBe(FAST);
  });

  it("is fast while others are answered next to one that hangs", () => {
    const lane = new Lane(1, 32);
    begin(lane, NOW);
    for (let atMs = NOW; atMs < NOW + 9_000; atMs += 500) answer(lane, atMs, 5);
    expect(lane.tier(NOW + 9_000)).toBe(FAST);
    lane.unanswered(NOW + 9_000, NOW);
    end(lane);
    expect(lane.tier(NOW + 9_000)).toBe(FAST);
  });

  it("is slow when it cannot be reached, however fast the failure is", () => {
    const unknown = new Lane(1, 32);
    begin(unknown, NOW);
    unknown.unanswered(NOW + 1, NOW);
    end(unknown);
    expect(unknown.tier(NOW + 1)).toBe(SLOW);

    const fast = new Lane(2, 32);
    answer(fast, NOW, 5);
    for (let atMs = NOW + 5; atMs < NOW + 1_200; atMs += 5) {
      begin(fast, atMs);
      fast.unanswered(atMs + 1, atMs);
      end(fast);
    }
    expect([fast.tier(NOW + 1_200), fast.limit]).toEqual([SLOW, 1]);
  });
});

describe("what is prefetched", () => {
  it("is what it gets through in a tenth of a second, and nothing unless it is fast", () => {
    const lane = new Lane(1, 32);
    expect(lane.prefetch(NOW)).toBe(0);
    for (let count = 0; count < 40; count += 1) answer(lane, NOW, 50);
    expect([lane.limit, lane.prefetch(NOW)]).toEqual([32, 64]);
    for (let count = 0; count < 100; count += 1) answer(lane, NOW, 800);
    expect(lane.prefetch(NOW)).toBe(4);
    for (let count = 0; count < 100; count += 1) answer(lane, NOW, 0);
    expect(lane.prefetch(NOW)).toBe(512);
    begin(lane, NOW);
    expect(lane.prefetch(NOW + 1_001)).toBe(0);
  });
});

/** One attempt that is throttled at once. */
function throttle(lane: Lane, atMs: number): number {
  begin(lane, atMs);
  const gapMs = lane.throttled(atMs, 5, atMs);
  end(lane);
  return gapMs;
}

describe("a handler that throttles", () => {
  it("gets half as many at once each time, then one with growing pauses, until it answers otherwise", () => {
    const lane = new Lane(1, 32);
    for (let count = 0; count < 40; count += 1) answer(lane, NOW, 5);
    expect([lane.limit, lane.prefetch(NOW)]).toEqual([32, 512]);
    expect(
      [1, 2, 3, 4, 5].map((at) => [throttle(lane, NOW + at), lane.limit, lane.prefetch(NOW + at)]),
    ).toEqual([
      [0, 16, 0],
      [0, 8, 0],
      [0, 4, 0],
      [0, 2, 0],
      [0, 1, 0],
    ]);
    const gaps = Array.from({ length: 9 }, (_, index) => throttle(lane, NOW + 10 + index));
    expect(gaps).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    answer(lane, NOW + 100, 5);
    expect(lane.limit).toBe(2);
    expect(throttle(lane, NOW + 200)).toBe(0);
    expect(throttle(lane, NOW + 300)).toBe(0);
    expect(throttle(lane, NOW + 400)).toBe(1_000);
  });

  it("gets growing pauses at once where it is ordered as a whole, as it never gets more than one", () => {
    const lane = new Lane(1, 32);
    lane.applySettings({ ...NO_SETTINGS, ordered: true });
    for (let count = 0; count < 10; count += 1) answer(lane, NOW, 5);
    expect([1, 2, 3].map((at) => throttle(lane, NOW + at))).toEqual([0, 1_000, 2_000]);
  });

  it("is not judged again by what was in flight when it throttled", () => {
    const lane = new Lane(1, 32);
    for (let count = 0; count < 40; count += 1) answer(lane, NOW, 5);
    for (let count = 0; count < 32; count += 1) begin(lane, NOW);
    for (let count = 0; count < 32; count += 1) {
      expect(lane.throttled(NOW + 1 + count, 5, NOW)).toBe(0);
      end(lane);
    }
    expect([lane.limit, lane.sending]).toEqual([16, 0]);
  });
});

describe("what is leased for a filter to exclude", () => {
  it("is as much as was excluded in a row, and half of that after each that passes", () => {
    const lane = new Lane(1, 32);
    expect(lane.filterAllowance).toBe(0);
    for (let count = 0; count < 100; count += 1) lane.excluded();
    expect(lane.filterAllowance).toBe(100);
    answer(lane, NOW, 5);
    expect(lane.filterAllowance).toBe(50);
    for (let count = 0; count < 7; count += 1) answer(lane, NOW, 5);
    expect(lane.filterAllowance).toBe(0);
  });

  it("is at most what a claim returns, and nothing at the limit", () => {
    const lane = new Lane(1, 32);
    for (let count = 0; count < 2_000; count += 1) lane.excluded();
    expect(lane.filterAllowance).toBe(256);
    begin(lane, NOW);
    expect(lane.filterAllowance).toBe(0);
    lane.answered(NOW, 5, false);
    end(lane);
    // One in hundreds changes nothing.
    expect(lane.filterAllowance).toBe(256);
  });
});
