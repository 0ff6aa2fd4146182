import { describe, expect, it } from "vitest";
import type { Subscription } from "../../src/domain/subscription.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;
useBench((opened) => ({ bench, receiver } = opened));

const MOST = 100;
const TOOK_MS = 500;

/** Has the handler answer what it was sent after `TOOK_MS`, round after round. Answers how many came in each, and in all. */
async function rounds(count: number): Promise<{ came: readonly number[]; answered: number }> {
  const came: number[] = [];
  let answered = 0;
  let answer = Promise.withResolvers<void>();
  receiver.answer = () => {
    answered += 1;
    return { after: answer.promise };
  };
  for (let round = 0; round < count; round += 1) {
    const before = receiver.requests.length;
    await receiver.received(before + 1);
    await settled();
    came.push(receiver.requests.length - before);
    await bench.clock.advance(TOOK_MS);
    const { resolve } = answer;
    answer = Promise.withResolvers<void>();
    // What comes from now on is never answered.
    if (round === count - 1) receiver.answer = () => "hang";
    resolve();
  }
  return { came, answered };
}

/** Resolves when nothing more has come for a while of answers by the store. */
async function settled(): Promise<void> {
  for (let seen = -1; seen !== receiver.requests.length;) {
    seen = receiver.requests.length;
    for (let look = 0; look < 10; look += 1) await bench.store.catalog.findAction("none");
  }
}

async function returned(subscription: Subscription): Promise<number> {
  const listed = await bench.store.queue.list({ subscription: subscription.rowid, limit: 500 });
  const found = await Promise.all(listed.map(({ rowid }) => bench.store.queue.find(rowid)));
  return found.filter((one) => one?.attempts.at(-1)?.outcome === "returned").length;
}

describe("a handler that takes half a second, and steadily so", () => {
  it("gets more and more at a time, and all of that is handed back by a stop", async () => {
    const subscription = await bench.subscribe(receiver.url);
    await bench.publish(subscription, 500);
    const engine = bench.engine({ maxInFlight: 256, maxInFlightPerSubscription: MOST, timeoutMs: 60_000 });
    await engine.start();
    const { came, answered } = await rounds(8);
    expect(Math.max(...came)).toBeGreaterThan(32);
    await until(
      "all answers to be stored",
      async () => (await bench.statuses(subscription))["delivered"] === answered,
    );
    await settled();
    await engine.stop(0);
    const { delivered = 0, pending = 0, delivering = 0 } = await bench.statuses(subscription);
    expect([delivered + pending, delivering]).toEqual([500, 0]);
    // Those for which a connection was still being made had not reached the handler.
    expect(await returned(subscription)).toBeGreaterThanOrEqual(receiver.requests.length - delivered);
  });
});
