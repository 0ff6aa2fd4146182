import { describe, expect, it } from "vitest";
import { FAST, SLOW, UNKNOWN } from "../../src/delivery/limits.ts";
import { SubscriptionState } from "../../src/delivery/subscription-state.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import type { Claim } from "../../src/store/queue.ts";

const NOW = 1_000_000;

/** One attempt from its start at `atMs` to its answer. */
function answer(sub: SubscriptionState, atMs: number, durationMs: number): void {
  sub.started(atMs);
  sub.answered(atMs + durationMs, durationMs, false);
}

function claim(deliveryId: number): Claim {
  return {
    deliveryId,
    claimId: 1,
    attempt: 1,
    failures: 0,
    event: { eventId: 1, action: "a", payload: new Uint8Array(2), timestampedMs: NOW },
    subscription: {
      subscriptionId: 1,
      application: "a",
      name: "s",
      handler: "https://a.example/",
      secret: "s",
      maxRetries: 5,
      settings: NO_SETTINGS,
    },
  };
}

describe("what is known of a handler", () => {
  it("is nothing until it has answered or failed", () => {
    const sub = new SubscriptionState(1, 32);
    expect(sub.tier(NOW)).toBe(UNKNOWN);
    sub.started(NOW);
    expect(sub.tier(NOW + 1_000)).toBe(UNKNOWN);
    sub.answered(NOW + 5, 5, false);
    expect(sub.tier(NOW + 5)).toBe(FAST);
  });

  it("is slow once it has stalled for a second, and fast again with a fast answer", () => {
    const sub = new SubscriptionState(1, 32);
    answer(sub, NOW, 5);
    sub.started(NOW + 10_000);
    expect(sub.tier(NOW + 11_000)).toBe(FAST);
    expect(sub.tier(NOW + 11_001)).toBe(SLOW);
    sub.answered(NOW + 12_000, 2_000, false);
    expect(sub.tier(NOW + 12_000)).toBe(SLOW);
    answer(sub, NOW + 13_000, 1_000);
    expect(sub.tier(NOW + 14_000)).toBe(FAST);
  });

  it("is fast while others are answered next to one that hangs", () => {
    const sub = new SubscriptionState(1, 32);
    sub.started(NOW);
    for (let atMs = NOW; atMs < NOW + 9_000; atMs += 500) answer(sub, atMs, 5);
    expect(sub.tier(NOW + 9_000)).toBe(FAST);
    sub.unanswered(NOW + 9_000, NOW);
    expect(sub.tier(NOW + 9_000)).toBe(FAST);
  });

  it("is slow when it cannot be reached, however fast the failure is", () => {
    const unknown = new SubscriptionState(1, 32);
    unknown.started(NOW);
    unknown.unanswered(NOW + 1, NOW);
    expect(unknown.tier(NOW + 1)).toBe(SLOW);

    const fast = new SubscriptionState(2, 32);
    answer(fast, NOW, 5);
    for (let atMs = NOW + 5; atMs < NOW + 1_200; atMs += 5) {
      fast.started(atMs);
      fast.unanswered(atMs + 1, atMs);
    }
    expect([fast.tier(NOW + 1_200), fast.limit]).toEqual([SLOW, 1]);
  });

  it("does not change with an attempt that was aborted", () => {
    const sub = new SubscriptionState(1, 32);
    sub.started(NOW);
    sub.aborted();
    expect([sub.tier(NOW + 9_000), sub.inFlight, sub.limit]).toEqual([UNKNOWN, 0, 1]);
  });
});

describe("what is prefetched", () => {
  it("is what it gets through in a tenth of a second, and nothing unless it is fast", () => {
    const sub = new SubscriptionState(1, 32);
    expect(sub.prefetch(NOW)).toBe(0);
    for (let count = 0; count < 40; count += 1) answer(sub, NOW, 50);
    expect([sub.limit, sub.prefetch(NOW)]).toEqual([32, 64]);
    for (let count = 0; count < 100; count += 1) answer(sub, NOW, 800);
    expect(sub.prefetch(NOW)).toBe(4);
    for (let count = 0; count < 100; count += 1) answer(sub, NOW, 0);
    expect(sub.prefetch(NOW)).toBe(512);
    sub.started(NOW);
    expect(sub.prefetch(NOW + 1_001)).toBe(0);
  });

  it("starts in the order of its leases, however much it is", () => {
    const sub = new SubscriptionState(1, 32);
    const taken: number[] = [];
    let leased = 0;
    for (let round = 0; round < 50; round += 1) {
      for (let count = 0; count < 40; count += 1) {
        leased += 1;
        sub.buffer({ claim: claim(leased), leasedAtMs: NOW });
      }
      for (let count = 0; count < 30; count += 1) taken.push(sub.shift()?.claim.deliveryId ?? 0);
      expect([sub.buffered, sub.leased]).toEqual([(round + 1) * 10, (round + 1) * 10]);
      expect(sub.head?.claim.deliveryId).toBe(taken.length + 1);
    }
    expect(taken).toEqual(Array.from({ length: 1_500 }, (_, index) => index + 1));
    while (sub.shift() !== undefined) leased -= 1;
    expect([sub.buffered, leased]).toEqual([0, 1_500]);
  });
});

/** One attempt that is throttled at once. */
function throttle(sub: SubscriptionState, atMs: number): number {
  sub.started(atMs);
  return sub.throttled(atMs, 5, atMs);
}

describe("a handler that throttles", () => {
  it("gets half as many at once each time, then one with growing pauses, until it answers otherwise", () => {
    const sub = new SubscriptionState(1, 32);
    for (let count = 0; count < 40; count += 1) answer(sub, NOW, 5);
    expect([sub.limit, sub.prefetch(NOW)]).toEqual([32, 512]);
    expect([1, 2, 3, 4, 5].map((at) => [throttle(sub, NOW + at), sub.limit, sub.prefetch(NOW + at)])).toEqual(
      [
        [0, 16, 0],
        [0, 8, 0],
        [0, 4, 0],
        [0, 2, 0],
        [0, 1, 0],
      ],
    );
    const gaps = Array.from({ length: 9 }, (_, index) => throttle(sub, NOW + 10 + index));
    expect(gaps).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    answer(sub, NOW + 100, 5);
    expect(sub.limit).toBe(2);
    expect(throttle(sub, NOW + 200)).toBe(0);
    expect(throttle(sub, NOW + 300)).toBe(0);
    expect(throttle(sub, NOW + 400)).toBe(1_000);
  });

  it("gets growing pauses at once where it is ordered as a whole, as it never gets more than one", () => {
    const sub = new SubscriptionState(1, 32);
    sub.applySettings({ ...NO_SETTINGS, ordered: true });
    for (let count = 0; count < 10; count += 1) answer(sub, NOW, 5);
    expect([1, 2, 3].map((at) => throttle(sub, NOW + at))).toEqual([0, 1_000, 2_000]);
  });

  it("is not judged again by what was in flight when it throttled", () => {
    const sub = new SubscriptionState(1, 32);
    for (let count = 0; count < 40; count += 1) answer(sub, NOW, 5);
    for (let count = 0; count < 32; count += 1) sub.started(NOW);
    for (let count = 0; count < 32; count += 1) expect(sub.throttled(NOW + 1 + count, 5, NOW)).toBe(0);
    expect([sub.limit, sub.inFlight]).toEqual([16, 0]);
  });

  it("is kept in memory until what it asked for is stored", () => {
    const sub = new SubscriptionState(1, 32);
    sub.block("throttle");
    expect([sub.isBlockedBy("throttle"), sub.isIdle(NOW)]).toEqual([true, false]);
    sub.unblock("throttle");
    expect([sub.isBlockedBy("throttle"), sub.isIdle(NOW)]).toEqual([false, true]);
  });
});

describe("what is leased for a filter to exclude", () => {
  it("is as much as was excluded in a row, and half of that after each that passes", () => {
    const sub = new SubscriptionState(1, 32);
    expect(sub.filterAllowance).toBe(0);
    for (let count = 0; count < 100; count += 1) sub.excluded();
    expect(sub.filterAllowance).toBe(100);
    answer(sub, NOW, 5);
    expect(sub.filterAllowance).toBe(50);
    for (let count = 0; count < 7; count += 1) answer(sub, NOW, 5);
    expect(sub.filterAllowance).toBe(0);
  });

  it("is at most what a claim returns, and nothing at the limit", () => {
    const sub = new SubscriptionState(1, 32);
    for (let count = 0; count < 2_000; count += 1) sub.excluded();
    expect(sub.filterAllowance).toBe(256);
    sub.started(NOW);
    expect([sub.filterAllowance, sub.filterStalled(NOW)]).toEqual([0, true]);
    sub.answered(NOW, 5, false);
    // One in hundreds changes nothing.
    expect([sub.filterAllowance, sub.filterStalled(NOW)]).toEqual([256, false]);
  });
});
