import { describe, expect, it } from "vitest";
import { openReceiver } from "../support/open-receiver.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;
useBench((opened) => ({ bench, receiver } = opened));

/** Until all that is under way is stored and nothing more is to be done at this time. */
async function settle(): Promise<void> {
  await bench.advance(1, 1);
}

describe("a handler that sends Retry-After", () => {
  it.each([429, 502, 503, 504])(
    "with %i gets no attempt of any delivery before that time",
    async (status) => {
      receiver.answer = () => ({ status, headers: { "retry-after": "600" } });
      const subscription = await bench.subscribe(receiver.url);
      const other = await openReceiver();
      const undisturbed = await bench.subscribe(other.url);
      await bench.publish(subscription, 50);
      const engine = bench.started();
      await receiver.received(1);
      await until("it to be stored", async () => {
        const found = await bench.store.catalog.findSubscription(subscription.rowid);
        return found?.slowed_until === new Date(bench.clock.now() + 600_000).toISOString();
      });
      // Others are delivered to, and what is published for it meanwhile waits as well.
      await bench.publish(undisturbed, 20);
      await bench.publish(subscription, 10);
      engine.wake();
      await bench.untilDelivered(undisturbed, 20);
      await bench.advance(599_000, 50_000);
      expect(receiver.requests).toHaveLength(1);
      expect((await bench.statuses(subscription))["delivering"]).toBeUndefined();
      receiver.answer = () => ({});
      await bench.advance(1_100, 100);
      await bench.untilDelivered(subscription, 60);
      expect(receiver.requests).toHaveLength(61);
    },
  );

  it("gets only what was in flight, however many are prefetched", async () => {
    const subscription = await bench.withEvents(200, receiver.url);
    const engine = bench.started();
    await bench.untilDelivered(subscription, 200);
    receiver.answer = () => ({ status: 429, headers: { "retry-after": "600" } });
    await bench.publish(subscription, 2_000);
    engine.wake();
    await until("it to be slowed and all leases to be given back", async () => {
      const slowed = (await bench.store.catalog.findSubscription(subscription.rowid))?.slowed_until ?? null;
      const query = { status: "delivering", limit: 1 } as const;
      return slowed !== null && (await bench.store.queue.list(query)).length === 0;
    });
    expect(receiver.requests.length - 200).toBeLessThanOrEqual(32);
    const before = receiver.requests.length;
    await bench.advance(590_000, 10_000);
    expect(receiver.requests).toHaveLength(before);
  });
});

describe("a handler that throttles without Retry-After", () => {
  it("keeps most of its speed when it throttles one of twenty", async () => {
    const subscription = await bench.subscribe(receiver.url, 20);
    let count = 0;
    receiver.answer = () => ({ status: ++count % 20 === 0 ? 503 : 200 });
    await bench.publish(subscription, 400);
    bench.engine().start();
    // Those that are refused twice wait for two seconds and more; the others need no time to go by.
    await until(
      "most to be delivered",
      async () => (await bench.statuses(subscription))["delivered"]! >= 390,
    );
    await bench.advance(60_000, 1_000);
    await bench.untilDelivered(subscription, 400);
    expect((await bench.store.catalog.findSubscription(subscription.rowid))?.slowed_until).toBeNull();
  });
});

describe("a handler that fails throughout", () => {
  const DAY_MS = 86_400_000;

  it("is deactivated after the configured time, with a reason, its deliveries held, and a log line", async () => {
    receiver.answer = () => ({ status: 500 });
    const subscription = await bench.subscribe(receiver.url, 20);
    const sinceMs = bench.clock.now();
    await bench.publish(subscription, 3);
    bench.engine({ disableAfter: DAY_MS }).start();
    await receiver.received(3);
    await settle();
    await bench.advance(23 * 3_600_000, 600_000);
    expect(await bench.store.catalog.findSubscription(subscription.rowid)).toMatchObject({
      active: true,
      failing_since: new Date(sinceMs).toISOString(),
    });
    await bench.advance(8 * 3_600_000, 600_000);
    const reason = `Every attempt since ${new Date(sinceMs).toISOString()} has failed, the last with HTTP 500. Its deliveries are held until it is reactivated.`;
    expect(await bench.store.catalog.findSubscription(subscription.rowid)).toMatchObject({
      active: false,
      disabled_reason: reason,
    });
    expect(await bench.statuses(subscription)).toEqual({ held: 3 });
    expect(bench.log.with("Subscription deactivated.").map(({ fields }) => fields)).toEqual([
      { subscription: subscription.rowid, reason },
    ]);
  });
});
