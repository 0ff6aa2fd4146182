import { describe, expect, it } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { EngineCounts } from "../../src/metrics/counters.ts";
import type { ClaimAnswer } from "../../src/store/queue.ts";
import { claimRequest } from "../support/claim-request.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, failing, portWith, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;
useBench((opened) => ({ bench, receiver } = opened));

describe("stopping", () => {
  it("lets attempts in flight finish before the deadline, and starts nothing new", async () => {
    const gate = Promise.withResolvers<void>();
    receiver.answer = () => ({ after: gate.promise });
    const subscription = await bench.withEvents(1, receiver.url);
    const engine = bench.started();
    await receiver.received(1);
    const stopped = engine.stop(60_000);
    expect(engine.state()).toBe("stopped");
    const later = await bench.withEvents(1, receiver.url);
    engine.wake();
    gate.resolve();
    await stopped;
    expect((await bench.delivery(subscription)).status).toBe("delivered");
    expect((await bench.delivery(later)).status).toBe("pending");
    expect(receiver.requests).toHaveLength(1);
    expect(bench.clock.pending).toBe(0);
  });

  it("returns what does not finish, without counting it as a failure", async () => {
    receiver.script("hang");
    const subscription = await bench.withEvents(1, receiver.url, 0);
    const counts = new EngineCounts();
    const engine = bench.started({}, { counts });
    await receiver.received(1);
    const stopped = engine.stop(5_000);
    await bench.clock.advance(5_000);
    await stopped;
    expect(await bench.delivery(subscription)).toMatchObject({
      attempts: [{ attempt: 1, outcome: "returned", error_code: "interrupted" }],
    });
    expect(counts.failedByError).toMatchObject({ timeout: 0, interrupted: 1 });
    expect(counts.finished).toEqual({ delivered: 0, failed: 0, filtered: 0 });
    await until("the connection to be dropped", () => receiver.open === 0);
    // The next start sends it at once, and max_retries 0 has not been used up.
    bench.engine().start();
    const delivery = await bench.untilStatus(subscription, "delivered");
    expect(delivery.attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, "returned"],
      [2, "delivered"],
    ]);
  });

  it("can be hurried by a second stop, and both are logged", async () => {
    receiver.answer = () => "hang";
    const subscription = await bench.withEvents(1, receiver.url);
    const engine = bench.started();
    await receiver.received(1);
    const first = engine.stop(3_600_000);
    const second = engine.stop(0);
    await Promise.all([first, second]);
    expect((await bench.delivery(subscription)).attempts).toMatchObject([{ outcome: "returned" }]);
    await engine.stop(1_000);
    expect(engine.state()).toBe("stopped");
  });

  it("twice stops once, as a second start starts nothing, and it never starts again", async () => {
    const engine = bench.started();
    engine.start();
    expect(engine.state()).toBe("running");
    await Promise.all([engine.stop(1_000), engine.stop(1_000)]);
    engine.start();
    expect(engine.state()).toBe("stopped");
    expect(bench.clock.pending).toBe(0);
  });

  it("and starting repeatedly loses nothing", async () => {
    const subscriptions = await Promise.all(Array.from({ length: 3 }, () => bench.subscribe(receiver.url)));
    for (const subscription of subscriptions) await bench.publish(subscription, 40);
    for (let round = 0; round < 60; round += 1) {
      const engine = bench.started({ maxInFlight: 8 });
      for (let turn = 0; turn < round % 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      engine.wake();
      const stops = [engine.stop(round % 2 === 0 ? 0 : 1_000)];
      if (round % 7 === 0) stops.push(engine.stop(0));
      await Promise.all(stops);
      expect(engine.state()).toBe("stopped");
      expect(bench.clock.pending).toBe(0);
    }
    bench.engine({ maxInFlight: 8 }).start();
    for (const subscription of subscriptions) await bench.untilDelivered(subscription, 40);
    const ids = new Set(receiver.requests.map((request) => request.headers["webhook-id"]));
    expect(ids.size).toBe(120);
  });
});

function claimAt(nowMs: number): Promise<ClaimAnswer> {
  return bench.store.queue.claim(claimRequest({ nowMs, leaseMs: 60_000 }));
}

describe("leases", () => {
  it("of a dead worker expire, and the delivery is sent", async () => {
    const subscription = await bench.withEvents(1, receiver.url);
    expect((await claimAt(bench.clock.now())).claims).toHaveLength(1);
    bench.engine().start();
    await bench.advance(59_000);
    expect(receiver.requests).toHaveLength(0);
    // The engine looks for ended leases every few seconds, after its last look, which takes a moment of the machine's time.
    await until("the delivery to be sent", async () => {
      await bench.advance(11_000);
      return receiver.requests.length > 0;
    });
    const delivery = await bench.untilStatus(subscription, "delivered");
    expect(delivery.attempts.map(({ outcome }) => outcome)).toEqual(["returned", "delivered"]);
    expect(receiver.requests[0]?.headers["x-evreg-delivery"]).toMatch(/_2$/);
  });

  it("that expired fence a late result", async () => {
    const gate = Promise.withResolvers<void>();
    receiver.script({ status: 500, after: gate.promise });
    const subscription = await bench.withEvents(1, receiver.url);
    const engine = bench.started();
    await receiver.received(1);
    // The machine slept; another worker found the lease ended and has the delivery now.
    const laterMs = bench.clock.now() + 3_600_000;
    expect(await bench.store.queue.releaseExpired(laterMs)).toBe(1);
    const { claims } = await claimAt(laterMs);
    expect(claims).toHaveLength(1);
    gate.resolve();
    await until("the late result to be refused", () => bench.log.with("after its lease").length === 1);
    expect((await bench.delivery(subscription)).status).toBe("delivering");
    await engine.stop(0);
  });
});

describe("a store that cannot commit", () => {
  it("is asked less and less often, and deliveries continue by themselves", async () => {
    const claims = failing(bench.store.queue, "claim");
    const subscription = await bench.withEvents(1, receiver.url);
    const engine = bench.started({}, { store: claims.store });
    await bench.advance(60_000);
    expect(claims.asked).toBeGreaterThan(5);
    expect(claims.asked).toBeLessThan(25);
    expect(bench.log.with("Due deliveries cannot be read")).toHaveLength(1);
    expect(engine.state()).toBe("failing");
    claims.isDown = false;
    await bench.advance(5_000);
    await bench.untilStatus(subscription, "delivered");
    expect(engine.state()).toBe("running");
    expect(bench.log.with("The store answers again")).toHaveLength(1);
  });

  it("gets finished attempts later, and nothing is sent twice", async () => {
    const results = failing(bench.store.queue, "finish");
    const subscription = await bench.withEvents(3, receiver.url);
    bench.engine({}, { store: results.store }).start();
    await receiver.received(3);
    // Longer than the leases: they must not be taken for those of a dead worker.
    await until("a first try", () => results.asked > 0);
    await bench.advance(120_000);
    expect(results.asked).toBeGreaterThan(3);
    results.isDown = false;
    await bench.advance(5_000);
    await bench.untilDelivered(subscription, 3);
    expect(receiver.requests).toHaveLength(3);
  });

  it("that is only slow to store results delays new attempts, and nothing else", async () => {
    const gate = Promise.withResolvers<void>();
    const store = portWith(bench.store.queue, {
      finish: async (results, nowMs) => {
        await gate.promise;
        return bench.store.queue.finish(results, nowMs);
      },
    });
    const subscription = await bench.withEvents(300, receiver.url);
    bench.engine({ maxInFlight: 2, maxInFlightPerSubscription: 2 }, { store }).start();
    await receiver.received(8);
    await bench.advance(120_000, 5_000);
    // What was leased by then at most.
    expect(receiver.requests.length).toBeLessThan(300);
    gate.resolve();
    await bench.untilDelivered(subscription, 300);
    expect(receiver.requests).toHaveLength(300);
  });

  it("does not prevent a stop; what could not be recorded is sent again", async () => {
    const results = failing(bench.store.queue, "finish");
    const { store } = results;
    const subscription = await bench.withEvents(1, receiver.url);
    const engine = bench.started({}, { store });
    await receiver.received(1);
    await until("a first try", () => bench.log.with("cannot be recorded; trying again").length > 0);
    const stopped = engine.stop(1_000);
    await bench.clock.advance(1_000);
    await stopped;
    results.isDown = false;
    bench.engine({}, { store }).start();
    await bench.advance(120_000, 5_000);
    await bench.untilStatus(subscription, "delivered");
    expect(receiver.requests).toHaveLength(2);
  });

  it("may refuse one result without delaying the others", async () => {
    const store = portWith(bench.store.queue, {
      finish: (results, nowMs) => {
        if (results.some(({ statusCode }) => statusCode === 500)) {
          return Promise.reject(new EvregError("internal", "A row that cannot be."));
        }
        return bench.store.queue.finish(results, nowMs);
      },
    });
    const subscription = await bench.subscribe(receiver.url);
    receiver.script({ status: 500 });
    await bench.publish(subscription, 5);
    bench.engine({}, { store }).start();
    await bench.untilDelivered(subscription, 4);
    expect(bench.log.with("An attempt cannot be recorded")).toHaveLength(1);
  });
});
