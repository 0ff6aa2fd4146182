import { describe, expect, it } from "vitest";
import { EngineCounts } from "../../src/metrics/counters.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;
useBench((opened) => ({ bench, receiver } = opened));

const MOST = 100;
const TOOK_MS = 500;

/** What the engine says of itself: how many attempts are under way. */
const counts = new EngineCounts();
/** Requests that were answered. */
let answered = 0;

/**
 * Has the handler answer what it was sent after `TOOK_MS`, for so many rounds, and on until more than `least` came in one: a busy
 * machine splits a round in two. Resolves to how many came in each.
 */
async function rounds(count: number, least: number): Promise<readonly number[]> {
  const came: number[] = [];
  const isLast = (): boolean => came.length >= count && Math.max(...came) > least;
  answered = 0;
  let answer = Promise.withResolvers<void>();
  receiver.answer = () => ({ after: answer.promise });
  do {
    await receiver.received(answered + 1);
    await allSent();
    came.push(receiver.requests.length - answered);
    await bench.clock.advance(TOOK_MS);
    const { resolve } = answer;
    answer = Promise.withResolvers<void>();
    // The handler never answers what comes after the last round.
    if (isLast()) receiver.answer = () => "hang";
    answered = receiver.requests.length;
    resolve();
  } while (!isLast());
  return came;
}

const isSent = (): boolean => counts.inFlight() === receiver.requests.length - answered;

/** Resolves when every attempt under way has reached the handler, and no more began while the store answered ten questions. */
async function allSent(): Promise<void> {
  for (let seen = -1; seen !== receiver.requests.length;) {
    await until("the handler to have every attempt under way", isSent);
    seen = receiver.requests.length;
    for (let look = 0; look < 10; look += 1) await bench.store.catalog.findAction("none");
    if (!isSent()) seen = -1;
  }
}

async function returned(subscription: Subscription): Promise<number> {
  const listed = await bench.store.queue.list({ subscription: subscription.rowid, limit: 500 });
  const found = await Promise.all(listed.map(({ rowid }) => bench.store.queue.find(rowid)));
  return found.filter((one) => one?.attempts.at(-1)?.outcome === "returned").length;
}

describe("a handler that always takes half a second", () => {
  it("gets more and more requests at once, and a stop releases all of them", async () => {
    const subscription = await bench.subscribe(receiver.url);
    await bench.publish(subscription, 500);
    const config = { maxInFlight: 256, maxInFlightPerSubscription: MOST, timeoutMs: 60_000 };
    const engine = bench.engine(config, { counts });
    engine.start();
    const came = await rounds(8, 32);
    expect(Math.max(...came)).toBeGreaterThan(32);
    await until(
      "the store to have all answers",
      async () => (await bench.statuses(subscription))["delivered"] === answered,
    );
    await allSent();
    await engine.stop(0);
    const { delivered = 0, pending = 0, delivering = 0 } = await bench.statuses(subscription);
    expect([delivered, delivered + pending, delivering]).toEqual([answered, 500, 0]);
    expect(await returned(subscription)).toBe(receiver.requests.length - delivered);
  });
});
