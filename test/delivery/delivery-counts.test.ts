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
