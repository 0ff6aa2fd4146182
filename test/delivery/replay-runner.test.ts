import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Engine } from "../../src/delivery/engine.ts";
import { ReplayRunner } from "../../src/delivery/replay-runner.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { Replay, ReplaySelection } from "../../src/domain/replay.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import { systemClock, systemRandom } from "../../src/runtime/clock.ts";
import { ValidationThread } from "../../src/service/validation-thread.ts";
import type { ReplayStore } from "../../src/store/history.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, portWith, useBench } from "./engine-setup.ts";

describe("replays in a running server", () => {
  let bench: Bench;
  let receiver: Receiver;
  let engine: Engine;
  let runner: ReplayRunner;
  useBench((opened) => ({ bench, receiver } = opened));

  beforeEach(async () => {
    // On the system's clock, as sockets, engine and replay keep time with each other here.
    const longChecks = new ValidationThread(systemClock);
    engine = bench.engine({}, { clock: systemClock, random: systemRandom, longChecks });
    runner = newRunner(bench.store.replays);
    engine.start();
  });

  afterEach(async () => {
    await runner.stop();
    await engine.stop(0);
  });

  const newRunner = (store: ReplayStore): ReplayRunner =>
    new ReplayRunner({
      store,
      node: bench.store.node,
      clock: systemClock,
      logger: bench.log,
      wake: () => engine.wake(),
    });

  async function begin({ rowid }: Subscription, selection: ReplaySelection): Promise<Replay> {
    const request = { subscription: rowid, selection, fromMs: 0 };
    const replay = await bench.store.replays.start(request, systemClock.now());
    runner.wake();
    return replay!;
  }

  /** A subscription that missed `count` events. */
  async function late(count: number): Promise<[Subscription, number[]]> {
    const subscription = await bench.subscribe(receiver.url);
    await bench.update(subscription, { active: false });
    const events: number[] = [];
    while (events.length < count) {
      events.push(...(await bench.publish(subscription, Math.min(1_000, count - events.length))));
    }
    await bench.update(subscription, { active: true });
    return [subscription, events];
  }

  const ended = (replay: Replay, status: string): Promise<void> =>
    until(
      `replay ${replay.rowid} to be ${status}`,
      async () => (await bench.store.replays.find(replay.rowid))?.status === status,
    );

  /** The events the receiver was sent, in the order of their coming. */
  const sent = (): number[] =>
    receiver.requests.map(({ body }) =>
      Number((JSON.parse(body.toString()) as { event_id: string }).event_id),
    );

  it("does not delay live events", async () => {
    const [subscription] = await late(3_000);
    receiver.answer = () => ({ after: new Promise((resolve) => setTimeout(resolve, 10)) });
    runner.start();
    const replay = await begin(subscription, "missed");
    await receiver.received(300);
    const [live = 0] = await bench.publish(subscription, 1);
    engine.wake();
    const before = receiver.requests.length;
    await until("the live event", () => sent().includes(live));
    // The 50 that were due, and what the store handed out while it took the event.
    expect(sent().indexOf(live) - before).toBeLessThan(200);
    expect(await bench.store.replays.find(replay.rowid)).toMatchObject({ status: "running" });
  });

  it("waits while its subscription is paused, and continues when it resumes", async () => {
    const [subscription] = await late(500);
    await bench.update(subscription, { active: false });
    runner.start();
    const replay = await begin(subscription, "missed");
    await until(
      "it to be counted",
      async () => (await bench.store.replays.find(replay.rowid))?.total === 500,
    );
    expect(receiver.requests).toEqual([]);
    await bench.update(subscription, { active: true });
    runner.wake();
    await ended(replay, "done");
    await receiver.received(500);
  });

  it("sends what was missed, each event once, also over a stop", async () => {
    const [subscription, events] = await late(1_000);
    const { rowid } = subscription;
    const request = { subscription: rowid, selection: "missed", fromMs: 0 } as const;
    expect(await bench.store.replays.count(request)).toBe(1_000);
    runner.start();
    const replay = await begin(subscription, "missed");
    await receiver.received(150);
    await runner.stop();
    const { queued, total } = (await bench.store.replays.find(replay.rowid))!;
    expect(queued).toBeLessThan(1_000);
    runner = newRunner(bench.store.replays);
    runner.start();
    await ended(replay, "done");
    await receiver.received(1_000);
    expect(sent().toSorted((a, b) => a - b)).toEqual(events);
    expect(await bench.store.replays.find(replay.rowid)).toMatchObject({ total, queued: 1_000, skipped: 0 });
  });

  it("go on while another one is counted, or fails at each step", async () => {
    const [[large], [broken], [small]] = [await late(1), await late(1), await late(100)];
    const counted = Promise.withResolvers<number>();
    const failing = new Set<number>();
    const { replays } = bench.store;
    runner = newRunner(
      portWith(replays, {
        count: (query, signal) =>
          "replay" in query && query.replay === waiting.rowid
            ? counted.promise
            : replays.count(query, signal),
        advance: (id, step) =>
          failing.has(id) ? Promise.reject(new Error("damaged")) : replays.advance(id, step),
      }),
    );
    failing.add((await begin(broken, "missed")).rowid);
    const waiting = await begin(large, "missed");
    const replay = await begin(small, "missed");
    runner.start();
    await ended(replay, "done");
    expect(await replays.find(waiting.rowid)).toMatchObject({ status: "running", total: null });
    expect(bench.log.with("cannot go on now")).toHaveLength(1);
    counted.resolve(1);
    await ended(waiting, "done");
    failing.clear();
    await receiver.received(102);
  });

  it("continues by itself when the store commits again", async () => {
    const [subscription] = await late(10);
    let refusals = 2;
    runner = newRunner(
      portWith(bench.store.replays, {
        advance: (...args) => {
          refusals -= 1;
          if (refusals >= 0) return Promise.reject(new EvregError("unavailable", "The disk is full."));
          return bench.store.replays.advance(...args);
        },
      }),
    );
    runner.start();
    await ended(await begin(subscription, "missed"), "done");
    await receiver.received(10);
    expect(bench.log.with("cannot go on now")).toHaveLength(1);
  });
});
