import { describe, expect, it } from "vitest";
import type { Engine } from "../../src/delivery/engine.ts";
import type { DeliveryWithAttempts } from "../../src/domain/delivery.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import type { RecordClaim } from "../../src/store/queue.ts";
import { openReceiver } from "../support/open-receiver.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, countConcurrent, countingClaims, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;
useBench((opened) => ({ bench, receiver } = opened));

/** Answers so many requests, and no more after them. */
function answerOnly(count: number): void {
  let answered = 0;
  receiver.answer = () => {
    answered += 1;
    return answered > count ? "hang" : {};
  };
}

async function all(subscription: Subscription): Promise<DeliveryWithAttempts[]> {
  const listed = await bench.store.queue.list({ subscription: subscription.rowid, limit: 500 });
  const found = await Promise.all(listed.map(({ rowid }) => bench.store.queue.find(rowid)));
  return found.filter((delivery) => delivery !== undefined);
}

/** The engine leases nothing ahead until its last claim has shown that nothing older is due, and that claim may come late. */
async function capacityFor(engine: Engine, { action }: Subscription): Promise<RecordClaim> {
  let claim: RecordClaim | undefined;
  await until("capacity for the next event", () => {
    claim = engine.claimOf(action);
    return claim !== undefined;
  });
  return claim!;
}

describe("a backlog for a fast handler", () => {
  it("is claimed by the hundred, within its adaptive limit", async () => {
    const { store, claims } = countingClaims(bench.store.queue);
    const subscription = await bench.subscribe(receiver.url);
    for (let batch = 0; batch < 4; batch += 1) await bench.publish(subscription, 500);
    const concurrent = countConcurrent(receiver);
    bench.engine({ maxInFlightPerSubscription: 8 }, { store }).start();
    await receiver.received(2_000);
    expect(concurrent.most).toBeLessThanOrEqual(8);
    // Each lets one in at first; 2,000 at 256 a claim would be 8.
    expect(claims.length).toBeLessThan(40);
    expect(new Set(receiver.requests.map(({ headers }) => headers["webhook-id"])).size).toBe(2_000);
  });

  it("is released by a stop as if it had never been claimed", async () => {
    answerOnly(40);
    const subscription = await bench.withEvents(200, receiver.url, 0);
    const engine = bench.started({ maxInFlightPerSubscription: 8 });
    await receiver.received(48);
    await until("more to be leased than sent", async () => {
      const { delivering = 0 } = await bench.statuses(subscription);
      return delivering > 100;
    });
    await engine.stop(0);
    const before = await all(subscription);
    const interrupted = before.filter(({ attempts }) => attempts[0]?.outcome === "returned");
    const untouched = before.filter(({ attempts }) => attempts.length === 0);
    expect(interrupted).toHaveLength(8);
    expect(untouched).toHaveLength(152);
    for (const { status, attempt } of untouched) expect([status, attempt]).toEqual(["pending", 0]);

    receiver.answer = () => ({});
    bench.engine({ maxInFlightPerSubscription: 8 }).start();
    await bench.untilDelivered(subscription, 200);
    // What was never begun is told to be a first attempt.
    const attempts = receiver.requests
      .slice(48)
      .map(({ headers }) => headers["x-evreg-delivery"]?.split("_")[1]);
    expect(attempts.filter((attempt) => attempt === "2")).toHaveLength(8);
    expect(attempts.filter((attempt) => attempt === "1")).toHaveLength(152);
  });

  it("is released when the handler goes silent", async () => {
    answerOnly(40);
    const subscription = await bench.withEvents(200, receiver.url);
    bench.engine({ maxInFlightPerSubscription: 8, timeoutMs: 60_000 }).start();
    await receiver.received(48);
    await bench.advance(2_500, 500);
    await until("what was not begun to be due again", async () => {
      return (await bench.statuses(subscription))["pending"] === 152;
    });
    await bench.advance(30_000);
    expect(await bench.statuses(subscription)).toEqual({ delivered: 40, delivering: 8, pending: 152 });
  });

  it("is held when the handler says that it is gone", async () => {
    let answered = 0;
    receiver.answer = () => {
      answered += 1;
      return answered < 40 ? {} : { status: 410 };
    };
    const subscription = await bench.withEvents(200, receiver.url);
    bench.engine({ maxInFlightPerSubscription: 8 }).start();
    await until("the rest to be held", async () => {
      const { pending, delivering, held } = await bench.statuses(subscription);
      return pending === undefined && delivering === undefined && held !== undefined;
    });
    // Those under way at that moment, and no more.
    expect(receiver.requests.length).toBeLessThanOrEqual(48);
  });
});

describe("a handler that hangs", () => {
  it("has one attempt at a time after a while, and its limit back soon after it answers again", async () => {
    receiver.answer = () => "hang";
    const subscription = await bench.withEvents(300, receiver.url, 20);
    bench.engine({ timeoutMs: 3_000, maxInFlightPerSubscription: 32 }).start();
    await receiver.received(1);
    for (let timeout = 1; timeout <= 4; timeout += 1) {
      await bench.advance(3_000);
      await receiver.received(1 + timeout);
      expect((await bench.statuses(subscription))["delivering"]).toBe(1);
    }
    receiver.answer = () => ({});
    await bench.advance(3_000);
    await until("all but those that wait for their retry", async () => {
      const { pending = 0, delivering = 0 } = await bench.statuses(subscription);
      return pending + delivering === 0;
    });
  });

  it("leaves capacity to a new handler, with 50 hanging ones and long backlogs", async () => {
    const hanging = await openReceiver();
    hanging.answer = () => "hang";
    const stuck = await Promise.all(Array.from({ length: 50 }, () => bench.subscribe(hanging.url)));
    for (const subscription of stuck) await bench.publish(subscription, 20);
    const engine = bench.started({ maxInFlight: 256 });
    await hanging.received(50);
    const later = await bench.withEvents(200, receiver.url);
    engine.wake();
    await bench.untilDelivered(later, 200);
    await bench.advance(60_000);
    const latest = await bench.withEvents(200, receiver.url);
    engine.wake();
    await bench.untilDelivered(latest, 200);
  });
});

describe("an event for a handler that has been fast", () => {
  it("is leased as it is recorded, and sent without a claim", async () => {
    const subscription = await bench.subscribe(receiver.url);
    const { store, claims } = countingClaims(bench.store.queue);
    const engine = bench.started({}, { store });
    // Nothing is known of its handler at first.
    expect(await bench.publishTo(engine, subscription)).toBe(0);
    await bench.untilDelivered(subscription, 1);
    // Of the start, of the event, and to see that no more is due.
    await until("the last claim to be answered", () => claims.length === 3);
    for (let event = 2; event <= 20; event += 1) {
      expect(await bench.publishTo(engine, subscription)).toBe(1);
      await bench.untilDelivered(subscription, event);
    }
    expect(claims).toHaveLength(3);
    const [first] = await all(subscription);
    expect(first).toMatchObject({ status: "delivered", attempt: 1, attempts: [{ status_code: 200 }] });
  });

  it("waits in the file with others once the handler has as much as it takes", async () => {
    const subscription = await bench.subscribe(receiver.url, 5, { max_in_flight: 2 });
    const engine = bench.started();
    await bench.publishTo(engine, subscription);
    await bench.untilDelivered(subscription, 1);
    engine.recorded(await capacityFor(engine, subscription), []);
    receiver.answer = () => "hang";
    let leased = 0;
    for (let event = 0; event < 400; event += 1) leased += await bench.publishTo(engine, subscription);
    // Two in flight, and what it gets through in a moment beside them.
    expect(leased).toBeLessThan(400);
    expect(leased).toBeGreaterThanOrEqual(2);
    receiver.answer = () => ({});
    await engine.stop(0);
    bench.engine().start();
    await bench.untilDelivered(subscription, 401);
    expect(new Set(receiver.requests.map(({ headers }) => headers["webhook-id"])).size).toBe(401);
  });

  it("goes back to the store when the engine stops before it is recorded", async () => {
    const subscription = await bench.subscribe(receiver.url);
    const engine = bench.started();
    await bench.publishTo(engine, subscription);
    await bench.untilDelivered(subscription, 1);
    const claim = await capacityFor(engine, subscription);
    let isStopped = false;
    const stopping = engine.stop(60_000).then(() => (isStopped = true));
    expect(engine.claimOf(subscription.action)).toBeUndefined();
    const record = await bench.recordOf(subscription);
    const [outcome] = await bench.store.events.record([record], bench.clock.now(), { claim });
    expect(isStopped).toBe(false);
    engine.recorded(claim, outcome?.kind === "recorded" ? outcome.claims! : []);
    await stopping;
    expect(await bench.statuses(subscription)).toEqual({ delivered: 1, pending: 1 });
    const [last] = (await all(subscription)).toSorted((one, other) => other.rowid - one.rowid);
    expect(last).toMatchObject({ status: "pending", attempt: 0, attempts: [] });
  });
});
