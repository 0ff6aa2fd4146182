import { beforeEach, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { PulledDelivery } from "../../src/domain/pull.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import { EngineCounts } from "../../src/metrics/counters.ts";
import type { Engine } from "../../src/delivery/engine.ts";
import { type Bench, portWith, useBench } from "./engine-setup.ts";

let bench: Bench;
useBench((opened) => {
  ({ bench } = opened);
});

let subscription: Subscription;
let engine: Engine;

beforeEach(async () => {
  subscription = await bench.subscribe(null);
  engine = bench.started();
});

interface GivenClaim {
  readonly subscription?: number;
  readonly wait_ms?: number;
  readonly max?: number;
  readonly caller?: unknown;
}

function claim(given: GivenClaim = {}, signal?: AbortSignal) {
  const { rowid } = subscription;
  const request = {
    subscription: rowid,
    caller: "one",
    max: 1,
    wait_ms: 10_000,
    lease_ms: 5_000,
    consumer: "one",
    ...given,
  };
  return engine.pulls.claim(request, signal);
}

test("callers are served in turn, whoever asks for more", async () => {
  const order: number[] = [];
  const waiting = [3, 1, 2].map((max, at) =>
    claim({ max }).then((taken) => {
      order.push(at);
      return taken.length;
    }),
  );
  await claim({ wait_ms: 0 });
  await bench.publish(subscription, 5);
  await bench.clock.advance(10);
  engine.wake();
  expect(await Promise.all(waiting)).toEqual([3, 1, 1]);
  expect(order).toEqual([0, 1, 2]);
});

test("one caller's consumers leave half of the places to others, and one that leaves makes room", async () => {
  const leaving = new AbortController();
  const waiting: Promise<readonly PulledDelivery[]>[] = [];
  const left = claim({}, leaving.signal).catch((error: unknown) => error);
  for (let count = 1; count < 500; count += 1) waiting.push(claim());
  const details = { limit: 1_000, held: 500, others: 0 };
  await expect(claim()).rejects.toMatchObject({ code: "rate_limited", details });
  leaving.abort(new Error("gone"));
  expect(await left).toEqual(new Error("gone"));
  waiting.push(claim(), claim({ caller: "another" }));
  await engine.stop(0);
  expect((await Promise.all(waiting)).flat()).toEqual([]);
  expect(() => engine.pulls).toThrow(/stopped/);
});

test("each waits as long as it asked for, whoever waits beside it", async () => {
  const waiting = Array.from({ length: 3 }, (_, at) => claim({ wait_ms: 1_000 + 500 * at }));
  const answered: number[] = [];
  for (const [at, each] of waiting.entries()) void each.then(() => answered.push(at));
  await claim({ wait_ms: 0 });
  await bench.clock.advance(1_500);
  await Promise.all(waiting.slice(0, 2));
  expect(answered).toEqual([0, 1]);
  await bench.clock.advance(500);
  expect((await Promise.all(waiting)).flat()).toEqual([]);
});

test("while the store fails, who has waited its time gets nothing, and all others hear why", async () => {
  let isDown = false;
  const { queue } = bench.store;
  const store = portWith(queue, {
    claimForConsumers: (request) =>
      isDown ? Promise.reject(new EvregError("unavailable", "Down.")) : queue.claimForConsumers(request),
  });
  await engine.stop(0);
  engine = bench.started({}, { store });
  const waiting = claim({ wait_ms: 1_000 });
  await claim({ wait_ms: 0 });
  isDown = true;
  await bench.clock.advance(1_000);
  expect(await waiting).toEqual([]);
  for (const wait_ms of [0, 1_000])
    await expect(claim({ wait_ms })).rejects.toMatchObject({ code: "unavailable" });
});

test("results count as those of a handler", async () => {
  const counts = new EngineCounts();
  await engine.stop(0);
  engine = bench.started({}, { counts });
  await bench.publish(subscription, 2);
  const taken = await claim({ max: 2 });
  await engine.pulls.finish(subscription, [
    { lease: taken[0]!.lease, outcome: "delivered", status: 200 },
    { lease: taken[1]!.lease, outcome: "failed", status: 404 },
  ]);
  expect(counts.deliveredAttempts).toBe(1);
  expect(counts.failedByStatus["4xx"]).toBe(1);
  expect(counts.finished).toEqual({ delivered: 1, failed: 0, filtered: 0 });
  expect(await bench.statuses(subscription)).toEqual({ delivered: 1, waiting: 1 });
  expect(bench.log.with("attempt failed")[0]?.fields).toMatchObject({ consumer: true, status: 404 });
});

test("one behind another is answered in time also while another subscription always has something", async () => {
  const busy = await bench.subscribe(null);
  await bench.publish(busy, 1_000);
  let taken = 0;
  const answered: unknown[] = [];
  const first = claim();
  void claim({ wait_ms: 1_000 }).then((nothing) => answered.push(nothing));
  const consume = async (): Promise<void> => {
    while (answered.length === 0 && taken < 1_000)
      taken += (await claim({ subscription: busy.rowid })).length;
  };
  const consuming = Promise.all([consume(), consume(), consume()]);
  await bench.clock.advance(1_000);
  const before = taken;
  await consuming;
  expect(taken - before).toBeLessThan(20);
  expect(answered).toEqual([[]]);
  await engine.stop(0);
  expect(await first).toEqual([]);
});
