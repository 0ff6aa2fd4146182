import { describe, expect, it } from "vitest";
import { QUICK, SLOW, UNKNOWN } from "../../src/delivery/limits.ts";
import { Flow } from "../../src/delivery/subscription-state.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import type { Claim } from "../../src/store/queue.ts";

const NOW = 1_000_000;

/** One attempt from its beginning at `atMs` to its answer. */
function answer(flow: Flow, atMs: number, durationMs: number): void {
  flow.began(atMs);
  flow.answered(atMs + durationMs, durationMs, false);
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
      handler: "https://a.example/",
      secret: "s",
      maxRetries: 5,
      settings: NO_SETTINGS,
    },
  };
}

describe("what is known of a handler", () => {
  it("is nothing until it has answered or failed", () => {
    const flow = new Flow(1, 32);
    expect(flow.tier(NOW)).toBe(UNKNOWN);
    flow.began(NOW);
    expect(flow.tier(NOW + 1_000)).toBe(UNKNOWN);
    flow.answered(NOW + 5, 5, false);
    expect(flow.tier(NOW + 5)).toBe(QUICK);
  });

  it("is that it is slow once it has been silent for a second, and quick again with a quick answer", () => {
    const flow = new Flow(1, 32);
    answer(flow, NOW, 5);
    flow.began(NOW + 10_000);
    expect(flow.tier(NOW + 11_000)).toBe(QUICK);
    expect(flow.tier(NOW + 11_001)).toBe(SLOW);
    flow.answered(NOW + 12_000, 2_000, false);
    expect(flow.tier(NOW + 12_000)).toBe(SLOW);
    answer(flow, NOW + 13_000, 1_000);
    expect(flow.tier(NOW + 14_000)).toBe(QUICK);
  });

  it("is that it is quick while others are answered beside one that hangs", () => {
    const flow = new Flow(1, 32);
    flow.began(NOW);
    for (let atMs = NOW; atMs < NOW + 9_000; atMs += 500) answer(flow, atMs, 5);
    expect(flow.tier(NOW + 9_000)).toBe(QUICK);
    flow.failed(NOW + 9_000, NOW);
    expect(flow.tier(NOW + 9_000)).toBe(QUICK);
  });

  it("is that it is slow when it cannot be reached, however fast that is told", () => {
    const unknown = new Flow(1, 32);
    unknown.began(NOW);
    unknown.failed(NOW + 1, NOW);
    expect(unknown.tier(NOW + 1)).toBe(SLOW);

    const quick = new Flow(2, 32);
    answer(quick, NOW, 5);
    for (let atMs = NOW + 5; atMs < NOW + 1_200; atMs += 5) {
      quick.began(atMs);
      quick.failed(atMs + 1, atMs);
    }
    expect([quick.tier(NOW + 1_200), quick.window]).toEqual([SLOW, 1]);
  });

  it("does not change with an attempt that was cut short", () => {
    const flow = new Flow(1, 32);
    flow.began(NOW);
    flow.interrupted();
    expect([flow.tier(NOW + 9_000), flow.underWay, flow.window]).toEqual([UNKNOWN, 0, 1]);
  });
});

describe("what is leased ahead", () => {
  it("is what it gets through in a tenth of a second, and nothing unless it is quick", () => {
    const flow = new Flow(1, 32);
    expect(flow.ahead(NOW)).toBe(0);
    for (let count = 0; count < 40; count += 1) answer(flow, NOW, 50);
    expect([flow.window, flow.ahead(NOW)]).toEqual([32, 64]);
    for (let count = 0; count < 100; count += 1) answer(flow, NOW, 800);
    expect(flow.ahead(NOW)).toBe(4);
    for (let count = 0; count < 100; count += 1) answer(flow, NOW, 0);
    expect(flow.ahead(NOW)).toBe(512);
    flow.began(NOW);
    expect(flow.ahead(NOW + 1_001)).toBe(0);
  });

  it("comes in the order in which it was leased, however much it is", () => {
    const flow = new Flow(1, 32);
    const taken: number[] = [];
    let leased = 0;
    for (let round = 0; round < 50; round += 1) {
      for (let count = 0; count < 40; count += 1) {
        leased += 1;
        flow.lease({ claim: claim(leased), sinceMs: NOW });
      }
      for (let count = 0; count < 30; count += 1) taken.push(flow.shift()?.claim.deliveryId ?? 0);
      expect([flow.waiting, flow.leased]).toEqual([(round + 1) * 10, (round + 1) * 10]);
      expect(flow.head?.claim.deliveryId).toBe(taken.length + 1);
    }
    expect(taken).toEqual(Array.from({ length: 1_500 }, (_, index) => index + 1));
    while (flow.shift() !== undefined) leased -= 1;
    expect([flow.waiting, leased]).toEqual([0, 1_500]);
  });
});

/** One attempt that is refused at once. */
function refuse(flow: Flow, atMs: number): number {
  flow.began(atMs);
  return flow.refused(atMs, 5, atMs);
}

describe("a handler that refuses", () => {
  it("gets half as many at once each time, then one with growing gaps, until it answers otherwise", () => {
    const flow = new Flow(1, 32);
    for (let count = 0; count < 40; count += 1) answer(flow, NOW, 5);
    expect([flow.window, flow.ahead(NOW)]).toEqual([32, 512]);
    expect([1, 2, 3, 4, 5].map((at) => [refuse(flow, NOW + at), flow.window, flow.ahead(NOW + at)])).toEqual([
      [0, 16, 0],
      [0, 8, 0],
      [0, 4, 0],
      [0, 2, 0],
      [0, 1, 0],
    ]);
    const gaps = Array.from({ length: 9 }, (_, index) => refuse(flow, NOW + 10 + index));
    expect(gaps).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    answer(flow, NOW + 100, 5);
    expect(flow.window).toBe(2);
    expect(refuse(flow, NOW + 200)).toBe(0);
    expect(refuse(flow, NOW + 300)).toBe(0);
    expect(refuse(flow, NOW + 400)).toBe(1_000);
  });

  it("tells nothing new with what was under way when it refused before", () => {
    const flow = new Flow(1, 32);
    for (let count = 0; count < 40; count += 1) answer(flow, NOW, 5);
    for (let count = 0; count < 32; count += 1) flow.began(NOW);
    for (let count = 0; count < 32; count += 1) expect(flow.refused(NOW + 1 + count, 5, NOW)).toBe(0);
    expect([flow.window, flow.underWay]).toEqual([16, 0]);
  });

  it("is not forgotten while what it asked for is not stored", () => {
    const flow = new Flow(1, 32);
    flow.hold();
    expect([flow.isHeld, flow.isIdle(NOW)]).toEqual([true, false]);
    flow.release();
    expect([flow.isHeld, flow.isIdle(NOW)]).toEqual([false, true]);
  });
});

describe("what is leased for a filter to look at", () => {
  it("is as much as it keeps back one after the other, and half of that after each that passes", () => {
    const flow = new Flow(1, 32);
    expect(flow.toFilter).toBe(0);
    for (let count = 0; count < 100; count += 1) flow.keptBack();
    expect(flow.toFilter).toBe(100);
    answer(flow, NOW, 5);
    expect(flow.toFilter).toBe(50);
    for (let count = 0; count < 7; count += 1) answer(flow, NOW, 5);
    expect(flow.toFilter).toBe(0);
  });

  it("is no more than a claim brings, and nothing while all places are taken", () => {
    const flow = new Flow(1, 32);
    for (let count = 0; count < 2_000; count += 1) flow.keptBack();
    expect(flow.toFilter).toBe(256);
    flow.began(NOW);
    expect([flow.toFilter, flow.isOverfull(NOW)]).toEqual([0, true]);
    flow.answered(NOW, 5, false);
    // One in hundreds changes nothing.
    expect([flow.toFilter, flow.isOverfull(NOW)]).toEqual([256, false]);
  });
});
