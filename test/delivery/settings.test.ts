import { describe, expect, it } from "vitest";
import { openReceiver } from "../support/open-receiver.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, portWith, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;

useBench((opened) => ({ bench, receiver } = opened));

/** Goes on in small steps until so many were received; answers how long that took by the clock. */
async function timeUntil(count: number, stepMs: number): Promise<number> {
  const beganMs = bench.clock.now();
  await until(`${count} requests`, async () => {
    if (receiver.requests.length >= count) return true;
    await bench.advance(stepMs, stepMs);
    return false;
  });
  return bench.clock.now() - beganMs;
}

describe("a subscription with a rate limit", () => {
  it("is sent exactly that many a second, and delays no other", async () => {
    const limited = await bench.subscribe(receiver.url, 5, { rate_limit: 20 });
    const other = await openReceiver();
    const free = await bench.subscribe(other.url);
    await bench.publish(limited, 40);
    await bench.publish(free, 40);
    bench.started();
    await bench.untilDelivered(free, 40);
    expect(receiver.requests.length).toBeLessThanOrEqual(4);
    const tookMs = await timeUntil(40, 25);
    expect(tookMs).toBeGreaterThanOrEqual(1_850);
    expect(tookMs).toBeLessThanOrEqual(2_150);
    await bench.untilDelivered(limited, 40);
    expect(receiver.requests).toHaveLength(40);
  });

  it("leases only what may start soon", async () => {
    const limited = await bench.withEvents(50, receiver.url, 5, { rate_limit: 0.1 });
    bench.engine().start();
    await receiver.received(1);
    await bench.untilDelivered(limited, 1);
    await bench.advance(9_800, 700);
    expect(receiver.requests).toHaveLength(1);
    expect((await bench.statuses(limited))["delivering"]).toBeUndefined();
    await bench.advance(400, 50);
    await receiver.received(2);
    await bench.untilDelivered(limited, 2);
    // Nothing was handed back on the way: each was attempted once.
    const deliveries = await bench.store.queue.list({ subscription: limited.rowid, limit: 500 });
    expect(deliveries.filter(({ attempt }) => attempt > 1)).toEqual([]);
  });

  it("follows a change at once", async () => {
    const limited = await bench.withEvents(20, receiver.url, 5, { rate_limit: 0.01 });
    const engine = bench.started();
    await bench.untilDelivered(limited, 1);
    engine.wake(await bench.update(limited, { settings: { rate_limit: null } }));
    await bench.untilDelivered(limited, 20);
  });

  it("counts retries as well", async () => {
    receiver.answer = () => ({ status: 500 });
    await bench.withEvents(3, receiver.url, 20, { rate_limit: 2, retry_schedule: [0] });
    bench.engine().start();
    await receiver.received(1);
    await bench.advance(10_000, 50);
    expect(receiver.requests.length).toBeGreaterThanOrEqual(18);
    expect(receiver.requests.length).toBeLessThanOrEqual(22);
  });
});

describe("a subscription with a concurrency limit", () => {
  it.each([1, 3])("never has more than %i in flight", async (most) => {
    const limited = await bench.withEvents(50, receiver.url, 5, { max_in_flight: most });
    const engine = bench.started();
    await bench.untilDelivered(limited, 50);
    const goOn = Promise.withResolvers<void>();
    receiver.answer = () => ({ after: goOn.promise });
    await bench.publish(limited, 50);
    engine.wake();
    await receiver.received(50 + most);
    await bench.advance(500, 100);
    expect(receiver.requests).toHaveLength(50 + most);
    goOn.resolve();
    await bench.untilDelivered(limited, 100);
  });
});

describe("a subscription with a timeout", () => {
  it("has its attempts end then, and others by the service's timeout", async () => {
    receiver.answer = () => ({ after: new Promise<void>(() => {}) });
    const quick = await bench.subscribe(receiver.url, 0, { timeout_ms: 300 });
    const slow = await bench.subscribe(receiver.url, 0, { timeout_ms: 25_000 });
    const usual = await bench.subscribe(receiver.url, 0);
    for (const subscription of [quick, slow, usual]) await bench.publish(subscription);
    bench.engine().start();
    await receiver.received(3);
    const endsAfter = async (subscription: typeof quick, ms: number): Promise<void> => {
      await bench.clock.advance(ms - 1);
      expect((await bench.delivery(subscription)).status).toBe("delivering");
      await bench.clock.advance(1);
      const ended = await bench.untilStatus(subscription, "failed");
      expect(ended.last_error).toBe("timeout");
    };
    await endsAfter(quick, 300);
    await endsAfter(usual, 9_700);
    await endsAfter(slow, 15_000);
  });

  it("has a lease that lasts as long", async () => {
    receiver.answer = () => ({ after: new Promise<void>(() => {}) });
    const slow = await bench.withEvents(1, receiver.url, 0, { timeout_ms: 60_000 });
    bench.engine().start();
    await receiver.received(1);
    await bench.advance(59_000, 5_000);
    expect((await bench.delivery(slow)).status).toBe("delivering");
    expect(receiver.requests).toHaveLength(1);
    await bench.advance(1_000);
    const ended = await bench.untilStatus(slow, "failed");
    expect(ended.attempts).toMatchObject([{ error_code: "timeout", duration_ms: 60_000 }]);
  });
});

describe("a subscription with headers", () => {
  it("cannot replace evreg's own, whatever the data file says", async () => {
    const own = { authorization: "Bearer forged", "X-EVREG-Signature": "forged", "Content-Length": "3" };
    const forged = { ...own, Proxy: "http://forged.example", "X-Team": "a" };
    const subscription = await bench.withEvents(1, receiver.url, 5, { headers: forged });
    bench.engine().start();
    const [request] = await receiver.received(1);
    expect(JSON.stringify(request?.headers)).not.toContain("forged");
    expect(request?.headers).toMatchObject({ "x-team": "a" });
    await bench.untilDelivered(subscription, 1);
  });
});

describe("a subscription that is changed", () => {
  it("starts nothing by the old settings, prefetched or in a claim in flight", async () => {
    const old = await bench.subscribe(receiver.url);
    const other = await openReceiver();
    await bench.publish(old, 50);
    const gate = { isShut: false, asked: 0, opened: Promise.withResolvers<void>() };
    const store = portWith(bench.store.queue, {
      claim: async (request) => {
        const answer = await bench.store.queue.claim(request);
        if (gate.isShut && answer.claims.length > 0) {
          gate.asked += 1;
          await gate.opened.promise;
        }
        return answer;
      },
    });
    const engine = bench.started({ maxInFlightPerSubscription: 4 }, { store });
    await bench.untilDelivered(old, 50);
    const goOn = Promise.withResolvers<void>();
    receiver.answer = () => ({ after: goOn.promise });
    await bench.publish(old, 100);
    engine.wake();
    await receiver.received(54);
    gate.isShut = true;
    await bench.publish(old, 100);
    engine.wake();
    await until("a claim to be under way", () => gate.asked > 0);
    engine.wake(await bench.update(old, { handler: other.url }));
    gate.isShut = false;
    gate.opened.resolve();
    goOn.resolve();
    await until("all to be delivered", async () => {
      await bench.advance(100, 50);
      return (await bench.statuses(old))["delivered"] === 250;
    });
    expect([receiver.requests.length, other.requests.length]).toEqual([54, 196]);
  });

  it("starts nothing once it is paused", async () => {
    const paused = await bench.withEvents(50, receiver.url);
    const engine = bench.started({ maxInFlightPerSubscription: 4 });
    await bench.untilDelivered(paused, 50);
    const goOn = Promise.withResolvers<void>();
    receiver.answer = () => ({ after: goOn.promise });
    await bench.publish(paused, 100);
    engine.wake();
    await receiver.received(54);
    engine.wake(await bench.update(paused, { active: false }));
    goOn.resolve();
    await bench.untilDelivered(paused, 54);
    expect(await bench.statuses(paused)).toEqual({ delivered: 54, held: 96 });
    expect(receiver.requests).toHaveLength(54);
  });
});
