import { describe, expect, it } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { Engine } from "../../src/delivery/engine.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, countConcurrent, portWith, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;

useBench((opened) => ({ bench, receiver } = opened));

/** The events sent from the 55th request on. */
function sentSince(): number[] {
  return receiver.requests
    .slice(54)
    .map(({ headers }) => Number((headers["x-evreg-delivery"] ?? "").split("_")[0]));
}

/** One with many leased ahead, of which as many are under way as `answers` has. */
async function busy(): Promise<{
  engine: Engine;
  subscription: Subscription;
  events: readonly number[];
  answers: ((status: number) => void)[];
}> {
  const subscription = await bench.subscribe(receiver.url, 5, { retry_schedule: [5_000] });
  await bench.publish(subscription, 50);
  const engine = bench.engine({ maxInFlightPerSubscription: 4 });
  await engine.start();
  await bench.untilDelivered(subscription, 50);
  const answers: ((status: number) => void)[] = [];
  receiver.answer = () => {
    const { promise: after, resolve } = Promise.withResolvers<void>();
    const answer: { status?: number; after: Promise<void> } = { after };
    answers.push((status) => {
      answer.status = status;
      resolve();
    });
    return answer;
  };
  const events = await bench.publish(subscription, 100);
  engine.wake();
  await receiver.received(54);
  expect((await bench.statuses(subscription))["delivering"]).toBe(100);
  return { engine, subscription, events, answers };
}

async function order({ rowid }: Subscription, ordered: boolean): Promise<Subscription> {
  return (await bench.store.catalog.updateSubscription(rowid, { settings: { ordered } }, bench.clock.now()))!;
}

describe("a subscription that becomes ordered while it is busy", () => {
  it("starts nothing that was prefetched, and sends the rest one at a time in order", async () => {
    const { engine, subscription, events, answers } = await busy();
    engine.wake(await order(subscription, true));
    const counted = countConcurrent(receiver);
    answers[2]!(200);
    await bench.advance(300, 50);
    expect(receiver.requests).toHaveLength(54);
    for (const at of [0, 1, 3]) answers[at]!(200);
    await until("all to be delivered", async () => {
      await bench.advance(250, 250);
      return (await bench.statuses(subscription))["delivered"] === 150;
    });
    expect(sentSince()).toEqual(events.slice(4));
    expect(counted.most).toBe(1);
  });

  it("waits for the retry of an attempt whose result is stored after the change", async () => {
    const subscription = await bench.subscribe(receiver.url, 0, { retry_schedule: [5_000] });
    let isAway = true;
    const store = portWith(bench.store.queue, {
      finish: (...given) =>
        isAway
          ? Promise.reject(new EvregError("unavailable", "The disk is full."))
          : bench.store.queue.finish(...given),
    });
    receiver.answer = () => ({ status: 500 });
    const engine = bench.engine({}, { store });
    await engine.start();
    const events = await bench.publish(subscription, 2);
    engine.wake();
    await receiver.received(2);
    await until("the first try to store that", () => bench.log.with("cannot be recorded").length === 1);
    engine.wake(await order(subscription, true));
    receiver.answer = () => ({});
    isAway = false;
    await bench.advance(4_000, 500);
    expect(await bench.store.catalog.findSubscription(subscription.rowid)).toMatchObject({
      blocked_by: (await bench.store.queue.list({ event: events[0]!, limit: 1 }))[0]!.rowid,
      slowed_until: expect.any(String) as string,
    });
    expect(receiver.requests).toHaveLength(2);
    await bench.advance(3_000, 500);
    await bench.untilDelivered(subscription, 2);
    expect(receiver.requests).toHaveLength(4);
  });

  it("waits for the retry of an attempt in flight, and then starts with it", async () => {
    const { engine, subscription, events, answers } = await busy();
    engine.wake(await order(subscription, true));
    receiver.answer = () => ({});
    for (const answer of answers) answer(500);
    await until("the wait to be stored", async () => {
      return (await bench.store.catalog.findSubscription(subscription.rowid))?.slowed_until !== null;
    });
    await bench.advance(1_500, 250);
    expect(receiver.requests).toHaveLength(54);
    await until("all to be delivered", async () => {
      await bench.advance(250, 250);
      return (await bench.statuses(subscription))["delivered"] === 150;
    });
    expect(sentSince()).toEqual(events);
  });
});
