import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EngineCounts } from "../../src/metrics/counters.ts";
import type { SubscriptionPatch } from "../../src/store/catalog.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { Bench } from "./engine-setup.ts";

describe("what the engine counts", () => {
  let bench: Bench;
  let receiver: Receiver;
  let counts: EngineCounts;
  let failedByChange: number;
  beforeEach(async () => {
    failedByChange = 0;
    const onFailed = (deliveries: number): void => void (failedByChange += deliveries);
    [bench, receiver] = await Promise.all([Bench.open(onFailed), startReceiver()]);
    counts = new EngineCounts();
  });
  afterEach(async () => {
    await bench.close();
    await receiver.close();
  });

  it("are each attempt once, and each delivery's end once", async () => {
    receiver.script({ status: 302, headers: { location: "/" } }, { status: 500 }, "reset", { status: 999 });
    await bench.publish(await bench.subscribe(receiver.url, 3));
    for (let attempt = 0; attempt < 4; attempt += 1) {
      await bench.once({}, { counts });
      await bench.clock.advance(10_000);
    }
    receiver.script({ status: 410 });
    await bench.publish(await bench.subscribe(receiver.url));
    await bench.once({}, { counts });
    await bench.publish(await bench.subscribe(receiver.url), 2);
    bench.clock.pass(700);
    // A new one gets a single attempt at a time.
    for (let round = 0; round < 2; round += 1) await bench.once({}, { counts });

    expect(counts.failedByStatus).toEqual({ "3xx": 1, "4xx": 1, "5xx": 1, other: 1 });
    expect(counts.failedByError).toMatchObject({ connection_reset: 1, timeout: 0, interrupted: 0 });
    expect(counts.deliveredAttempts).toBe(2);
    expect(counts.finished).toEqual({ delivered: 2, failed: 2, filtered: 0 });
    expect(counts.attemptSeconds.counts.reduce((sum, count) => sum + count)).toBe(7);
    // The clock stands still while an attempt is under way.
    expect(counts.latencySeconds.sum).toBeCloseTo(1.4);
  });

  it("are aborted attempts as returned", async () => {
    const engine = bench.engine({}, { counts });
    receiver.script("hang");
    await bench.publish(await bench.subscribe(receiver.url));
    const round = bench.once({}, { counts });
    await receiver.received(1);
    await bench.clock.advance(10_000);
    await round;
    expect(counts.failedByError).toMatchObject({ timeout: 1, interrupted: 0 });
    engine.start();
    receiver.script("hang");
    engine.wake();
    await receiver.received(2);
    await engine.stop(0);
    expect(counts.failedByError).toMatchObject({ timeout: 1, interrupted: 1 });
    expect(counts.finished).toEqual({ delivered: 0, failed: 0, filtered: 0 });
  });

  it("are results as they were stored, whatever the attempt was judged to be", async () => {
    const blocking = { ordered: true, on_exhausted: "block" } as const;
    const subscription = await bench.subscribe(receiver.url, 0, blocking);
    receiver.script({ status: 500 }, { status: 500 }, { status: 410 });
    await bench.publish(subscription);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await bench.once({}, { counts });
      await bench.clock.advance(60_000);
    }
    // Its handler is gone, and it keeps its place.
    expect(await bench.statuses(subscription)).toEqual({ held: 1 });
    expect(counts.finished).toEqual({ delivered: 0, failed: 0, filtered: 0 });
    const change = async (patch: SubscriptionPatch): Promise<void> => {
      await bench.store.catalog.updateSubscription(subscription.rowid, patch, bench.clock.now());
    };
    await change({ active: true, settings: { on_exhausted: "skip" } });
    expect(await bench.statuses(subscription)).toEqual({ failed: 1 });
    expect([counts.finished.failed, failedByChange]).toEqual([0, 1]);

    // Judged as to be tried on, and stored as failed: it was changed meanwhile.
    await change({ settings: { on_exhausted: "block" } });
    receiver.script("hang");
    await bench.publish(subscription);
    const requests = receiver.requests.length;
    const round = bench.once({}, { counts });
    await receiver.received(requests + 1);
    await change({ settings: { on_exhausted: "skip" } });
    await bench.clock.advance(10_000);
    await round;
    expect(await bench.statuses(subscription)).toEqual({ failed: 2 });
    expect([counts.finished.failed, failedByChange]).toEqual([1, 1]);
  });
});
